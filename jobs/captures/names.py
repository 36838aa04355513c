"""Names that only the whole capture set shows: of topics by their ids, of brokers by the addresses on which they
listen, and of their clusters.
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
from jobs.captures.cluster_names import AdvertisedBroker, name_clusters
from jobs.captures.partition_leaders import AnsweredAppend, AnsweredFetch, Leadership, TopicPartition, leaders_by_server
from jobs.captures.topic_ids import ids_in_force
from jobs.lake.packed_tables import packed_rows_of
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
    VENDOR,
    captured_names,
    distinct_names,
)
from udfs.facts.cluster_names import ClusterNames, names_several_clusters, topic_of_cluster
from udfs.facts.leading_names import LEADING_COLUMNS, leading_names
from udfs.facts.table_files import unpacked_columns

NOTHING_STATED: Mapping[str, str] = MappingProxyType({})
Gather = Callable[[Iterable[tuple[Table, pa.RecordBatch]]], pa.Table]
"""From rows of tables to the names that they show, as rows of CAPTURED_NAMES."""


def names_in_packed(
    packed: DataFrame, stated: Mapping[str, str] = NOTHING_STATED, earlier: pa.Table | None = None
) -> ClusterNames:
    """The names that packed rows show.

    packed: rows with the columns PACKED_TABLE and PACKED_ROWS. stated: node id by server. earlier: rows of
    CAPTURED_NAMES of the capture set that this one continues, if any.
    """
    names = _gather_names(packed, NAMING_COLUMNS, captured_names)
    names = names if earlier is None else pa.concat_tables([names, earlier])
    if needs_leaders(names):
        names = pa.concat_tables([names, _gather_names(packed, LEADING_COLUMNS, leading_names)])
    return learn_names(names, stated)


def _gather_names(packed: DataFrame, columns: Mapping[Table, Sequence[str]], gather_names: Gather) -> pa.Table:
    def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from gather_names(unpacked_columns(batches, columns)).to_batches()

    rows = packed_rows_of(packed, columns).mapInArrow(gather, from_arrow_schema(CAPTURED_NAMES)).toArrow()
    return rows.cast(CAPTURED_NAMES)


class CapturedName(NamedTuple):
    """A row of CAPTURED_NAMES without the column `what`, the kind of name. server: empty if it is not known."""

    server: str
    name: str
    value: str
    first: int | None
    last: int | None


NamesByKind = Mapping[str, Sequence[CapturedName]]
"""Rows of CAPTURED_NAMES by the kind of name."""


def _names_by_kind(names: pa.Table) -> NamesByKind:
    rows = distinct_names(names.cast(CAPTURED_NAMES)).sort_by([(name, "ascending") for name in CAPTURED_NAMES.names])
    by_what: dict[str, list[CapturedName]] = defaultdict(list)
    for what, *values in zip(*(rows[name].to_pylist() for name in CAPTURED_NAMES.names), strict=True):
        by_what[what].append(CapturedName(values[0] or "", *values[1:]))
    return by_what


def needs_leaders(names: pa.Table) -> bool:
    """Whether some server that speaks Kafka is at no endpoint that a response advertises. `leading_names` may then show
    which node that server is, or that other evidence about its node is wrong.

    names: rows of CAPTURED_NAMES.
    """
    rows = _names_by_kind(names)
    endpoints = {broker.endpoint for broker in _advertised_brokers(rows)}
    return any(row.value == KAFKA_PROTOCOL and row.name not in endpoints for row in rows[SERVER])


def learn_names(names: pa.Table, stated: Mapping[str, str] = NOTHING_STATED) -> ClusterNames:
    """The names that follow from all that messages and connections show.

    names: rows of CAPTURED_NAMES. stated: node id by server.
    """
    rows = _names_by_kind(names)
    servers = sorted({row.name for row in rows[SERVER]})
    clusters = name_clusters([(row.server, row.name) for row in rows[CLUSTER]], _advertised_brokers(rows), servers)
    by_cluster = names_several_clusters(clusters)

    def key(row: CapturedName) -> str:
        return topic_of_cluster(clusters.get(row.server, ""), row.name) if by_cluster else row.name

    brokers = name_brokers(_broker_evidence(rows, servers, clusters), stated)
    return ClusterNames(
        topic_of={row.value: row.name for row in rows[SHOWN_ID]},
        ids_of=ids_in_force(
            spans_of_names((key(row), row) for row in rows[SHOWN_ID]),
            [(key(row), row.value, row.first) for row in rows[CHANGE] if row.first is not None],
        ),
        broker_of=brokers.named,
        cluster_of=clusters,
        unnamed=brokers.unnamed,
        vendor_of={row.name: row.value for row in rows[VENDOR]},
    )


def _advertised_brokers(rows: NamesByKind) -> list[AdvertisedBroker]:
    return [AdvertisedBroker(s.server, s.name, int(s.value), s.first) for s in rows[BROKER] if s.first is not None]


def _broker_evidence(rows: NamesByKind, servers: Sequence[str], clusters: Mapping[str, str]) -> BrokerEvidence:
    return BrokerEvidence(
        servers,
        _advertised_brokers(rows),
        [Follows(row.server, row.name, row.first) for row in rows[FOLLOWER] if row.first is not None],
        _leaders_by_server(rows, clusters),
        {row.name for row in rows[CONTROLLER]},
        clusters,
    )


def _leaders_by_server(rows: NamesByKind, clusters: Mapping[str, str]) -> dict[str, set[int]]:
    """The nodes that lead the partitions for which each server answers, by server. Fetches of consumers count only if
    no broker is known to be in a rack, because otherwise a follower may answer them.
    """

    def led(row: CapturedName) -> tuple[TopicPartition, list[int]]:
        partition, *numbers = map(int, row.value.split("/"))
        return TopicPartition(clusters.get(row.server, ""), row.name, partition), numbers

    def times(row: CapturedName) -> tuple[int, int]:
        return (NEVER, ALWAYS) if row.first is None or row.last is None else (row.first, row.last)

    answered = [*rows[LED], *(() if rows[PLACED] else rows[READ])]
    return leaders_by_server(
        [Leadership(of, epoch, node, *times(row)) for row in rows[LEADER] for of, (epoch, node) in [led(row)]],
        [AnsweredFetch(row.server, of, epoch) for row in answered for of, (epoch,) in [led(row)]],
        [AnsweredAppend(row.server, led(row)[0], *times(row)) for row in rows[PRODUCED]],
    )


def spans_of_names(rows: Iterable[tuple[str, CapturedName]]) -> list[tuple[str, str, int, int]]:
    """(name, id, when a response first had the id, when a request last asked for it), us since 1970, over all servers.

    rows: rows of CAPTURED_NAMES of the kind SHOWN_ID, each with the name for which it counts.
    """
    spans: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for name, of in rows:
        spans[name, of.value].append((of.first or 0, of.last or 0))
    return [(*name_and_id, min(times)[0], max(last for _, last in times)) for name_and_id, times in spans.items()]
