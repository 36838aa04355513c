"""A backlog of replicated partitions that consumers in racks read with and without fetch-from-follower (KIP-392)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.backtest.fetch_traffic import BASE, consume_java, consume_librdkafka
from tests.backtest.lab import BOOTSTRAP, BROKERS, Cluster, Lab, Settings

TOPIC, PARTITIONS, RECORDS, SIZE = "racks", 6, 20_000, 1_000
SELECTOR: Settings = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
WITH, WITHOUT, NO_RACK = "with", "without", "no-rack"
"""How a backlog is read: with the brokers' selector, without it, and without it by consumers that name no rack."""


@dataclass(frozen=True)
class Layout:
    """The racks of brokers, the replicas of each partition, and the limits of consumers."""

    racks: Mapping[int, str]
    replicas: int
    limits: Settings


LAYOUTS = {
    "rack": Layout({n: f"rack-{n}" for n in BROKERS}, 2, {}),
    "shared": Layout({1: "rack-1", 2: "rack-2", 3: "rack-2"}, 3, BASE),
}
"""One broker in each rack, with two replicas of a partition; and two brokers in a rack, with replicas on all."""


def captures(work: Path, _: int) -> list[Path]:
    """The captures. Those of a layout share one backlog, so all are recorded together."""
    return [file_of(work, name, how) for name in LAYOUTS for how in (WITHOUT, NO_RACK, WITH)]


def file_of(work: Path, name: str, how: str) -> Path:
    """The capture of a layout's backlog that is read in one way."""
    return work / f"{name}-{how}.pcap"


def record(lab: Lab, repeats: int) -> None:
    """Record one capture for each layout and way of reading."""
    for name, layout in LAYOUTS.items():
        with lab.cluster(name, {"auto.create.topics.enable": "false"}) as cluster:
            cluster.restart({}, {n: {"broker.rack": rack} for n, rack in layout.racks.items()})
            cluster.drive("topic", TOPIC, PARTITIONS, rf=layout.replicas)
            cluster.drive("rd_produce", TOPIC, "none", RECORDS, 1, kind="random", size=SIZE)
            read_backlog(cluster, name, WITHOUT, repeats)
            read_backlog(cluster, name, NO_RACK, repeats)
            cluster.restart(SELECTOR)
            elect_preferred_leaders(cluster)
            read_backlog(cluster, name, WITH, repeats)


def racks_of_clients(name: str, how: str, repeats: int) -> dict[str, str]:
    """The rack of each consumer in a capture, by client.id: Java's are in every rack, librdkafka's in the second."""
    racks = sorted(set(LAYOUTS[name].racks.values()))
    java = {f"java-{how}-{rack}-{again}": rack for again in range(repeats) for rack in racks}
    return java | {f"librdkafka-{how}-{racks[1]}-{again}": racks[1] for again in range(repeats)}


def read_backlog(cluster: Cluster, name: str, how: str, repeats: int) -> None:
    """Have all consumers of a capture read the backlog from its beginning, one after the other."""
    with cluster.captured(file_of(cluster.lab.work, name, how)):
        for client, rack in racks_of_clients(name, how, repeats).items():
            where: Settings = {} if how == NO_RACK else {"client.rack": rack}
            settings = {**LAYOUTS[name].limits, **where}
            if client.startswith("java"):
                consume_java(cluster, client, TOPIC, RECORDS, settings)
            else:
                consume_librdkafka(cluster, client, TOPIC, 10, settings)


def elect_preferred_leaders(cluster: Cluster) -> None:
    """Give partitions the leaders that they had before brokers started again."""
    cluster.java(
        "org.apache.kafka.tools.LeaderElectionCommand", "--bootstrap-server", BOOTSTRAP,
        "--election-type", "preferred", "--all-topic-partitions",
    )  # fmt: skip
