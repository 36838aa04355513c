"""What the replay of fetches takes from silver tables: the batches of each partition, and its reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa

from schemas.tables.event_kinds import LogEvent
from schemas.tables.silver import FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps import LOG_EVENTS, READS
from schemas.tables.values import FOLLOWER, FROM_PRODUCE, FULL
from schemas.wire.errors import OFFSET_MOVED_TO_TIERED_STORAGE
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.arrow_columns import us_since_1970
from udfs.replay.fetch_max_bytes.settings import JAVA_3, JAVA_4, LIBRDKAFKA
from udfs.replay.shared.client_software import JAVA, Software, librdkafka_release, numbers_by_connection
from udfs.replay.shared.dealt_rows import Step
from udfs.replay.shared.process_addresses import ONE_ADDRESS_EACH, ProcessAddresses
from udfs.replay.shared.silver_columns import (
    ByConnection,
    Column,
    constant_column,
    event_rows,
    first_text,
    is_known,
    is_text,
    null_unless,
    rows_where,
    same_columns,
    sum_or_null,
    text_or_empty,
)
from udfs.wire.record_batches import MAGIC_VALUE_V2

_T, _B, _F, _R = LOG_EVENTS, RECORD_BATCHES, FETCH_PARTITIONS, READS
LOGS = Step(_T, (_T.topic_key, _T.partition), (_T.kind, _T.position, _T.connection_id, _T.exchange_no))
READERS = Step(
    _R,
    (_R.group, _R.client_id, _R.client_address, _R.reader),
    (_R.request_time, _R.connection_id, _R.exchange_no, _R.read_position),
    leads=True,
)
BATCH_COLUMNS = (
    _B.topic, _B.topic_id, _B.partition, _B.connection_id, _B.exchange_no, _B.api_version, _B.source, _B.base_offset,
    _B.last_offset_delta, _B.size_bytes, _B.magic, _B.record_count, _B.partition_leader_epoch, _B.error_code,
    _B.request_time, _B.response_time, _B.producer_id, _B.is_transactional, _B.is_control,
)  # fmt: skip
AS_READ = (
    _T.partition, _T.fetch_offset, _T.broker, _T.client_address, _T.reader, _T.connection_id, _T.exchange_no,
    _T.api_version, _T.max_wait_ms, _T.min_bytes, _T.max_bytes, _T.readable_known, _T.read_position,
    _T.partition_max_bytes, _T.returned_bytes, _T.response_record_bytes,
)  # fmt: skip
READ_COLUMNS = (
    *AS_READ, _F.topic, _F.topic_id, _F.client_id, _F.request_time, _F.response_time, _F.error_code,
    _F.preferred_read_replica, _F.isolation_level, _F.last_stable_offset, _F.high_watermark, _F.response_error_code,
    _F.throttle_time_ms, _F.response_session_id, _F.session_id, _F.kind, _F.aborted_producer_ids,
    _F.aborted_first_offsets, _F.replica_id, _F.is_delayed, _F.diverging_epoch,
)  # fmt: skip
AS_WITNESS = (
    _T.topic, _T.topic_key, _T.partition, _T.position, _T.connection_id, _T.exchange_no, _T.request_time,
    _T.fetch_offset, _T.returned_bytes, _T.partition_max_bytes, _T.max_bytes, _T.response_record_bytes, _T.bound_low,
    _T.reader, _T.found_nothing, _T.readable_known,
)  # fmt: skip
"""The columns of a read that is a witness: it shows where the log or a segment ended."""
READ_COMMITTED = 1
"""Of FETCH_PARTITIONS.isolation_level (org.apache.kafka.common.IsolationLevel)."""
FUTURE_LOCAL_REPLICA_ID = -3
"""Of FETCH_PARTITIONS.replica_id: the only negative replica_id that reads to the log end (FetchRequest.isConsumer). A
debugging consumer, -2, reads to the high watermark since Kafka 0.8.2, as -1 does."""
MOST_BATCH_BYTES = (1 << 31) - 1
"""Kafka's sizes are INT32; bytes that claim more are not a batch of a log."""
_MAJOR = re.compile(r"[0-9]{1,9}(?![0-9])")  # a client may write any text, of any length


class TieredTopics(NamedTuple):
    """Which topics have tiered storage (KIP-405), as far as that is known.

    others: whether all topics that are not in `names` have it. names: the topics for which the opposite holds.
    """

    others: bool = False
    names: frozenset[str] = frozenset()


NO_TIERED_TOPICS = TieredTopics()


def profiles_by_connection(software: Mapping[int, Software]) -> ByConnection:
    """The rules that each connection's client follows (client_order), for clients whose software is known."""
    profiles = {connection: _profile(of) for connection, of in software.items()}
    return numbers_by_connection({connection: number for connection, number in profiles.items() if number is not None})


def _profile(software: Software) -> int | None:
    name, version = software.name or "", software.version or ""
    if name == JAVA:
        major = _MAJOR.match(version)
        return JAVA_3 if major and int(major[0]) < 4 else JAVA_4
    return None if librdkafka_release(software) is None else LIBRDKAFKA


def batch_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches that are in a log, from rows of RECORD_BATCHES: those with known offsets that were produced without
    error, or fetched.
    """
    b, t = RECORD_BATCHES, LOG_EVENTS
    for batch in batches:
        delta = batch[b.last_offset_delta].cast(pa.int64())
        last = sum_or_null(batch[b.base_offset], delta)  # null if the header is cut off or impossible
        is_produced = is_text(batch[b.source], FROM_PRODUCE)
        in_log = pc.and_(pc.less_equal(batch[b.size_bytes], MOST_BATCH_BYTES), is_known(last))
        appended = pc.or_(pc.invert(is_produced), pc.equal(pc.fill_null(batch[b.error_code], 0), 0))
        # A producer leaves out no offset of a batch. The log cleaner keeps a batch's offsets but not all its records.
        is_sparse = pc.and_(
            pc.greater_equal(batch[b.magic], MAGIC_VALUE_V2),
            pc.less_equal(batch[b.record_count].cast(pa.int64()), delta),
        )
        columns = {
            **same_columns((t.topic, t.partition, t.connection_id, t.exchange_no, t.api_version, t.size_bytes), batch),
            t.topic_key: first_text(batch[b.topic_id], batch[b.topic]),
            t.kind: constant_column(LogEvent.BATCH, batch, pa.int8()),
            t.position: batch[b.base_offset],
            t.last_offset: last,
            t.is_old_format: pc.less(batch[b.magic], MAGIC_VALUE_V2),
            t.is_sparse: is_sparse,
            t.records: null_unless(is_known(last), given_records(batch)),
            t.producer_id: null_unless(pc.fill_null(batch[b.is_transactional], False), batch[b.producer_id]),
            t.is_control: batch[b.is_control],
            t.leader_epoch: null_unless(pc.invert(is_produced), batch[b.partition_leader_epoch]),
            t.append_after: null_unless(is_produced, us_since_1970(batch[b.request_time])),
            t.append_before: us_since_1970(batch[b.response_time]),
        }
        yield rows_where(event_rows(columns), pc.and_(in_log, appended))


def given_records(batch: pa.RecordBatch) -> Column:
    """How many records of each batch an application can get: as many as its header says, at most one for each offset.

    Control records never reach the application (CompletedFetch.nextFetchedRecord).
    """
    b = RECORD_BATCHES
    offsets = pc.add(batch[b.last_offset_delta].cast(pa.int64()), 1)
    records = pc.max_element_wise(
        pc.min_element_wise(pc.coalesce(batch[b.record_count].cast(pa.int64()), offsets), offsets), 0
    )
    return pc.if_else(pc.fill_null(batch[b.is_control], False), pa.scalar(0, pa.int64()), records)


def aborted_events(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The aborted transactions that responses name, from rows of FETCH_PARTITIONS."""
    t, f = LOG_EVENTS, FETCH_PARTITIONS
    naming = rows.filter(is_known(rows[f.aborted_producer_ids]))
    producers, offsets = naming[f.aborted_producer_ids], naming[f.aborted_first_offsets]
    of = naming.take(pc.list_parent_indices(producers))
    return event_rows(
        {
            **same_columns((t.topic, t.partition, t.connection_id, t.exchange_no), of),
            t.topic_key: first_text(of[f.topic_id], of[f.topic]),
            t.kind: constant_column(LogEvent.ABORTED, of, pa.int8()),
            t.position: pc.list_flatten(offsets),
            t.producer_id: pc.list_flatten(producers),
        }
    )


def read_events(
    batches: Iterable[pa.RecordBatch],
    profiles: ByConnection,
    tiered: TieredTopics = NO_TIERED_TOPICS,
    processes: ProcessAddresses = ONE_ADDRESS_EACH,
) -> Iterator[pa.RecordBatch]:
    """The partitions that brokers read for fetches, from rows of FETCH_PARTITIONS, with the bound of the reader
    (FetchIsolation.of, Kafka 4.3). Reads that show where the log or a segment ended come a second time, as witnesses.
    processes: those of clients that are several.
    """
    t, f = LOG_EVENTS, FETCH_PARTITIONS
    for batch in batches:
        rows = rows_where(batch, pc.and_(is_known(batch[f.read_position]), is_known(batch[f.fetch_offset])))
        is_follower = is_text(rows[f.reader], FOLLOWER)
        sent_on = pc.greater_equal(pc.fill_null(rows[f.preferred_read_replica], -1), 0)
        # A follower whose log differs from the leader's gets the epoch at which they diverge, and no records (KIP-595).
        diverges = pc.greater_equal(pc.fill_null(rows[f.diverging_epoch], -1), 0)
        stopped = pc.or_(pc.or_(pc.not_equal(pc.fill_null(rows[f.error_code], 0), 0), sent_on), diverges)
        to_log_end = pc.or_(is_follower, pc.equal(rows[f.replica_id], FUTURE_LOCAL_REPLICA_ID))
        bound, bound_of_log = bounds_of_reads(rows, to_log_end, stopped)
        columns = {
            **same_columns(AS_READ, rows),
            t.client_address: processes.of(rows[f.connection_id], rows[f.client_address]),
            t.topic: rows[f.topic],
            t.topic_key: first_text(rows[f.topic_id], rows[f.topic]),
            t.kind: constant_column(LogEvent.READ, rows, pa.int8()),
            t.position: us_since_1970(rows[f.request_time]),
            t.bound_low: bound,
            t.bound_high: bound,
            t.bound_known: pc.or_(pc.or_(stopped, to_log_end), is_known(bound_of_log)),
            t.redirected: stopped,
            t.sent_to_replica: sent_on,
            t.may_be_remote: reads_of_remote_storage(rows, is_follower, bound, tiered),
            t.client_id: text_or_empty(rows[f.client_id]),
            t.request_time: us_since_1970(rows[f.request_time]),
            t.response_time: us_since_1970(rows[f.response_time]),
            t.refused: pc.not_equal(pc.fill_null(rows[f.response_error_code], 0), 0),
            t.throttled: pc.greater(pc.fill_null(rows[f.throttle_time_ms], 0), 0),
            t.throttle_ms: pc.fill_null(rows[f.throttle_time_ms], 0),
            t.response_bound: null_unless(pc.invert(stopped), bound_of_log),
            t.in_session: pc.greater(pc.coalesce(rows[f.response_session_id], rows[f.session_id]), 0),
            t.opens_session: is_text(rows[f.kind], FULL),
            t.profile: profiles.of(rows[f.connection_id], None),
            t.reads_committed: pc.equal(rows[f.isolation_level], READ_COMMITTED),
            t.found_nothing: pc.and_(rows[f.is_delayed], pc.less_equal(rows[f.min_bytes], 1)),
        }
        events = event_rows(columns)
        yield events
        yield witness_events(events, is_follower)
        yield aborted_events(rows)


def reads_of_remote_storage(rows: pa.RecordBatch, is_follower: Column, bound: Column, tiered: TieredTopics) -> Column:
    """Whether the records that each read wanted may have been in remote storage (KIP-405).

    If a topic has tiered storage, a segment that is closed and copied may be gone from the broker, however new it is.
    A response does not show whether it was. A follower is refused instead (ReplicaManager.handleOffsetOutOfRangeError,
    Kafka 4.3). bound: the offset up to which each read could go.
    """
    f = FETCH_PARTITIONS
    is_named = pc.is_in(text_or_empty(rows[f.topic]), value_set=pa.array(sorted(tiered.names), pa.string()))
    is_tiered = pc.invert(is_named) if tiered.others else is_named
    has_more = pc.fill_null(pc.less(rows[f.fetch_offset], bound), False)
    may_be = pc.and_(pc.and_(is_tiered, has_more), pc.invert(is_follower))
    moved = pc.equal(pc.fill_null(rows[f.error_code], 0), OFFSET_MOVED_TO_TIERED_STORAGE)
    return pc.or_(may_be, moved)


def bounds_of_reads(rows: pa.RecordBatch, to_log_end: Column, stopped: Column) -> tuple[Column, Column]:
    """(the offset up to which each read could go, null if only the times of appends tell it; the high_watermark or
    last_stable_offset in the response).

    An incremental response leaves out a partition if its high watermark has not moved and it has no records
    (FetchSession.CachedPartition.maybeUpdateResponseData). Its last stable offset has then not moved either: it moves
    only with the high watermark or the log start (UnifiedLog.maybeIncrementFirstUnstableOffset).
    """
    f = FETCH_PARTITIONS
    is_committed = pc.fill_null(pc.equal(rows[f.isolation_level], READ_COMMITTED), False)
    of_log = pc.coalesce(null_unless(is_committed, rows[f.last_stable_offset]), rows[f.high_watermark])
    of_consumer = null_unless(pc.invert(to_log_end), pc.coalesce(of_log, rows[f.fetch_offset]))
    return pc.if_else(stopped, rows[f.fetch_offset], of_consumer), of_log


def witness_events(reads: pa.RecordBatch, is_follower: Column) -> pa.RecordBatch:
    """The reads that show where a log or a segment ended: reads of followers without error, and of consumers that got
    records.
    """
    t = LOG_EVENTS
    has_records = pc.greater(reads[t.returned_bytes], 0)
    shows = pc.or_(is_follower, pc.and_(reads[t.bound_known], pc.fill_null(has_records, False)))
    disturbed = pc.or_(pc.or_(reads[t.refused], reads[t.throttled]), reads[t.redirected])
    is_sound = pc.and_(pc.invert(disturbed), is_known(reads[t.returned_bytes]))
    kind = reads.schema.names.index(t.kind)
    witnesses = reads.set_column(kind, str(t.kind), constant_column(LogEvent.WITNESS, reads, pa.int8()))
    return rows_where(witnesses.select([t.kind, *AS_WITNESS]), pc.and_(shows, is_sound))
