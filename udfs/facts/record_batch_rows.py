"""Record batches of produce requests and fetch responses as rows of `record_batches`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.tables.silver import RECORD_BATCHES
from schemas.tables.values import FROM_FETCH, FROM_PRODUCE
from schemas.wire.produce import PRODUCE_REQUEST, PRODUCE_RESPONSE
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import arrow_array, dictionary_column, repeated_text_column
from udfs.columns.picking import pick_values, position_among
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.arrow_tables import Values, make_rows, nulls_besides
from udfs.facts.exchanges import Exchanges, shared_columns
from udfs.facts.fetches import FetchMessages, consumer_exchanges
from udfs.facts.message_bodies import note_faults, request_bodies, response_bodies
from udfs.facts.number_columns import Picked
from udfs.facts.record_sampling import RecordSampling
from udfs.facts.record_sizes import SIZE_COLUMNS, record_columns
from udfs.wire.message_sets import Unwrapped, unwrap_batches
from udfs.wire.messages import decode_bodies
from udfs.wire.record_batches import MAGIC_VALUE_V2, RecordBatches, walk_batches
from udfs.wire.records import Budget

NOT_ASSIGNED = -1  # the base offset of a produced batch that is not in the log


class RecordsFields(NamedTuple):
    """The `records` fields of messages: where they are in the arena, and what is known about their partitions;
    int64[n].
    """

    exchange: Ints
    topic: Ints
    partition: Ints
    starts: Ints
    lengths: Ints
    base_offset: Ints  # for a produce request: that in its response, NOT_ASSIGNED or UNKNOWN
    error_code: Ints
    acks: Ints
    reads_records: Bools  # bool[n]: the records are read if the run samples records


def fetched_fields(messages: FetchMessages) -> RecordsFields:
    """The `records` fields of decoded fetch responses."""
    level = messages.response.levels["responses.partitions"]
    frame = messages.response.levels["responses"].parent[level.parent]
    starts, lengths = level.span("records")
    unknown, exchange = np.full(level.rows, UNKNOWN), messages.response_exchanges[frame]
    return RecordsFields(
        exchange=exchange,
        topic=messages.lists.returned.topic,
        partition=messages.lists.returned.partition,
        starts=starts,
        lengths=lengths,
        base_offset=unknown,
        error_code=level.column("error_code"),
        acks=unknown,
        reads_records=np.isin(exchange, consumer_exchanges(messages)),
    )


def partition_keys(exchange: Ints, topic: Ints, partition: Ints) -> Ints:
    """One number for each partition of an exchange, from splitmix64's finaliser: int64[n]. topic: the topic's hash."""
    mixed: npt.NDArray[Any] = topic.astype(np.uint64) ^ partition.astype(np.uint64)
    mixed = mixed ^ (exchange.astype(np.uint64) << np.uint64(32))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed.view(np.int64)


def produced_fields(exchanges: Exchanges, which: Ints) -> RecordsFields:
    """The `records` fields of some produce requests, with the offsets from their responses.

    which: int64[n], indices of exchanges.
    """
    arena, names = exchanges.frames.arena, exchanges.names
    request_exchanges, bodies = request_bodies(exchanges, which)
    request = decode_bodies(PRODUCE_REQUEST, arena, *bodies)
    note_faults(exchanges, request_exchanges, request.fault)
    response_exchanges, bodies = response_bodies(exchanges, which)
    response = decode_bodies(PRODUCE_RESPONSE, arena, *bodies)
    fine = note_faults(exchanges, response_exchanges, response.fault)
    exchanges.throttle[response_exchanges[fine]] = response.levels[""].column("throttle_time_ms")[fine]

    level = request.levels["topic_data.partition_data"]
    topic = names.learn_topics(arena, request.levels["topic_data"], "name")[level.parent]
    frame = request.levels["topic_data"].parent[level.parent]
    answer = response.levels["responses.partition_responses"]
    answer_frame = response.levels["responses"].parent[answer.parent]
    answer_topic = names.learn_topics(arena, response.levels["responses"], "name")[answer.parent]
    errors = answer.column("error_code")
    first_errors(exchanges, response_exchanges[answer_frame], errors)

    keys = partition_keys(response_exchanges[answer_frame], answer_topic, answer.column("index"))
    row = places_of_keys(partition_keys(request_exchanges[frame], topic, level.column("index")), keys)
    starts, lengths = level.span("records")
    return RecordsFields(
        exchange=request_exchanges[frame],
        topic=topic,
        partition=level.column("index"),
        starts=starts,
        lengths=lengths,
        base_offset=pick_values(answer.column("base_offset"), row, UNKNOWN),
        error_code=pick_values(errors, row, UNKNOWN),
        acks=request.levels[""].column("acks")[frame],
        reads_records=np.full(level.rows, True),
    )


def places_of_keys(wanted: Ints, keys: Ints) -> Ints:
    """The index in `keys` of each wanted key, UNKNOWN if it is not there: int64[wanted]."""
    if len(keys) == 0:
        return np.full(len(wanted), UNKNOWN)
    order = np.argsort(keys, kind="stable")
    nearest = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    return np.where(keys[nearest] == wanted, nearest, UNKNOWN)


def first_errors(exchanges: Exchanges, rows: Ints, errors: Ints) -> None:
    """Note with each exchange the first error of its partitions, 0 if there is none.

    rows, errors: int64[partitions], the exchange and the error of each partition.
    """
    exchanges.error[rows] = np.maximum(exchanges.error[rows], 0)
    wrong = np.flatnonzero(errors != 0)[::-1]
    exchanges.error[rows[wrong]] = errors[wrong]


def batch_rows(
    exchanges: Exchanges, fields: RecordsFields, source: str, records: RecordSampling | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows of `record_batches`; source: FROM_FETCH or FROM_PRODUCE; records: which records to read, None for none."""
    usable = (fields.exchange != UNKNOWN) & (fields.lengths > 0)
    fields = RecordsFields(*(column[usable] for column in fields))
    arena, budgets = exchanges.frames.arena, defaultdict[int, Budget](Budget)
    walked = walk_batches(arena, fields.starts, fields.lengths)

    def budget_of(row: int) -> Budget:
        return budgets[int(fields.exchange[walked.parent[row]])]

    content = unwrap_batches(arena, walked, budget_of)
    whole = rows_without_records(exchanges, fields, source, content)
    reads_records = fields.reads_records[walked.parent]
    for part, columns in record_columns(arena, content, source, reads_records, records, budget_of):
        rows = whole.slice(part.start, len(part))
        yield pa.RecordBatch.from_arrays(
            [columns.get(f.name, rows[f.name]) for f in rows.schema], names=rows.schema.names
        )


def rows_without_records(
    exchanges: Exchanges, fields: RecordsFields, source: str, content: Unwrapped
) -> pa.RecordBatch:
    """The rows of `record_batches`. The columns that only reading the records can fill are null."""
    batches = content.batches
    parent = batches.parent
    topic, topic_id = exchanges.names.topic_columns(fields.topic[parent])
    known = batches.size >= 0
    is_fetched = source == FROM_FETCH
    offsets = fetched_offsets(batches) if is_fetched else assigned_offsets(batches, fields.base_offset)
    t = RECORD_BATCHES
    exchange = fields.exchange[parent]
    return make_rows(
        t,
        shared_columns(exchanges, exchange)
        | {
            t.source: repeated_text_column(source, len(parent)),
            t.api_version: Picked(exchanges.api_version, exchange),
            t.topic: topic,
            t.topic_id: topic_id,
            t.partition: Picked(fields.partition, parent),
            t.position: position_among(parent),
            t.base_offset: offsets,
            t.size_bytes: Picked(batches.size, known=known),
            t.available_bytes: batches.available,
            t.is_cut: batches.is_cut != 0,
            t.magic: Picked(batches.magic, known=batches.magic >= 0),
            t.codec: dictionary_column(CODECS, np.where(batches.codec >= 0, batches.codec, len(CODECS) - 1)),
            t.timestamp_type: dictionary_column(
                TIMESTAMP_TYPES, np.where(batches.timestamp_type >= 0, batches.timestamp_type, 2)
            ),
            t.error_code: Picked(fields.error_code, parent),
            t.acks: Picked(fields.acks, parent),
            **header_columns(batches, source),
            **nulls_besides(t, set(t.columns) - set(SIZE_COLUMNS), len(parent)),
        },
    )


CODECS = pa.array(["none", "gzip", "snappy", "lz4", "zstd", "unknown", "unknown", "unknown", None])
TIMESTAMP_TYPES = pa.array(["CreateTime", "LogAppendTime", None])


def fetched_offsets(batches: RecordBatches) -> Picked:
    """The first offsets of fetched batches, which their headers have; null for a wrapper that could not be read."""
    return Picked(batches.base_offset, known=(batches.size >= 0) & (batches.base_offset >= 0))


def assigned_offsets(batches: RecordBatches, assigned: Ints) -> Picked:
    """The offsets in the log of produced batches' first records.

    assigned: int64[fields], the offset in the response, which is that of the first batch of each field. The offsets of
    further batches of a field, which only message sets have, follow from it.
    """
    before = sum_before(np.maximum(batches.record_count, 0), batches.parent)
    uncounted = sum_before((batches.record_count < 0).astype(np.int64), batches.parent)
    offset = assigned[batches.parent]
    is_known = (offset != UNKNOWN) & (offset != NOT_ASSIGNED) & (uncounted == 0)
    return Picked(offset + before, known=is_known)


def sum_before(values: Ints, parent: Ints) -> Ints:
    """For each value, the sum of the earlier values with the same parent: int64[n]; parent: int64[n], ascending."""
    sums = np.cumsum(values) - values
    return sums - sums[np.searchsorted(parent, parent)]


def header_columns(batches: RecordBatches, source: str) -> Mapping[str, Values]:
    """The columns from batch headers; null if a header is cut, or if its format has no such field."""
    has_header = batches.record_count >= 0
    # A broker assigns new offsets to the messages of a produced set, one after the other (LogValidator).
    is_produced_set = (batches.magic < MAGIC_VALUE_V2) & (source == FROM_PRODUCE)
    t = RECORD_BATCHES
    columns: dict[str, Ints] = {
        t.last_offset_delta: np.where(is_produced_set, batches.record_count - 1, batches.last_offset_delta),
        t.record_count: batches.record_count,
        t.producer_id: batches.producer_id,
        t.producer_epoch: batches.producer_epoch,
        t.base_sequence: batches.base_sequence,
        t.partition_leader_epoch: batches.partition_leader_epoch,
    }
    flags: dict[str, Ints] = {t.is_transactional: batches.is_transactional, t.is_control: batches.is_control}
    times: dict[str, Ints] = {t.base_timestamp: batches.base_timestamp, t.max_timestamp: batches.max_timestamp}
    return (
        {name: Picked(values, known=has_header) for name, values in columns.items()}
        | {name: Picked(values, known=has_header & (batches.magic > 0)) for name, values in times.items()}
        | {name: arrow_array(values == 1, has_header) for name, values in flags.items()}
        | {t.crc_valid: arrow_array(batches.crc_valid == 1, batches.crc_valid >= 0)}
    )
