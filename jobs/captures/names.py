"""Names that only the whole capture set tells: of topics by id, of brokers by the addresses they listen on, and of the
clusters that these are of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.captures.cluster_names import Advertised, name_clusters
from jobs.captures.topic_ids import ids_in_force
from jobs.lake.packed_tables import of_tables
from udfs.facts.captured_names import (
    BROKER,
    CAPTURED_NAMES,
    CHANGE,
    CLUSTER,
    NAMING_TABLES,
    SERVER,
    SHOWN_ID,
    captured_names,
    distinct,
)
from udfs.facts.cluster_names import ClusterNames, names_several_clusters, topic_of_cluster
from udfs.facts.table_files import unpacked_rows


def names_in(packed: DataFrame) -> ClusterNames:
    """What packed rows, columns PACKED_TABLE and PACKED_ROWS, tell of names."""

    def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from captured_names(unpacked_rows(batches, NAMING_TABLES, None)).to_batches()

    return learn_names(of_tables(packed, NAMING_TABLES).mapInArrow(gather, from_arrow_schema(CAPTURED_NAMES)).toArrow())


class Said(NamedTuple):
    """A row of CAPTURED_NAMES, without what it is; server: empty where it is not known."""

    server: str
    name: str
    told: str
    first: int | None
    last: int | None


def learn_names(told: pa.Table) -> ClusterNames:
    """What Metadata, CreateTopics and DeleteTopics responses and connections say; told: rows of CAPTURED_NAMES."""
    rows = distinct(told.cast(CAPTURED_NAMES)).sort_by([(name, "ascending") for name in CAPTURED_NAMES.names])
    found: dict[str, list[Said]] = defaultdict(list)
    for what, *said in zip(*(rows[name].to_pylist() for name in CAPTURED_NAMES.names), strict=True):
        found[what].append(Said(said[0] or "", *said[1:]))
    servers = [said.name for said in found[SERVER]]
    brokers = [
        Advertised(said.server, said.name, int(said.told), said.first)
        for said in found[BROKER]
        if said.first is not None
    ]
    clusters = name_clusters([(said.server, said.name) for said in found[CLUSTER]], brokers, servers)
    by_cluster = names_several_clusters(clusters)

    def key(said: Said) -> str:
        return topic_of_cluster(clusters.get(said.server, ""), said.name) if by_cluster else said.name

    return ClusterNames(
        {said.told: said.name for said in found[SHOWN_ID]},
        ids_in_force(
            spans_shown((key(said), said) for said in found[SHOWN_ID]),
            [(key(said), said.told, said.first) for said in found[CHANGE] if said.first is not None],
        ),
        name_brokers(brokers, servers),
        clusters,
    )


def spans_shown(said: Iterable[tuple[str, Said]]) -> list[tuple[str, str, int, int]]:
    """(name, id, when it was first told, and last asked for) of all servers' rows together, each name by its key."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for name, of in said:
        found[name, of.told].append((of.first or 0, of.last or 0))
    return [(*shown, min(times)[0], max(last for _, last in times)) for shown, times in found.items()]


def name_brokers(brokers: Sequence[Advertised], servers: Sequence[str]) -> dict[str, str]:
    """Node id by server (address:port) from what brokers advertise.

    A host that is an address is compared as it is; one that is a name can only be told by a port that one broker alone
    advertises and one server alone has.
    """
    exact = {broker.endpoint: broker.node_id for broker in brokers}
    nodes_by_port: dict[int, set[int]] = defaultdict(set)
    servers_by_port: dict[int, set[str]] = defaultdict(set)
    for broker in brokers:
        nodes_by_port[broker.port].add(broker.node_id)
    for server in servers:
        servers_by_port[int(server.rpartition(":")[2])].add(server)
    named = {server: str(exact[server]) for server in servers if server in exact}
    for port, nodes in nodes_by_port.items():
        alone = servers_by_port[port]
        if len(nodes) == 1 and len(alone) == 1:
            named.setdefault(next(iter(alone)), str(next(iter(nodes))))
    return named
