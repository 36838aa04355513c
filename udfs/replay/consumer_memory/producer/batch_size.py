"""The batch.size of a producer, as its batches show it if nobody states it.

A batch takes at least batch.size bytes of memory, so a wrong batch.size makes all figures of a buffer wrong. A batch
that was still unsent when the next one of its partition began had no room for the next record
(RecordAccumulator.tryAppend). So batch.size lies between the bytes of that batch and what they are with one record
more.

Batches that are compressed end by an estimate of their size, which these numbers do not show, so a producer that
compresses has Kafka's default. So has one whose batches allow the default.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.columns.time_units import NEVER, US_PER_MS
from udfs.replay.shared.batch_size_ranges import UNBOUNDED, values_in_most_ranges
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.wire.record_batches import MAX_RECORD_OVERHEAD, RECORD_BATCH_OVERHEAD

LARGE_RECORD = 2
"""How many times the average size a record may have that a batch had no room for. Captured batches show averages."""


def with_batch_size(settings: Records, batches: Records, default: int) -> Records:
    """The lanes' settings for one producer: BUFFER_SETTINGS[lanes]. A batch.size that nobody states is the one shown.

    settings: BUFFER_SETTINGS[lanes]. batches: BUFFERED_BATCH[n], of the producer. default: bytes.
    """
    settings = settings.copy()
    is_shown = settings["batch_size"] == AS_CAPTURED
    if is_shown.any():
        settings["batch_size"][is_shown] = max(shown_batch_size(batches, default), 1)
    return settings


def shown_batch_size(batches: Records, default: int) -> int:
    """The batch.size in bytes in which most batches of a producer agree, `default` where they allow that.

    batches: BUFFERED_BATCH[n], of one producer.
    """
    plain = batches[batches["is_compressed"] == 0]
    least, most = batch_size_ranges(plain)
    values = values_in_most_ranges(least, most, default)
    return max(values, key=lambda value: int(((least <= value) & (value <= most)).sum()))


def batch_size_ranges(batches: Records) -> tuple[Ints, Ints]:
    """The least and the greatest batch.size with which each batch ends where it did: int64[n] each, bytes.

    A batch's first record is taken whatever batch.size is. batches: BUFFERED_BATCH[n], uncompressed.
    """
    size, next_record = batches["size"], next_records(batches)
    least = np.where(batches["records"] > 1, size, 0)
    return least, np.where(next_record > 0, size + next_record - 1, UNBOUNDED)


def next_records(batches: Records) -> Ints:
    """The bytes, at most, of the record for which each batch had no room: int64[n]. 0 if it may have ended for another
    reason.
    """
    order = np.lexsort((batches["appended_at"], batches["stream"]))
    following, is_last = np.roll(order, -1), np.roll(batches["stream"][order], -1) != batches["stream"][order]
    is_last[-1:] = True
    begins_at = np.where(is_last, NEVER, batches["appended_at"][following])
    content = batches["first_record_size"][following] - RECORD_BATCH_OVERHEAD
    found = np.zeros(len(batches), np.int64)
    found[order] = np.where(
        begins_at + US_PER_MS <= sent_at(batches)[order], LARGE_RECORD * content + MAX_RECORD_OVERHEAD, 0
    )
    return found


def sent_at(batches: Records) -> Ints:
    """When each batch was first sent: int64[n], us. batches: BUFFERED_BATCH[n]."""
    return batches["appended_at"] + batches["held_us"] - batches["sending_us"]
