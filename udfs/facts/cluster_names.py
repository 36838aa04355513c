"""Names of brokers, topics and clusters that only a whole capture set shows, and how rows get these names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.silver import CONNECTIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.table import Table
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array
from udfs.columns.searches import place_behind
from udfs.columns.time_units import ALWAYS, NEVER

BROKER, TOPIC, TOPIC_ID = "broker", "topic", "topic_id"
REQUEST_TIME, RESPONSE_TIME = "request_time", "response_time"
CLUSTER_SEPARATOR = "/"


def topic_of_cluster(cluster_id: str, topic: str) -> str:
    """The key of a topic if there are several clusters. Topic names do not contain the separator."""
    return f"{cluster_id}{CLUSTER_SEPARATOR}{topic}"


def names_several_clusters(cluster_of: Mapping[str, str]) -> bool:
    """Whether the servers belong to more than one cluster, so that one name may stand for two topics."""
    return len(set(cluster_of.values())) > 1


class IdInForce(NamedTuple):
    """A topic id, and the first and the last time at which the topic's name stands for it, us since 1970."""

    topic_id: str
    since: int = ALWAYS
    until: int = NEVER


@dataclass(frozen=True)
class ClusterNames:
    """Names that a capture set shows.

    topic_of: topic name by topic id. ids_of: the ids for which a topic name stands, in time order, by topic name, or by
    `topic_of_cluster` if there are several clusters. broker_of: node id by server. cluster_of: cluster id by server.
    unnamed: why a server has no node id, and what to do, by server. vendor_of: the vendor of a broker that is not
    Apache Kafka's, by server.
    """

    topic_of: Mapping[str, str] = field(default_factory=dict)
    ids_of: Mapping[str, Sequence[IdInForce]] = field(default_factory=dict)
    broker_of: Mapping[str, str] = field(default_factory=dict)
    cluster_of: Mapping[str, str] = field(default_factory=dict)
    unnamed: Mapping[str, str] = field(default_factory=dict)
    vendor_of: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def has_several_clusters(self) -> bool:
        """Whether the capture set has more than one cluster."""
        return names_several_clusters(self.cluster_of)

    @cached_property
    def _in_force(self) -> tuple[pa.Array[Any], Ints, pa.Array[Any]]:
        """(topic names; int64[3, ids] with the number of the name, `since` and `until` of each id; the ids)."""
        spans = [(number, *span) for number, ids in enumerate(self.ids_of.values()) for span in ids]
        times = np.array([(number, since, until) for number, _, since, until in spans], np.int64).reshape(-1, 3).T
        texts = [topic_id for _, topic_id, _, _ in spans]
        return pa.array(self.ids_of, pa.string()), np.ascontiguousarray(times), pa.array(texts, pa.string())

    def id_between(
        self, server: pa.Array[Any], topic: pa.Array[Any], first: pa.Array[Any], last: pa.Array[Any]
    ) -> pa.Array[Any]:
        """The id for which each topic name stands on a server from one time to another: string[n], null if that is not
        known, or if it is not the same id all the time.

        last: null for a row with one time. A row without any time gets an id only if its name stands for a single one.
        """
        names, (name_of_id, since, until), ids = self._in_force
        if self.has_several_clusters:
            cluster: Any = look_up_texts(server, self.cluster_of).fill_null("")
            parts: list[Any] = [cluster, topic.cast(pa.string()), CLUSTER_SEPARATOR]
            topic = pc.binary_join_element_wise(*parts)
        number = pc.index_in(topic, value_set=names).fill_null(-1).to_numpy().astype(np.int64)
        times_us = ((first, ALWAYS), (pc.coalesce(last, first), NEVER))
        from_us, to_us = (time.cast(pa.int64()).fill_null(end).to_numpy() for time, end in times_us)
        place = place_behind(name_of_id, since, np.maximum(number, 0), from_us) - 1
        within = np.where((number >= 0) & (place >= 0), place, len(ids))
        is_name = np.append(name_of_id, -1)[within] == number
        known = is_name & (to_us <= np.append(until, ALWAYS)[within]) & (number >= 0)
        return ids.take(arrow_array(place, known))


def with_names(rows: pa.RecordBatch, table: Table, names: ClusterNames) -> pa.RecordBatch:
    """The table's rows with the names of brokers, clusters and topics filled in. A topic without a name gets its id.

    A broker handles a request at some time between request and response. If a topic was deleted and made again
    meanwhile, a batch of that request may be in the log of either, so it gets no id. A fetch gets the id of the time of
    its request: if it waits, it ends when the topic is deleted (ReplicaManager.stopPartitions of Kafka 4.3).
    """
    named: dict[str, pa.Array[Any]] = {}
    if BROKER in table.columns:
        named[BROKER] = _first_not_null(look_up_texts(rows[BROKER], names.broker_of), rows[BROKER])
    if table == CONNECTIONS:  # connections that are not Kafka's have no broker
        named[CONNECTIONS.cluster_id] = look_up_texts(rows[BROKER], names.cluster_of)
    if table != CLUSTER_METADATA and TOPIC_ID in table.columns:
        topic, topic_id, requested = rows[TOPIC], rows[TOPIC_ID], rows[REQUEST_TIME]
        answered = rows[RESPONSE_TIME] if table == RECORD_BATCHES else requested
        by_name = names.id_between(rows[BROKER], topic, requested, answered)
        named[TOPIC_ID] = _first_not_null(topic_id, by_name)
        named[TOPIC] = _first_not_null(topic, look_up_texts(topic_id, names.topic_of), named[TOPIC_ID])
    columns = [named.get(name, column) for name, column in zip(rows.schema.names, rows.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def look_up_texts(keys: pa.Array[Any], texts: Mapping[str, str]) -> pa.Array[Any]:
    """The text of each key, string[n], null for keys without one; texts: by key."""
    known = pc.index_in(keys, value_set=pa.array(texts, pa.string()))
    return pa.array(texts.values(), pa.string()).take(known)


def _first_not_null(*columns: pa.Array[Any]) -> pa.Array[Any]:
    """The first value in each row that is not null."""
    return pc.coalesce(*columns)
