"""By which times a replayed producer goes: when its records were appended, its batches closed, split and sent again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Ints, Records
from udfs.columns.records import records_of
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.state import PART, Capture
from udfs.replay.shared.resent_batches import NONE


class Times(NamedTuple):
    """In us: when each record was appended, int64[records]; when each sending was closed, and when it was split if it
    was refused, int64[sendings].
    """

    append: Ints
    close: Ints
    split: Ints


def timed(sent: Sent, times: Times, linger_us: int) -> Capture:
    """The capture with these times."""
    parts, first_parts = parts_of(sent, times)
    records = sent.capture.records.copy()
    records["time"] = times.append
    records["part"][first_parts] = np.arange(len(parts))  # the first to be sent comes last, and stays
    return sent.capture._replace(records=records, parts=parts, batches=timed_batches(sent, times, linger_us))


def parts_of(sent: Sent, times: Times) -> tuple[Records, Ints]:
    """(the batches that splits made, the last to be sent first: PART[parts]; the first record of each)."""
    sendings, batches = sent.sendings, sent.capture.batches
    parts = np.flatnonzero(sendings["made_by"] != NONE)
    parts = parts[np.argsort(-times.close[parts], kind="stable")]
    first = batches["first"][sendings["batch"][parts]] + sendings["offset"][parts]
    first = np.minimum(first, len(sent.capture.records) - 1)
    records = records_of(
        PART,
        len(parts),
        end=first + sendings["records"][parts],
        size=sendings["size"][parts],
        sent_at=times.close[parts],
        answered_at=answers(sent, times)[parts],
    )
    return records, first


def answers(sent: Sent, times: Times) -> Ints:
    """When the client acted on the response to each sending, NEVER where there is none: int64[sendings], us."""
    return np.where(sent.sendings["error"] == MESSAGE_TOO_LARGE, times.split, sent.sendings["response_time"])


def ready_times(sent: Sent, append: Ints, linger_us: int) -> Ints:
    """When each batch had lingered, or was full, as the next record shows that may go into it: int64[batches], us."""
    batches = sent.capture.batches
    full = np.where(batches["next_record"] != NONE, append[batches["next_record"]], NEVER)
    return np.minimum(full, append[batches["first"]] + linger_us)


def soonest(sent: Sent, times: Times, linger_us: int) -> Times:
    """The times, but each batch that is sent first is closed as soon as it is ready and what was before its request is
    done. The capture does not show how long before its request that was.
    """
    first, close = sent.capture.batches["sending"], times.close.copy()
    ready = ready_times(sent, times.append, linger_us)
    close[first] = np.clip(sent.first_sendings["not_before"], np.minimum(ready, close[first]), close[first])
    return times._replace(close=close)


def queued_until(sent: Sent, times: Times) -> Ints:
    """When the last batch that was sent again before each one, as a part of a split one or as it was, was closed; 0
    where there is none: int64[batches], us. An idempotent producer sends no other batch of the partition before that.
    """
    sendings, first = sent.sendings, sent.capture.batches["sending"]
    again = np.flatnonzero(sendings["batch"] != NONE)
    again = again[first[sendings["batch"][again]] != again]
    rows = np.concatenate([again, first])
    is_first, partition = np.arange(len(rows)) >= len(again), sendings["partition"][rows]
    in_turn = np.lexsort((is_first, times.close[rows], partition))
    last = np.maximum.accumulate(np.where(is_first[in_turn], NONE, np.arange(len(rows))))
    before = in_turn[np.maximum(last, 0)]
    until = np.zeros(len(rows), np.int64)
    is_same = (last != NONE) & (partition[before] == partition[in_turn])
    until[in_turn] = np.where(is_same, times.close[rows[before]], 0)
    return until[len(again) :]


def timed_batches(sent: Sent, times: Times, linger_us: int) -> Records:
    """What the capture shows of each batch as it was sent first: BATCH[batches]."""
    sendings, batches = sent.sendings, sent.capture.batches.copy()
    first = batches["sending"]
    ready, closed = ready_times(sent, times.append, linger_us), times.close[first]
    # In its ms the next record can have come before the request, which then finds the batch full.
    surely_before = sent.first_sendings["request_time"] < ready_times(sent, sent.capture.records["time"], linger_us)
    answered, queued = answers(sent, times)[first], queued_until(sent, times)
    is_retry = (sendings["is_whole"] == 1) & (sendings["made_by"] == NONE)
    is_retry[first] = False
    retries = np.flatnonzero(is_retry)
    batches["retry_at"] = NEVER
    np.minimum.at(batches["retry_at"], sendings["batch"][retries], times.close[retries])
    batches["retries"] = np.bincount(sendings["batch"][retries], minlength=len(batches))
    batches["closed"] = closed
    batches["delay"] = np.maximum(closed - np.maximum(ready, queued), 0)
    batches["early"] = np.where(closed < ready, closed, NEVER)
    batches["filled_by"] = np.where(surely_before, NONE, batches["next_record"])
    batches["round_trip"] = np.where(answered == NEVER, 0, answered - closed)
    batches["was_queued"] = (batches["has_sequence"] == 1) & (queued > ready)
    return batches
