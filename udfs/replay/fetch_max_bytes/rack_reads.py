"""Which replica serves a consumer with fetch-from-follower: RackAwareReplicaSelector, by racks (KIP-392)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.gold_racks import RACK_READS
from schemas.tables.values import BROKER_RACK, CLIENT_RACK, RACK_OF_NO_BROKER, REPLICAS
from schemas.wire.fetch import RACKS_FROM
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import arrow_array
from udfs.columns.arrow_columns import compute as pc
from udfs.facts.arrow_tables import arrow_schema, pack_rows

NO_RACK = -1
"""Stands for the number of a rack that is not known."""
KNOWN = ""
UNKNOWN_FOR = (KNOWN, CLIENT_RACK, RACK_OF_NO_BROKER, BROKER_RACK, REPLICAS)
"""The values of RACK_READS.unknown_for, with KNOWN instead of null."""
ISR, API_VERSION = "isr", "api_version"
UNCHANGED = (
    RACK_READS.client_id, RACK_READS.client_address, RACK_READS.client_rack, RACK_READS.topic, RACK_READS.partition,
    RACK_READS.broker, RACK_READS.leader, RACK_READS.bytes,
)  # fmt: skip
_READS = [arrow_schema(RACK_READS).field(str(column)) for column in UNCHANGED]
READS = pa.schema([*_READS, pa.field(ISR, pa.list_(pa.int32())), pa.field(API_VERSION, pa.int16())])
"""Reads of consumers. isr: node ids of the partition's replicas in sync, null if no Metadata response shows them.
api_version: of the Fetch requests."""
LOCATED = pa.schema([field for field in arrow_schema(RACK_READS) if field.name != RACK_READS.run_id])
"""The rows of RACK_READS without their run."""


class RackedReads(NamedTuple):
    """Reads, and the replicas in sync of the partition of each. Racks are numbers, NO_RACK for one that is not known.

    client_rack, leader_rack: int64[reads]. knows_racks: bool[reads], whether the version of the request has a rack.
    read: int64[replicas], the read of each replica, ascending. rack: int64[replicas]. is_leader: bool[replicas].
    """

    client_rack: Ints
    leader_rack: Ints
    knows_racks: Bools
    read: Ints
    rack: Ints
    is_leader: Bools


def replicas_sent_to(of: RackedReads) -> Bools:
    """The replicas to which leaders would send the consumers: bool[replicas]. A read without one stays at its leader.
    Of several, Kafka takes the replica that is caught up most.

    ReplicaManager.findPreferredReadReplica leaves out replicas that are not in sync. RackAwareReplicaSelector.select
    takes the leader if it is in the consumer's rack, and otherwise a replica in that rack (Kafka 4.3.1). A replica in
    sync has all records that a consumer can ask for, except records that it deleted before the leader did; these are
    not looked at.
    """
    is_sent = of.knows_racks & (of.leader_rack != of.client_rack) & (of.client_rack != NO_RACK)
    sent: Bools = is_sent[of.read] & ~of.is_leader & (of.rack == of.client_rack[of.read])
    return sent


def why_unknown(of: RackedReads, racks_of_brokers: Ints) -> Ints:
    """Why it is not known who serves each read, as an index in UNKNOWN_FOR, 0 if it is known: int64[reads].

    racks_of_brokers: int64[n], the racks of all brokers.
    """
    replicas = np.bincount(of.read, minlength=len(of.client_rack))
    without_rack = np.bincount(of.read, of.rack == NO_RACK, len(of.client_rack))
    whys = [
        (of.client_rack == NO_RACK, CLIENT_RACK),
        (~np.isin(of.client_rack, racks_of_brokers), RACK_OF_NO_BROKER),
        (of.leader_rack == NO_RACK, BROKER_RACK),
        ((of.leader_rack == of.client_rack) | ~of.knows_racks, KNOWN),
        (replicas == 0, REPLICAS),
        (without_rack > 0, BROKER_RACK),
    ]
    codes = [UNKNOWN_FOR.index(word) for _, word in whys]
    return np.select([is_so for is_so, _ in whys], codes, UNKNOWN_FOR.index(KNOWN)).astype(np.int64)


def located_reads(batches: Iterable[pa.RecordBatch], racks: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Rows of LOCATED from rows of READS. racks: the rack of each broker whose rack is known, by node id."""
    t = RACK_READS
    brokers, names = pa.array(racks, pa.string()), pa.array(racks.values(), pa.string())
    for batch in batches:
        rows = batch.cast(READS)
        place = pc.list_parent_indices(rows[ISR])
        replica = pc.list_flatten(rows[ISR])
        order = np.lexsort((replica.to_numpy(), place.to_numpy()))
        read, replica = place.to_numpy()[order].astype(np.int64), replica.take(arrow_array(order)).cast(pa.string())
        rack_of = partial(_rack_of, brokers, names)
        number = partial(_number_of, pc.unique(pa.chunked_array([names, rows[t.client_rack]])))
        of = RackedReads(
            number(rows[t.client_rack]),
            number(rack_of(rows[t.leader])),
            pc.greater_equal(rows[API_VERSION], RACKS_FROM).to_numpy(zero_copy_only=False),
            read,
            number(rack_of(replica)),
            pc.equal(rows[t.leader].take(arrow_array(read)), replica).to_numpy(zero_copy_only=False),
        )
        why = why_unknown(of, np.unique(number(names)))
        sent = replicas_sent_to(of)
        counts = np.bincount(read[sent], minlength=len(rows))
        texts = _joined(replica.filter(arrow_array(sent)), counts)
        is_sent, is_known = arrow_array(counts > 0), arrow_array(why == 0)
        preferred_rack = pc.if_else(is_sent, rows[t.client_rack], rack_of(rows[t.leader]))
        columns = {
            **{str(column): rows[column] for column in UNCHANGED},
            t.broker_rack: rack_of(rows[t.broker]),
            t.leader_rack: rack_of(rows[t.leader]),
            t.preferred: pc.if_else(is_known, pc.if_else(is_sent, texts, rows[t.leader]), None),
            t.preferred_rack: pc.if_else(is_known, preferred_rack, None),
            t.unknown_for: pa.array([None, *UNKNOWN_FOR[1:]]).take(arrow_array(why)),
        }
        yield pa.RecordBatch.from_arrays([columns[field.name] for field in LOCATED], schema=LOCATED)


def _rack_of(brokers: pa.Array[Any], racks: pa.Array[Any], broker: pa.Array[Any]) -> pa.Array[Any]:
    """The rack of each broker, null if it is not known."""
    return racks.take(pc.index_in(broker, value_set=brokers))


def _number_of(racks: pa.Array[Any], rack: pa.Array[Any]) -> Ints:
    """The number of each rack, NO_RACK for null: int64[n]."""
    place = pc.index_in(rack, value_set=racks.drop_null())
    return pc.fill_null(place, NO_RACK).to_numpy(zero_copy_only=False).astype(np.int64)


def _joined(texts: pa.Array[Any], counts: Ints) -> pa.Array[Any]:
    """The texts of each row, with commas between. counts: int64[rows], how many texts each row has."""
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts), ",")


def packed_rack_reads(batches: Iterable[pa.RecordBatch], run_id: str) -> Iterator[pa.RecordBatch]:
    """Rows of PACKED from rows of LOCATED."""
    schema = arrow_schema(RACK_READS)
    for batch in batches:
        rows = batch.append_column(RACK_READS.run_id, pa.array([run_id] * len(batch), pa.string()))
        yield from pack_rows(RACK_READS, rows.select(schema.names).cast(schema))
