"""Do batches end, in the capture, where KIP-126 ends them at the captured settings? One verdict a batch.

The estimate at a batch's creation follows from the batches that were closed before. The client's clock tells in ms when
a batch was created, and `close_states` tells when batches were closed, as far as that can be told. So the estimate is
one of a few, and a batch agrees if each of them ends it where the capture does. Where only some do, the verdict is
unknown, and the others are left out from there on: how a batch ended tells which estimate it was made with.

In the same way all batches together tell an order of closes in which each of them ends where it did (`in_one_order`).
The captured lane goes by that order, which is not what was, but what can have been.

A client that is connected to many brokers has more orders than can be followed. Of its estimate only bounds are known
then, which no order has it exceed. They still decide on batches that had lingered, or took far too much.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Singles, all_read_only, read_only
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import (
    Producers,
    after_split,
    estimated_bytes,
    has_room,
    record_bytes,
    updated,
    upper_bound,
)
from udfs.replay.batch_split.possible_estimates.estimates import (
    LOST,
    MOST_STATES,
    MOST_STEPS,
    MS,
    UNTOLD,
    Closes,
    Splits,
    States,
    Steps,
    go_on,
    lost,
    move,
    skip_closes,
    without_overdue,
)
from udfs.replay.shared.resent_batches import NONE


class Reason(StrEnum):
    """Why a batch could not be checked, or how it disagreed: schemas.tables.fidelity_reasons."""

    NOT_JAVA = "not_a_java_client"
    RECORDS_UNKNOWN = "records_unknown"
    BEGAN_BEFORE = "producer_began_before"
    CLOSE_ORDER = "close_append_order"
    NEAR_LIMIT = "near_limit"
    FEWER_RECORDS = "fewer_records"
    MORE_RECORDS = "more_records"
    SPLIT_NOT_CAPTURED = "split_not_captured"
    SPLIT_NOT_REPLAYED = "split_not_replayed"
    BYTES_BEYOND_ERROR = "bytes_beyond_error"


UNKNOWN = (Reason.NOT_JAVA, Reason.RECORDS_UNKNOWN, Reason.BEGAN_BEFORE, Reason.CLOSE_ORDER, Reason.NEAR_LIMIT)
CODES = {reason: code for code, reason in enumerate(Reason, 1)}
AGREED = 0
_BEGAN_BEFORE = CODES[Reason.BEGAN_BEFORE]
_CLOSE_ORDER = CODES[Reason.CLOSE_ORDER]
_FEWER, _MORE = CODES[Reason.FEWER_RECORDS], CODES[Reason.MORE_RECORDS]

NOT_CUT, EARLY, LINGERED = range(3)


class Made(NamedTuple):
    """Batches when they were sent first, in the order of their creation: int64 a column."""

    created: Ints  # us, cut to a ms
    place: Ints  # of its first record among all that were appended
    first: Ints  # its records are rows [first, end)
    end: Ints
    next_content: Ints  # the record that came next to it and may have ended it, -1 where there was none
    next_timestamp: Ints
    other_content: Ints  # one that went to another partition but may have tried this one, -1 where there was none
    other_timestamp: Ints
    cut: Ints  # EARLY: it may have been sent before that record came; LINGERED: and had reason to, or none came


@kernel
def bytes_of_next(made: Made, batch: int, first_timestamp: int) -> int:
    """Bytes that the record would take which may have ended a batch; of two the larger, for that one decides."""
    count = made.end[batch] - made.first[batch]
    size: int = record_bytes(made.next_content[batch], count, made.next_timestamp[batch] - first_timestamp)
    if made.other_content[batch] >= 0:
        other = record_bytes(made.other_content[batch], count, made.other_timestamp[batch] - first_timestamp)
        size = max(size, other)
    return size


@kernel
def verdict_at(
    made: Made, batch: int, estimate: np.float32, content: Ints, timestamp: Ints, codec: int, lanes: Producers, cut: int
) -> int:
    """Where a batch made with this estimate ends, against the capture: AGREED, _FEWER or _MORE.

    cut: EARLY or LINGERED, which of the batches that may have been sent early may end before they are full.
    """
    first, uncompressed = made.first[batch], 0
    limit = max(lanes.batch_size[0], upper_bound(content[first]))
    for record in range(first, made.end[batch]):
        size = record_bytes(content[record], record - first, timestamp[record] - timestamp[first])
        estimated = estimated_bytes(uncompressed, estimate, lanes.estimation_factor[0], codec != 0)
        if not has_room(record - first, estimated, limit, size):
            return _MORE
        uncompressed += size
    if made.cut[batch] >= cut:
        return AGREED
    count = made.end[batch] - first
    estimated = estimated_bytes(uncompressed, estimate, lanes.estimation_factor[0], codec != 0)
    has_more = has_room(count, estimated, limit, bytes_of_next(made, batch, timestamp[first]))
    return _FEWER if has_more else AGREED


@kernel
def verdict_between(
    made: Made, batch: int, bounds: Singles, content: Ints, timestamp: Ints, codec: int, lanes: Producers
) -> int:
    """The verdict on a batch that was made with any estimate within the bounds: _CLOSE_ORDER where it depends on it.

    The larger the estimate, the fewer records: what both bounds give, all between them give.
    """
    if bounds[0] < 0:
        return _CLOSE_ORDER
    least = verdict_at(made, batch, bounds[0], content, timestamp, codec, lanes, EARLY)
    greatest = verdict_at(made, batch, bounds[1], content, timestamp, codec, lanes, EARLY)
    return least if least == greatest else _CLOSE_ORDER


@kernel
def verdict_of(
    made: Made, batch: int, states: States, count: int, agree: States, bounds: Singles, content: Ints, timestamp: Ints,
    codec: int, lanes: Producers, cut: int,
) -> tuple[int, int]:  # fmt: skip
    """(the verdict over all states: AGREED where each agrees, _CLOSE_ORDER where some do; how many of them agree).

    agree: those that do, written. cut: as `verdict_at` has it.
    """
    agreed, worst = 0, AGREED
    for at in range(count):
        if states.estimate[at] == UNTOLD:
            return _BEGAN_BEFORE, 0
        if states.estimate[at] == LOST:
            return verdict_between(made, batch, bounds, content, timestamp, codec, lanes), 0
        found = verdict_at(made, batch, states.estimate[at], content, timestamp, codec, lanes, cut)
        if found == AGREED:
            agreed = move(states, at, agree, agreed)
        else:
            worst = found
    return AGREED if agreed == count else (_CLOSE_ORDER if agreed else worst), agreed


@kernel
def judge_batches(
    made: Made, closes: Closes, splits: Splits, content: Ints, timestamp: Ints, codec: int, lanes: Producers,
    now: States, agree: States, bounds: Singles, verdicts: Ints, in_order: bool, steps: Steps, order: Ints,
) -> None:  # fmt: skip
    """`judge`, into `verdicts` and `order`; now: the state to start with, and at the end one that is possible."""
    count = 1
    for batch in range(len(made.created)):
        created = made.created[batch]
        if count == 1 and now.estimate[0] < 0:
            skip_closes(now, closes, created)
        place = made.place[batch] if in_order else NEVER
        count = go_on(now, count, closes, splits, created + MS, place, lanes, steps, batch)
        if count <= MOST_STATES:
            count = without_overdue(now, count, closes, splits, created)
        if count == 0 or count > MOST_STATES:
            settle(now, steps, order)
            count = lost(now, closes, splits, created)
        cut, verdict, agreed = LINGERED if in_order else EARLY, AGREED, 0
        # In one order, a batch ends early without reason only if nothing else explains it.
        while cut >= EARLY and agreed == 0:
            verdict, agreed = verdict_of(made, batch, now, count, agree, bounds, content, timestamp, codec, lanes, cut)
            cut -= 1
        verdicts[batch] = AGREED if in_order and agreed else verdict
        if 0 < agreed < count and (in_order or is_alone(made, batch)):  # then it tells which of them it was
            count = 0
            for at in range(agreed):
                count = move(agree, at, now, count)
        if not in_order:
            forget(now, count, steps)
        elif count == 1 or steps.used[0] > MOST_STEPS // 2:
            count = settle(now, steps, order)
    settle(now, steps, order)
    finish(now, closes, splits, lanes)


@kernel
def settle(now: States, steps: Steps, order: Ints) -> int:
    """Keep the first state alone, and note in `order` the steps to it."""
    at = now.path[0]
    while at != NONE:
        order[0, steps.event[at]], order[1, steps.event[at]] = steps.batch[at], steps.used[1] + at
        at = steps.before[at]
    steps.used[1] += steps.used[0]
    steps.used[0], now.path[0] = 0, NONE
    return 1


@kernel
def forget(now: States, count: int, steps: Steps) -> None:
    """Forget how the states came to be."""
    now.path[:count] = NONE
    steps.used[0] = 0


@kernel
def is_alone(made: Made, batch: int) -> bool:
    """Whether no other batch was made in the same ms, of which the capture does not tell the order."""
    is_first = batch == 0 or made.created[batch - 1] < made.created[batch]
    return is_first and (batch + 1 == len(made.created) or made.created[batch + 1] > made.created[batch])


@kernel
def finish(now: States, closes: Closes, splits: Splits, lanes: Producers) -> None:
    """Have the first state go on to the end, by the times of requests."""
    base, ahead, s = now.base[0], now.ahead[0], now.splits[0]
    while base < len(closes.latest) or s < len(splits.latest):
        if s < len(splits.latest) and (base == len(closes.latest) or splits.latest[s] <= closes.latest[base]):
            now.estimate[0] = after_split(lanes.profile[0], splits.ratio[s])
            s += 1
            continue
        if now.estimate[0] >= 0 and not ahead & 1:
            now.estimate[0] = updated(lanes.profile[0], now.estimate[0], closes.ratio[base], lanes, 0)
        base, ahead = base + 1, ahead >> 1


def estimate_bounds(closes: Closes, splits: Splits, lanes: Producers, initial: float) -> Singles:
    """float32[2], bounds of the estimate in any order of closes and splits; LOST where the estimate at the beginning is
    not known.
    """
    if initial < 0:
        return np.full(2, LOST, np.float32)
    told = np.concatenate([np.full(1, initial, np.float32), closes.ratio])
    raised = [after_split(int(lanes.profile[0]), ratio) for ratio in splits.ratio]
    least, greatest = told.min() - lanes.improving_step[0], told.max() + lanes.deteriorate_step[0]
    return np.array([max(least, np.float32(0)), max([greatest, *raised])], np.float32)


def followed(
    made: Made, closes: Closes, splits: Splits, content: Ints, timestamp: Ints, codec: int, lanes: Producers,
    initial: float, in_order: bool,
) -> tuple[Ints, float, Ints]:  # fmt: skip
    """What `judge` returns, then what `in_one_order` does."""
    now, agree = (
        States(np.zeros(MOST_STATES, np.float32), *(np.zeros(MOST_STATES, np.int64) for _ in range(4)))
        for _ in range(2)
    )
    event, batch, before = (np.zeros(MOST_STEPS, np.int64) for _ in range(3))
    steps = Steps(event, batch, before, np.zeros(2, np.int64))
    now.estimate[0], now.path[0] = initial, NONE
    verdicts = np.zeros(len(made.created), np.int64)
    order = np.full((2, len(closes.latest) + len(splits.latest)), NONE)
    judge_batches(
        Made(*map(read_only, made)), Closes(*all_read_only(closes)), Splits(*all_read_only(splits)),
        read_only(content), read_only(timestamp), codec, Producers(*all_read_only(lanes)), now, agree,
        estimate_bounds(closes, splits, lanes, initial), verdicts, in_order, steps, order,
    )  # fmt: skip
    return verdicts, float(now.estimate[0]), order


def judge(
    made: Made, closes: Closes, splits: Splits, content: Ints, timestamp: Ints, codec: int, lanes: Producers,
    initial: float,
) -> tuple[Ints, float]:  # fmt: skip
    """(the verdict on each batch of one topic and codec, AGREED or a code of CODES; an estimate at the end).

    content, timestamp: of the records, int64. lanes: the captured settings are lane 0. initial: the estimate before the
    first close, UNTOLD where it is not known.
    """
    return followed(made, closes, splits, content, timestamp, codec, lanes, initial, False)[:2]


def in_one_order(
    made: Made, closes: Closes, splits: Splits, content: Ints, timestamp: Ints, codec: int, lanes: Producers,
    initial: float,
) -> tuple[Ints, Ints]:  # fmt: skip
    """(the verdicts in one order of closes and splits, which what came of the batches tells; that order).

    Batches of the same ms are taken in the order in which their first records stand in the log. Of several orders that
    give the same batches one is taken; a batch that none gives leaves all of them. The order is int64[2, closes and
    then splits]: the batch that was created next, NONE where none is told, and a rank among all.
    """
    verdicts, _, order = followed(made, closes, splits, content, timestamp, codec, lanes, initial, True)
    return verdicts, order
