"""An uneven backlog that consumers read again and again under several limits, and records that are read as they come.

The topic is filled once, and brokers start again with it, so that all consumers read the same batches.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.backtest.lab import BOOTSTRAP, Cluster, Lab, Settings

TOPIC, LIVE = "backlog", "live"
RECORDS, SHARES = 20_000, (40, 30, 1, 1, 10, 1, 1, 16)
LIVE_RECORDS, LIVE_RATE, LIVE_SIZE = 20_000, 2_500, 1_000
BASE: Settings = {"fetch.max.bytes": 1_000_000, "max.partition.fetch.bytes": 250_000}
LIMITS: Mapping[str, Settings] = {
    "base": BASE,
    "small": {**BASE, "fetch.max.bytes": 200_000},
    "many": {"fetch.max.bytes": 52_428_800, "max.partition.fetch.bytes": 60_000},
    "polls": {**BASE, "max.poll.records": 50},
}
"""The limits of the backlog's consumers."""
WAITS: Mapping[str, Settings] = {
    "eager": {"fetch.min.bytes": 1, "fetch.max.wait.ms": 500},
    "patient": {"fetch.min.bytes": 200_000, "fetch.max.wait.ms": 300},
}
"""The settings of consumers that read records as they come."""
BROKER: Settings = {"fetch.max.bytes": 300_000}
LIBRDKAFKA_NAMES = {"fetch.max.wait.ms": "fetch.wait.max.ms"}


def captures(work: Path, _: int) -> list[Path]:
    """The captures. They share one backlog, so they are recorded together."""
    return [work / f"fetch-{name}.pcap" for name in (*LIMITS, *WAITS, "broker")]


def record(lab: Lab, repeats: int) -> None:
    """Record one capture for each group of settings. Each consumer runs `repeats` times in it."""
    with lab.cluster("fetch", {"auto.create.topics.enable": "false"}) as cluster:
        cluster.drive("topic", TOPIC, len(SHARES), rf=1, max_message_bytes=2_000_000)
        fill(cluster, TOPIC)
        for name, limits in LIMITS.items():
            with cluster.captured(lab.work / f"fetch-{name}.pcap"):
                catch_up(cluster, name, limits, repeats)
        for name, waits in WAITS.items():
            with cluster.captured(lab.work / f"fetch-{name}.pcap"):
                read_live(cluster, name, waits, repeats)
        cluster.restart(BROKER)
        with cluster.captured(lab.work / "fetch-broker.pcap"):
            catch_up(cluster, "broker", BASE, repeats)


def fill(cluster: Cluster, topic: str) -> None:
    """Produce the same records each time, most of them to few partitions."""
    cluster.drive("rd_produce", topic, "none", RECORDS, 1, kind="random", size=900, skew=list(SHARES),
                  conf={"batch.size": 40_000})  # fmt: skip


def catch_up(cluster: Cluster, name: str, limits: Settings, repeats: int) -> None:
    """Consumers, one after the other, read the backlog from its beginning."""
    for again in range(repeats):
        consume_java(cluster, f"java-{name}-{again}", TOPIC, RECORDS, limits)
        if "max.poll.records" not in limits:
            consume_librdkafka(cluster, f"librdkafka-{name}-{again}", TOPIC, 5, limits)


def consume_java(cluster: Cluster, client: str, topic: str, records: int, settings: Settings) -> None:
    """Run Kafka's own consumer until it has this many records; --fetch-size overrides max.partition.fetch.bytes."""
    properties = [f"{key}={value}" for key, value in {**settings, "client.id": client}.items()]
    cluster.java(
        "org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", BOOTSTRAP, "--topic", topic,
        "--num-records", records, "--group", client, "--timeout", 20_000, "--hide-header",
        "--fetch-size", settings.get("max.partition.fetch.bytes", 1_048_576),
        *(word for each in properties for word in ("--command-property", each)),
    )  # fmt: skip


def consume_librdkafka(cluster: Cluster, client: str, topic: str, seconds: int, settings: Settings) -> None:
    """Run a librdkafka consumer for this many seconds."""
    cluster.drive("rd_consume", topic, client, seconds, conf=conf_of_librdkafka(client, settings))


def conf_of_librdkafka(client: str, settings: Settings) -> Settings:
    """The settings with librdkafka's names."""
    conf = {LIBRDKAFKA_NAMES.get(key, key): value for key, value in settings.items()}
    return {**conf, "client.id": client, "message.max.bytes": 100_000}


def read_all_by_librdkafka(cluster: Cluster, client: str, topic: str, records: int, settings: Settings) -> None:
    """Run a librdkafka consumer until it has this many records, so that it reads all of them even on a busy machine."""
    conf = {"bootstrap.servers": BOOTSTRAP, "group.id": client, "auto.offset.reset": "earliest"}
    command = [cluster.lab.python, Path(__file__).with_name("read_all.py")]
    given = [json.dumps({**conf, **conf_of_librdkafka(client, settings)}), topic, str(records), "60"]
    subprocess.run([*command, *given], check=True)


def read_live(cluster: Cluster, name: str, waits: Settings, repeats: int) -> None:
    """Consumers read what is produced meanwhile, one of each kind at a time."""
    for again in range(repeats):
        topic = f"{LIVE}-{name}-{again}"
        cluster.drive("topic", topic, 4, rf=1)
        with ThreadPoolExecutor(2) as pool:
            java = pool.submit(consume_java, cluster, f"java-{name}-{again}", topic, LIVE_RECORDS, waits)
            rd = f"librdkafka-{name}-{again}"
            librdkafka = pool.submit(read_all_by_librdkafka, cluster, rd, topic, LIVE_RECORDS, waits)
            time.sleep(4)
            produce_live(cluster, topic)
            java.result(), librdkafka.result()


def produce_live(cluster: Cluster, topic: str) -> None:
    """Records of one size at one rate."""
    cluster.java(
        "org.apache.kafka.tools.ProducerPerformance", "--topic", topic, "--num-records", LIVE_RECORDS,
        "--record-size", LIVE_SIZE, "--throughput", LIVE_RATE,
        "--command-property", f"bootstrap.servers={BOOTSTRAP}", "client.id=live-producer",
    )  # fmt: skip
