"""What producers sent: their batches, from the first record to the last answer.

A batch that is sent again keeps its memory. A batch that was too large releases its memory when it is
split, and its parts take no memory of the pool (RecordAccumulator.splitAndReenqueue and deallocate, Kafka 4.4). Nor
does a single part, if the whole batch is within batch.size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Bools, Ints, Records, read_only
from udfs.columns.groups import group_numbers
from udfs.columns.records import int_fields, new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER, US_PER_MS
from udfs.replay.consumer_memory.producer.requests import lingers_of, requests_of_sendings, shares_behind
from udfs.replay.shared.resent_batches import ProducedBatches, mark_resent
from udfs.replay.shared.window import WHOLE, Window
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

BUFFERED_BATCH = int_fields(
    "unit",
    "stream",  # the number of its partition on its connection
    "appended_at",  # us: when its first record was appended
    "filled_at",  # us: when its last record was appended in the capture
    "size",  # bytes on the wire
    "records",
    "first_record_size",  # bytes of a batch with only its first record
    "is_compressed",
    "may_grow",  # 1: compressed and of several records, so it may have grown beyond the memory that it took
    "held_us",  # us: how long it holds its memory, from appended_at on
    "sending_us",  # us: the part of held_us in which it was in a request
    "held_after_us",  # us: the part of held_us after its first answer, if it was sent again
)
"""A batch that took memory."""
OWNED = ("batch", "stream", "connection", "request")
"""What each producer has rows of."""
PRODUCER = np.dtype(
    [
        (name, np.int64)
        for name in (
            *(f"{edge}_{name}" for name in OWNED for edge in ("first", "end")),
            "linger_us",
            "batches",  # in the window, as the next three
            "batch_bytes",
            "resent",  # how often a batch was sent again
            "split_parts",
        )
    ]
    + [("share_behind", np.float64)]
)  # fmt: skip
"""A producer: where its rows begin and end, and the share of the time under way in which its requests were behind
others."""


class Produced(NamedTuple):
    """What several producers sent. producers: PRODUCER[units].

    batches: BUFFERED_BATCH[n], those of a producer in time order. requests: SERVED_REQUEST[m]. stream_connections:
    int64[streams], the connection of each stream. Connections are numbered by producer, and streams by producer and
    connection.
    """

    producers: Records
    batches: Records
    requests: Records
    stream_connections: Ints
    window: Window = WHOLE


def read_produced(sendings: Records, units: int, window: Window = WHOLE) -> Produced:
    """What `units` producers sent. sendings: SENDING[n]."""
    rows = sendings[np.lexsort((sendings["sent_at"], sendings["appended_at"], sendings["unit"]))]
    parent, offset = parents_of_sendings(rows)
    is_whole, end_at = held_until(rows, parent, offset)
    is_first = parent == NONE
    connection, firsts = group_numbers(rows["unit"], rows["connection"])
    stream, first_of_stream = group_numbers(connection[is_first], rows["stream"][is_first])
    answered_at = np.where(rows["answered_at"] == NEVER, rows["sent_at"], rows["answered_at"])
    requests, request = requests_of_sendings(connection, rows["request"], rows["sent_at"], answered_at)
    batches = batches_of_sendings(rows[is_first], end_at[is_first], answered_at[is_first], stream)
    stream_connections, unit = connection[is_first][first_of_stream], rows["unit"][firsts]
    owner, appended_at, is_counted = unit[requests["connection"]], batches["appended_at"], window.has(rows["sent_at"])
    producers = new_records(
        PRODUCER,
        units,
        linger_us=lingers_of(requests, owner, units, request[is_first], appended_at),
        batches=np.bincount(batches["unit"][window.has(appended_at)], minlength=units),
        resent=np.bincount(rows["unit"][is_whole & is_counted], minlength=units),
        split_parts=np.bincount(rows["unit"][~is_first & ~is_whole & is_counted], minlength=units),
        share_behind=shares_behind(requests, owner, units),
    )
    np.add.at(producers["batch_bytes"], batches["unit"], np.where(window.has(appended_at), batches["size"], 0))
    owners = (batches["unit"], unit[stream_connections], unit, owner)
    for name, numbers in zip(OWNED, owners, strict=True):
        edges = np.searchsorted(numbers, np.arange(units + 1))
        producers[f"first_{name}"], producers[f"end_{name}"] = edges[:-1], edges[1:]
    return Produced(producers, batches, requests, stream_connections, window)


def sent_by(produced: Produced, unit: int) -> Produced:
    """What one producer sent, by its number. Its batches, streams, connections and requests are numbered from 0."""
    producers = produced.producers[unit : unit + 1].copy()
    firsts = {name: int(producers[f"first_{name}"][0]) for name in OWNED}
    rows = {name: slice(first, int(producers[f"end_{name}"][0])) for name, first in firsts.items()}
    for name, first in firsts.items():
        producers[f"first_{name}"] -= first
        producers[f"end_{name}"] -= first
    batches, requests = produced.batches[rows["batch"]].copy(), produced.requests[rows["request"]].copy()
    batches["stream"] -= firsts["stream"]
    requests["connection"] -= firsts["connection"]
    connections = produced.stream_connections[rows["stream"]] - firsts["connection"]
    return Produced(producers, batches, requests, connections, produced.window)


def batches_of_sendings(rows: Records, end_at: Ints, answered_at: Ints, stream: Ints) -> Records:
    """The first sendings of batches as BUFFERED_BATCH[n].

    rows: SENDING[n]. end_at: int64[n], us, until when each batch holds its memory. answered_at: int64[n], us, its first
    answer. stream: int64[n], the number of its stream.
    """
    appended_at, sent_at, size, records = (rows[name] for name in ("appended_at", "sent_at", "size", "records"))
    several = records > 1
    last_ms = np.clip(rows["last_timestamp_ms"], 0, sent_at // US_PER_MS)
    record_size = np.maximum(size - RECORD_BATCH_OVERHEAD, 1) // np.maximum(records, 1)
    return new_records(
        BUFFERED_BATCH,
        len(rows),
        unit=rows["unit"],
        stream=stream,
        appended_at=appended_at,
        filled_at=np.where(several, np.minimum((last_ms + 1) * US_PER_MS, sent_at), sent_at),
        size=size,
        records=records,
        first_record_size=np.where(several, np.minimum(record_size + RECORD_BATCH_OVERHEAD, size), size),
        is_compressed=rows["is_compressed"],
        may_grow=several & (rows["is_compressed"] == 1),
        held_us=np.maximum(end_at - appended_at, 0),
        sending_us=np.maximum(end_at - np.maximum(sent_at, appended_at), 0),
        held_after_us=np.maximum(end_at - answered_at, 0),
    )


def held_until(rows: Records, parent: Ints, offset: Ints) -> tuple[Bools, Ints]:
    """(whether each sending sends a whole batch again, bool[n]; until when a batch holds its memory, int64[n], us).

    rows: SENDING[n]. parent, offset: int64[n], from `parents_of_sendings`.
    """
    sent_at, answered_at, records = rows["sent_at"], rows["answered_at"], rows["records"]
    is_again = parent != NONE
    original = np.where(is_again, parent, np.arange(len(parent)))
    is_whole = is_again & (offset == 0) & (records == records[original])
    is_split = (rows["error"] == MESSAGE_TOO_LARGE) & (records > 1) & (is_whole | ~is_again)
    split_at = np.full(len(parent), NEVER)
    np.minimum.at(split_at, original[is_split], answered_at[is_split])
    is_whole &= sent_at < split_at[original]
    end_at = np.where(answered_at == NEVER, sent_at, answered_at)
    np.maximum.at(end_at, original[is_whole], end_at[is_whole])
    return is_whole, np.minimum(end_at, split_at)


def parents_of_sendings(rows: Records) -> tuple[Ints, Ints]:
    """(the earlier sending of the same records, NONE for the first; the index of the first record within it).

    rows: SENDING[n], those of each producer in the order of appends, then of sending.
    """
    n, (stream, streams) = len(rows), group_numbers(rows["unit"], rows["stream"])
    none = read_only(np.zeros(n, np.int64))
    columns = ProducedBatches(
        request_time=read_only(rows["sent_at"]),
        response_time=read_only(rows["answered_at"]),
        size=read_only(rows["size"]),
        codec=none,
        records=read_only(rows["records"]),
        sequence=read_only(rows["sequence"]),
        error=read_only(rows["error"]),
        uncompressed=none,
        first_timestamp=read_only(rows["first_timestamp_ms"]),
        last_timestamp=read_only(rows["last_timestamp_ms"]),
    )
    parent, offset, before = np.zeros((3, n), np.int64)
    mark_resent(read_only(stream), columns, before, np.full(len(streams), NONE), parent, offset)
    return parent, offset
