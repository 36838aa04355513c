"""A backlog of replicated partitions read by consumers that name the rack of a broker, and by one that names none."""

from __future__ import annotations

from pathlib import Path

from tests.backtest.fetch_traffic import consume_java
from tests.backtest.lab import BROKERS, Lab, Settings

TOPIC, PARTITIONS, RECORDS, SIZE = "racks", 6, 20_000, 1_000
RACKS: dict[str, Settings] = {"named": {"client.rack": "rack-2"}, "none": {}}
"""What consumers say of where they are."""


def captures(work: Path, _: int) -> list[Path]:
    """What is recorded; all of one backlog, so all together."""
    return [work / f"rack-{name}.pcap" for name in RACKS]


def record(lab: Lab, repeats: int) -> None:
    """One capture for each rack, `repeats` consumers in it, one after the other. All brokers hold all partitions."""
    with lab.cluster("rack", {"auto.create.topics.enable": "false"}) as cluster:
        selector = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
        cluster.restart(selector, {n: {"broker.rack": f"rack-{n}"} for n in BROKERS})
        cluster.drive("topic", TOPIC, PARTITIONS, rf=3)
        cluster.drive("rd_produce", TOPIC, "none", RECORDS, 1, kind="random", size=SIZE)
        for name, rack in RACKS.items():
            with cluster.captured(lab.work / f"rack-{name}.pcap"):
                for again in range(repeats):
                    consume_java(cluster, f"java-{name}-{again}", TOPIC, RECORDS, rack)
