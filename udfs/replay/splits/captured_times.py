"""By which times a replayed producer goes: when its records were appended, its batches closed, split and sent again."""

from __future__ import annotations

import numpy as np

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.replay.splits.accumulator import Batches, Log
from udfs.replay.splits.captured_closes import is_part
from udfs.replay.splits.close_order import Times
from udfs.replay.splits.resent import NONE
from udfs.replay.splits.sent_batches import Sent
from udfs.time_units import NEVER
from udfs.wire.arrays import Ints


def timed_log(sent: Sent, times: Times) -> Log:
    """The log with these times, and what of it was sent again in parts; a part is told by its first record."""
    n = len(sent.log.time)
    again, end, size = np.full(n, NEVER), np.full(n, NONE), np.full(n, NONE)
    parts = np.flatnonzero(is_part(sent))
    parts = parts[np.argsort(-times.close[parts], kind="stable")]  # the first to be sent is written last, and stays
    start = np.minimum(sent.begin[sent.batch_of[parts]] + sent.offset[parts], n - 1)
    again[start], end[start], size[start] = times.close[parts], start + sent.rows.records[parts], sent.rows.size[parts]
    return sent.log._replace(time=times.append, resent_at=again, resent_end=end, resent_size=size)


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


def batches_of(sent: Sent, times: Times, linger_us: int) -> Batches:
    """What the capture tells of each batch when it was sent first."""
    rows, first = sent.rows, sent.first
    ready, closed = ready_times(sent, times, linger_us), times.close[first]
    answered = np.where(rows.error[first] == MESSAGE_TOO_LARGE, times.split[first], rows.response_time[first])
    is_again = sent.is_whole & (sent.batch_of != NONE)
    is_again[first] = False
    again = np.flatnonzero(is_again)
    retry_at = np.full(len(first), NEVER)
    np.minimum.at(retry_at, sent.batch_of[again], times.close[again])
    return Batches(
        rows.codec[first],
        closed,
        np.maximum(closed - ready, 0),
        np.where(closed < ready, closed, NEVER),
        np.where(rows.request_time[first] < ready, NONE, sent.next_record[sent.begin[1:] - 1]),
        np.where(answered == NEVER, 0, answered - closed),
        np.bincount(sent.batch_of[again], minlength=len(first)),
        retry_at,
    )
