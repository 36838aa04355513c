"""Names that only the whole capture set tells: of topics by id, of brokers by the addresses they listen on, and of the
clusters that these are of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.captures.broker_names import BrokerEvidence, Follows, name_brokers
from jobs.captures.capture_quality import KAFKA_PROTOCOL
from jobs.captures.cluster_names import Advertised, name_clusters
from jobs.captures.partition_leaders import Fetched, Led, Partition, Produced, leaders_by_server
from jobs.captures.topic_ids import ids_in_force
from jobs.lake.packed_tables import of_tables
from schemas.tables.table import Table
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.facts.captured_names import (
    BROKER,
    CAPTURED_NAMES,
    CHANGE,
    CLUSTER,
    CONTROLLER,
    FOLLOWER,
    LEADER,
    LED,
    NAMING_COLUMNS,
    PLACED,
    PRODUCED,
    READ,
    SERVER,
    SHOWN_ID,
    captured_names,
    distinct,
)
from udfs.facts.cluster_names import ClusterNames, names_several_clusters, topic_of_cluster
from udfs.facts.leading_names import LEADING_COLUMNS, leading_names
from udfs.facts.table_files import unpacked_columns

NOTHING_STATED: Mapping[str, str] = MappingProxyType({})
Gather = Callable[[Iterable[tuple[Table, pa.RecordBatch]]], pa.Table]
"""What rows of tables show: rows of CAPTURED_NAMES."""


def names_in(packed: DataFrame, stated: Mapping[str, str] = NOTHING_STATED) -> ClusterNames:
    """What packed rows, columns PACKED_TABLE and PACKED_ROWS, tell of names. stated: node id by server."""
    told = _gathered(packed, NAMING_COLUMNS, captured_names)
    if needs_leaders(told):
        told = pa.concat_tables([told, _gathered(packed, LEADING_COLUMNS, leading_names)])
    return learn_names(told, stated)


def _gathered(packed: DataFrame, columns: Mapping[Table, Sequence[str]], shown: Gather) -> pa.Table:
    def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from shown(unpacked_columns(batches, columns)).to_batches()

    rows = of_tables(packed, columns).mapInArrow(gather, from_arrow_schema(CAPTURED_NAMES)).toArrow()
    return rows.cast(CAPTURED_NAMES)


class Said(NamedTuple):
    """A row of CAPTURED_NAMES, without what it is; server: empty where it is not known."""

    server: str
    name: str
    told: str
    first: int | None
    last: int | None


Rows = Mapping[str, Sequence[Said]]
"""Rows of CAPTURED_NAMES by what they are."""


def _by_what(told: pa.Table) -> Rows:
    rows = distinct(told.cast(CAPTURED_NAMES)).sort_by([(name, "ascending") for name in CAPTURED_NAMES.names])
    by_what: dict[str, list[Said]] = defaultdict(list)
    for what, *said in zip(*(rows[name].to_pylist() for name in CAPTURED_NAMES.names), strict=True):
        by_what[what].append(Said(said[0] or "", *said[1:]))
    return by_what


def needs_leaders(told: pa.Table) -> bool:
    """Whether a server that speaks Kafka is at no endpoint that a response advertises: then `leading_names` may tell
    its node, or that what else tells it is wrong. told: as that of `learn_names`.
    """
    rows = _by_what(told)
    endpoints = {broker.endpoint for broker in _advertised(rows)}
    return any(said.told == KAFKA_PROTOCOL and said.name not in endpoints for said in rows[SERVER])


def learn_names(told: pa.Table, stated: Mapping[str, str] = NOTHING_STATED) -> ClusterNames:
    """What messages and connections say; told: rows of CAPTURED_NAMES. stated: node id by server."""
    rows = _by_what(told)
    servers = sorted({said.name for said in rows[SERVER]})
    clusters = name_clusters([(said.server, said.name) for said in rows[CLUSTER]], _advertised(rows), servers)
    by_cluster = names_several_clusters(clusters)

    def key(said: Said) -> str:
        return topic_of_cluster(clusters.get(said.server, ""), said.name) if by_cluster else said.name

    brokers = name_brokers(_evidence(rows, servers, clusters), stated)
    return ClusterNames(
        {said.told: said.name for said in rows[SHOWN_ID]},
        ids_in_force(
            spans_shown((key(said), said) for said in rows[SHOWN_ID]),
            [(key(said), said.told, said.first) for said in rows[CHANGE] if said.first is not None],
        ),
        brokers.named,
        clusters,
        brokers.unnamed,
    )


def _advertised(rows: Rows) -> list[Advertised]:
    return [Advertised(s.server, s.name, int(s.told), s.first) for s in rows[BROKER] if s.first is not None]


def _evidence(rows: Rows, servers: Sequence[str], clusters: Mapping[str, str]) -> BrokerEvidence:
    return BrokerEvidence(
        servers,
        _advertised(rows),
        [Follows(said.server, said.name, said.first) for said in rows[FOLLOWER] if said.first is not None],
        _led_by(rows, clusters),
        {said.name for said in rows[CONTROLLER]},
        clusters,
    )


def _led_by(rows: Rows, clusters: Mapping[str, str]) -> dict[str, set[int]]:
    """By server the leaders of what it answers for; consumers' fetches tell if no broker is known to be in a rack."""

    def led(said: Said) -> tuple[Partition, list[int]]:
        partition, *numbers = map(int, said.told.split("/"))
        return Partition(clusters.get(said.server, ""), said.name, partition), numbers

    def times(said: Said) -> tuple[int, int]:
        return (NEVER, ALWAYS) if said.first is None or said.last is None else (said.first, said.last)

    answered = [*rows[LED], *(() if rows[PLACED] else rows[READ])]
    return leaders_by_server(
        [Led(of, epoch, node, *times(said)) for said in rows[LEADER] for of, (epoch, node) in [led(said)]],
        [Fetched(said.server, of, epoch) for said in answered for of, (epoch,) in [led(said)]],
        [Produced(said.server, led(said)[0], *times(said)) for said in rows[PRODUCED]],
    )


def spans_shown(said: Iterable[tuple[str, Said]]) -> list[tuple[str, str, int, int]]:
    """(name, id, when it was first told, and last asked for) of all servers' rows together, each name by its key."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for name, of in said:
        found[name, of.told].append((of.first or 0, of.last or 0))
    return [(*shown, min(times)[0], max(last for _, last in times)) for shown, times in found.items()]
