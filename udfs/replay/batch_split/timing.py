"""By which times a replayed producer goes: when its records were appended, its batches closed, split and sent again."""

from __future__ import annotations

import numpy as np

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Ints
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.possible_estimates.events import is_part
from udfs.replay.batch_split.possible_estimates.order import Times
from udfs.replay.batch_split.state import Batches, Log
from udfs.replay.shared.resent_batches import NONE


def timed_log(sent: Sent, times: Times) -> Log:
    """The log with these times, and what of it was sent again in parts; a part is told by its first record."""
    n = len(sent.log.time)
    again, end, size, answered = np.full(n, NEVER), np.full(n, NONE), np.full(n, NONE), np.full(n, NEVER)
    parts = np.flatnonzero(is_part(sent))
    parts = parts[np.argsort(-times.close[parts], kind="stable")]  # the first to be sent is written last, and stays
    start = np.minimum(sent.begin[sent.batch_of[parts]] + sent.offset[parts], n - 1)
    again[start], end[start], size[start] = times.close[parts], start + sent.rows.records[parts], sent.rows.size[parts]
    answered[start] = answers(sent, times)[parts]
    return sent.log._replace(
        time=times.append, resent_at=again, resent_end=end, resent_size=size, resent_answered=answered
    )  # fmt: skip


def answers(sent: Sent, times: Times) -> Ints:
    """int64[rows], us: when the client did what each answer has it do; NEVER where there is none."""
    return np.where(sent.rows.error == MESSAGE_TOO_LARGE, times.split, sent.rows.response_time)


def ready_times(sent: Sent, times: Times, linger_us: int) -> Ints:
    """int64[batches], us: when each batch was full, as the next record tells that may go into it, or had lingered."""
    follows = sent.next_record[sent.begin[1:] - 1]
    full = np.where(follows != NONE, times.append[np.maximum(follows, 0)], NEVER)
    return np.minimum(full, times.append[sent.begin[:-1]] + linger_us)


def soonest(sent: Sent, times: Times, linger_us: int) -> Times:
    """The times, but with each batch closed, when sent first, as soon as it is ready and what was before its request is
    done: how long before its request it was is not told."""
    close, closed = times.close.copy(), times.close[sent.first]
    ready = ready_times(sent, times, linger_us)
    close[sent.first] = np.clip(sent.before[sent.first], np.minimum(ready, closed), closed)
    return times._replace(close=close)


def queued_until(sent: Sent, times: Times) -> Ints:
    """int64[batches], us: when what stood before each batch had been sent again, what splits made and what was retried;
    0 where nothing was. An idempotent producer sends no other batch of the partition before that."""
    again = np.flatnonzero(sent.batch_of != NONE)
    again = again[sent.first[sent.batch_of[again]] != again]
    rows = np.concatenate([again, sent.first])
    is_first = np.arange(len(rows)) >= len(again)
    in_turn = np.lexsort((is_first, times.close[rows], sent.partition[rows]))
    last = np.maximum.accumulate(np.where(is_first[in_turn], NONE, np.arange(len(rows))))
    row = rows[in_turn[np.maximum(last, 0)]]
    same = (last != NONE) & (sent.partition[row] == sent.partition[rows[in_turn]])
    found = np.zeros(len(rows), np.int64)
    found[in_turn] = np.where(same, times.close[row], 0)
    return found[len(again) :]


def batches_of(sent: Sent, times: Times, linger_us: int) -> Batches:
    """What the capture tells of each batch when it was sent first."""
    rows, first = sent.rows, sent.first
    ready, closed = ready_times(sent, times, linger_us), times.close[first]
    # In its ms the next record can have come before the request, which then finds the batch full.
    surely_before = ready_times(sent, times._replace(append=sent.log.time), linger_us)
    answered, queued = answers(sent, times)[first], queued_until(sent, times)
    is_again = sent.is_whole & (sent.batch_of != NONE) & ~is_part(sent)
    is_again[first] = False
    again = np.flatnonzero(is_again)
    retry_at = np.full(len(first), NEVER)
    np.minimum.at(retry_at, sent.batch_of[again], times.close[again])
    return Batches(
        rows.codec[first],
        closed,
        np.maximum(closed - np.maximum(ready, queued), 0),
        np.where(closed < ready, closed, NEVER),
        np.where(rows.request_time[first] < surely_before, NONE, sent.next_record[sent.begin[1:] - 1]),
        np.where(answered == NEVER, 0, answered - closed),
        np.bincount(sent.batch_of[again], minlength=len(first)),
        retry_at,
        rows.sequence[first] >= 0,
        (rows.sequence[first] >= 0) & (queued > ready),
    )
