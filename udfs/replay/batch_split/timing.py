"""The times of a replayed producer: when records were appended, and batches were closed, split and sent again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Ints, Records
from udfs.columns.groups import greatest_before
from udfs.columns.records import new_records
from udfs.columns.searches import place_behind
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.state import PART, Capture

BYTES_SHARE = 0.4
"""The share of the time between two closes of a partition that is in proportion to bytes, while batches wait for the
client to send them. The rest is the same for every batch. VALIDATION.md says how it was measured."""


class Times(NamedTuple):
    """Times in us. append: int64[records], when each record was appended. close: int64[sendings], when each sending was
    closed. split: int64[sendings], when it was split, if it was refused.
    """

    append: Ints
    close: Ints
    split: Ints


def capture_at_times(sent: Sent, times: Times, linger_us: int) -> Capture:
    """The capture, with its records, parts and batches at these times."""
    parts, first_parts = split_parts(sent, times)
    records = sent.capture.records.copy()
    records["time"] = times.append
    # If parts begin with the same record, the one that was sent first comes last, and is kept.
    records["part"][first_parts] = np.arange(len(parts))
    return sent.capture._replace(records=records, parts=parts, batches=timed_batches(sent, times, linger_us))


def split_parts(sent: Sent, times: Times) -> tuple[Records, Ints]:
    """(the batches that splits made, in reverse order of sending: PART[parts]; the first record of each)."""
    sendings, batches = sent.sendings, sent.capture.batches
    parts = np.flatnonzero(sendings["made_by"] != NONE)
    parts = parts[np.argsort(-times.close[parts], kind="stable")]
    first = batches["first"][sendings["batch"][parts]] + sendings["offset"][parts]
    first = np.minimum(first, len(sent.capture.records) - 1)
    records = new_records(
        PART,
        len(parts),
        end=first + sendings["records"][parts],
        size=sendings["size"][parts],
        sent_at=times.close[parts],
        answered_at=answer_times(sent, times)[parts],
    )
    return records, first


def answer_times(sent: Sent, times: Times) -> Ints:
    """When the client acted on the response to each sending, NEVER if there is none: int64[sendings], us."""
    return np.where(sent.sendings["error"] == MESSAGE_TOO_LARGE, times.split, sent.sendings["response_time"])


def ready_times(sent: Sent, append: Ints, linger_us: int) -> Ints:
    """When each batch had lingered, or was full, which the next record that may go into it shows: int64[batches], us.

    append: int64[records], us, when each was appended.
    """
    batches = sent.capture.batches
    full = np.where(batches["next_record"] != NONE, append[batches["next_record"]], NEVER)
    return np.minimum(full, append[batches["first"]] + linger_us)


def soonest_times(sent: Sent, times: Times, linger_us: int) -> Times:
    """The same times, but each batch is closed as early as possible before it is first sent: when it is ready, and
    after everything that surely came before its request. The capture does not show how long before its request a batch
    was closed.
    """
    first, close = sent.capture.batches["sending"], times.close.copy()
    ready = ready_times(sent, times.append, linger_us)
    close[first] = np.clip(sent.first_sendings["not_before"], np.minimum(ready, close[first]), close[first])
    return times._replace(close=close)


def closed_before(sent: Sent, closed: Ints) -> Ints:
    """When the batch before each one in its partition was closed, 0 if there is none: int64[batches], us."""
    partition, before = sent.first_sendings["partition"], np.zeros(len(closed), np.int64)
    before[1:] = np.where(partition[1:] == partition[:-1], closed[:-1], 0)
    return before


class Queued(NamedTuple):
    """The sendings that each batch waited for: earlier batches of its partition, sent again as parts or unchanged.

    begin, until: int64[batches], us, when the client began to send them again, and when the last of them was closed; 0
    for a batch that waited for none. by: int64[batches], the batch that was split last before each, or NONE.
    """

    begin: Ints
    until: Ints
    by: Ints


def queue_waits(sent: Sent, times: Times) -> Queued:
    """What each batch of an idempotent producer waited for: it is not sent while others are sent again."""
    sendings, first = sent.sendings, sent.capture.batches["sending"]
    again = np.flatnonzero(sendings["batch"] != NONE)
    again = again[first[sendings["batch"][again]] != again]
    again = again[np.lexsort((times.close[again], sendings["partition"][again]))]
    again_partition, partition = sendings["partition"][again], sendings["partition"][first]
    last = place_behind(again_partition, times.close[again], partition, times.close[first]) - 1
    last = np.where(np.append(again_partition, NONE)[last] == partition, last, NONE)
    begin, until = (np.append(time, 0)[last] for time in (queues_begin(sent, times, again), times.close[again]))
    return Queued(begin, until, refused_before(sent))


def queues_begin(sent: Sent, times: Times, again: Ints) -> Ints:
    """When the client acted on the response that made it send each of these sendings again: int64[again], us. Sendings
    that follow each other without a gap have the time of the first of them.

    again: int64[again], sendings by partition, in the order of their closes.
    """
    if len(again) == 0:
        return np.zeros(0, np.int64)
    sendings = sent.sendings[again]
    before = np.where(
        sendings["made_by"] == NONE, sent.capture.batches["sending"][sendings["batch"]], sendings["made_by"]
    )
    known = np.minimum(answer_times(sent, times)[before], times.close[again])
    is_new = np.ones(len(again), np.bool_)
    is_new[1:] = (sendings["partition"][1:] != sendings["partition"][:-1]) | (known[1:] > times.close[again[:-1]])
    begins = np.minimum.reduceat(known, np.flatnonzero(is_new))
    return begins[np.cumsum(is_new) - 1]


def refused_before(sent: Sent) -> Ints:
    """The last batch before each one in its partition that was refused as too large, or NONE: int64[batches]."""
    first = sent.first_sendings
    is_refused = (first["error"] == MESSAGE_TOO_LARGE) & (first["records"] > 1)
    counted_from_1 = np.where(is_refused, np.arange(len(first)) + 1, 0)
    return greatest_before(first["partition"], counted_from_1) - 1


def timed_batches(sent: Sent, times: Times, linger_us: int) -> Records:
    """The captured batches, BATCH[batches], with times and sizes of their first sendings."""
    sendings, batches = sent.sendings, sent.capture.batches.copy()
    first = batches["sending"]
    ready, closed = ready_times(sent, times.append, linger_us), times.close[first]
    # Within its ms the next record can have come before the request, which then finds the batch full.
    surely_before = sent.first_sendings["request_time"] < ready_times(sent, sent.capture.records["time"], linger_us)
    answered, waited = answer_times(sent, times)[first], queue_waits(sent, times)
    is_retry = (sendings["is_whole"] == 1) & (sendings["made_by"] == NONE)
    is_retry[first] = False
    retries = np.flatnonzero(is_retry)
    batches["retry_at"] = NEVER
    np.minimum.at(batches["retry_at"], sendings["batch"][retries], times.close[retries])
    batches["retries"] = np.bincount(sendings["batch"][retries], minlength=len(batches))
    batches["closed"] = closed
    had_to_wait = (batches["has_sequence"] == 1) & (waited.until > ready)
    batches["size"] = sent.first_sendings["size"]
    before = closed_before(sent, closed)
    in_turn, delay_in_turn = np.maximum(ready, before), np.maximum(closed - np.maximum(waited.until, before), 0)
    without_queue = np.where(had_to_wait, np.maximum(waited.begin - in_turn, 0) + delay_in_turn, closed - in_turn)
    batches["delay"] = np.maximum(without_queue, 0)
    batches["in_turn"] = had_to_wait | (before > ready)
    batches["delay_in_turn"] = np.where(had_to_wait, delay_in_turn, np.where(batches["in_turn"], batches["delay"], 0))
    batches["uncompressed"] = sent.first_sendings["uncompressed"]
    batches["by_bytes"] = np.where(batches["uncompressed"] > 0, BYTES_SHARE * batches["delay_in_turn"], 0)
    batches["early"] = np.where(closed < ready, closed, NEVER)
    batches["filled_by"] = np.where(surely_before, NONE, batches["next_record"])
    batches["round_trip"] = np.where(answered == NEVER, 0, answered - closed)
    batches["queued_by"] = np.where(had_to_wait, waited.by, NONE)
    return batches
