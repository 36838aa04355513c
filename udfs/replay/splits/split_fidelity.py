"""Do batches end, in the capture, where KIP-126 ends them at the captured settings? One verdict a batch.

The estimate at a batch's creation follows from the batches closed before. When a batch was created the client's clock
tells in ms; that one was closed lies between what was before its request and that. On every connection one close may be
under way, and where several are, their order is open. So the estimate is one of a few, and a batch agrees if each of
them ends it where the capture does. Where only some do, that is unknown, and the others are left out from there on:
what came of a batch tells which estimate it was made with.

A client that is connected to many brokers has more orders than can be followed. Its estimate then is anything between
what no order exceeds and what none falls below; that still tells of batches which had lingered, or took far too much.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from udfs.replay.splits.compression_estimate import (
    Producers,
    after_split,
    estimated_bytes,
    has_room,
    record_bytes,
    updated,
    upper_bound,
)
from udfs.wire.arrays import Ints, Singles, all_read_only, read_only
from udfs.wire.kernel import kernel


class Reason(StrEnum):
    """Why a batch could not be checked, or how it disagreed."""

    NOT_JAVA = "not_a_java_client"  # KIP-126 is the Java client's
    RECORDS_UNKNOWN = "records_unknown"  # the batch, or one before it, could not be read
    BEGAN_BEFORE = "producer_began_before"  # so that its estimate is known after the first split only
    CLOSE_ORDER = "close_append_order"  # a close and an append overlap in time; some order gives what was captured
    NEAR_LIMIT = "near_limit"  # a batch within a record of max.message.bytes: which records it has decides
    FEWER_RECORDS = "fewer_records"  # disagreement: the batch took no more records though it had room
    MORE_RECORDS = "more_records"  # disagreement: the batch took records for which it had no room
    SPLIT_NOT_CAPTURED = "split_not_captured"  # disagreement: larger than max.message.bytes, and not refused for it
    SPLIT_NOT_REPLAYED = "split_not_replayed"  # disagreement: refused as too large, and not larger
    BYTES_BEYOND_ERROR = (
        "bytes_beyond_error"  # disagreement: a re-cut batch's size is further off than the stated error
    )


UNKNOWN = (Reason.NOT_JAVA, Reason.RECORDS_UNKNOWN, Reason.BEGAN_BEFORE, Reason.CLOSE_ORDER, Reason.NEAR_LIMIT)
CODES = {reason: code for code, reason in enumerate(Reason, 1)}
AGREED = 0
_BEGAN_BEFORE = CODES[Reason.BEGAN_BEFORE]
_CLOSE_ORDER = CODES[Reason.CLOSE_ORDER]
_FEWER, _MORE = CODES[Reason.FEWER_RECORDS], CODES[Reason.MORE_RECORDS]

MS = 1000  # us
UNTOLD, LOST = -1.0, -2.0
"""Estimates that are not known: of a producer that began before the capture, and where too many are possible."""
MOST_STATES = 1024
MOST_AHEAD = 62
"""Closes that may be undecided at a time: bits of an int64."""


class Closes(NamedTuple):
    """Every sending of a batch of one topic and codec, in the order of the requests: int64 us, ratios float32.

    One surely comes before another if its `latest` is no later than the other's `earliest`.
    """

    latest: Ints  # its request
    earliest: Ints  # when it can have been closed
    none_before: Ints  # the least of `earliest` from here on
    ratio: Singles


class Splits(NamedTuple):
    """Every refusal of a batch as too large, in the order of the responses: int64 us, ratios float32."""

    earliest: Ints  # its response
    latest: Ints  # the request of the first batch made by the split
    ratio: Singles


class Made(NamedTuple):
    """Batches when they were sent first, in the order of their creation: int64 a column."""

    created: Ints  # us, cut to a ms
    first: Ints  # its records are rows [first, end)
    end: Ints
    next_content: Ints  # the record that came next to it and may have ended it, -1 where there was none
    next_timestamp: Ints
    other_content: Ints  # one that went to another partition but may have tried this one, -1 where there was none
    other_timestamp: Ints
    is_cut: Ints  # 1: it may have been sent before that record came, or none came


class States(NamedTuple):
    """Estimates that are possible, each with what is behind it: all closes before `base`, of those from there on the
    ones in the bits of `ahead`, and so many splits."""

    estimate: Singles
    base: Ints
    ahead: Ints
    splits: Ints


@kernel
def add_state(states: States, count: int, estimate: np.float32, base: int, ahead: int, splits: int) -> int:
    """Add a state that is not there yet; the number of states, one too many where there is no place."""
    for at in range(min(count, MOST_STATES)):
        same = states.base[at] == base and states.ahead[at] == ahead and states.splits[at] == splits
        if same and states.estimate[at] == estimate:
            return count
    if count >= MOST_STATES:
        return MOST_STATES + 1
    states.estimate[count], states.base[count], states.ahead[count] = estimate, base, ahead
    states.splits[count] = splits
    return count + 1


@kernel
def go_on(states: States, count: int, closes: Closes, splits: Splits, till: int, lanes: Producers) -> int:
    """Add the states that come of those which are there by closes and splits that may have been by then."""
    at = 0
    while at < min(count, MOST_STATES):
        count = add_closes(states, count, at, closes, splits, till, lanes)
        base, s = states.base[at], states.splits[at]
        may_split = s < len(splits.latest) and splits.earliest[s] <= till
        if may_split and (base == len(closes.latest) or closes.latest[base] > splits.earliest[s]):
            split = after_split(lanes.profile[0], splits.ratio[s])
            count = add_state(states, count, split, base, states.ahead[at], s + 1)
        at += 1
    return count


@kernel
def add_closes(
    states: States, count: int, at: int, closes: Closes, splits: Splits, till: int, lanes: Producers
) -> int:  # fmt: skip
    """... by one close more: any that may have been by then, and before all that are not yet behind the state."""
    estimate, base, ahead, s = states.estimate[at], states.base[at], states.ahead[at], states.splits[at]
    may_split = s < len(splits.latest) and splits.earliest[s] <= till
    if estimate < 0 and not may_split:  # which were, makes no difference
        return count
    for bit in range(len(closes.latest) - base):
        close = base + bit
        if closes.none_before[close] > till:
            break
        if bit == MOST_AHEAD:
            return MOST_STATES + 1
        is_behind = (ahead >> bit) & 1 or closes.earliest[close] > till
        if is_behind or closes.earliest[close] >= closes.latest[base]:
            continue
        if s < len(splits.latest) and splits.latest[s] <= closes.earliest[close]:
            continue
        after = estimate if estimate < 0 else updated(lanes.profile[0], estimate, closes.ratio[close], lanes, 0)
        next_base, left = base, ahead | (1 << bit)
        while left & 1:
            next_base, left = next_base + 1, left >> 1
        count = add_state(states, count, after, next_base, left, s)
    return count


@kernel
def skip_closes(states: States, closes: Closes, now: int) -> None:
    """Have the first state, whose estimate is not known, leave behind it what surely was closed by now."""
    while states.base[0] < len(closes.latest) and closes.latest[states.base[0]] <= now:
        states.base[0] += 1
        states.ahead[0] >>= 1


@kernel
def without_overdue(states: States, count: int, closes: Closes, splits: Splits, now: int) -> int:
    """The states without those that leave out a close or split which surely was by now."""
    kept = 0
    for at in range(count):
        base, s = states.base[at], states.splits[at]
        is_late = base < len(closes.latest) and closes.latest[base] <= now
        if not is_late and not (s < len(splits.latest) and splits.latest[s] <= now):
            kept = move(states, at, states, kept)
    return kept


@kernel
def move(states: States, at: int, other: States, count: int) -> int:
    """Put a state behind those of `other`; how many there are then."""
    other.estimate[count], other.base[count] = states.estimate[at], states.base[at]
    other.ahead[count], other.splits[count] = states.ahead[at], states.splits[at]
    return count + 1


@kernel
def lost(states: States, closes: Closes, splits: Splits, now: int) -> int:
    """One state instead of more than there is room for: what surely was by now, and an estimate that is not known."""
    base = s = 0
    while base < len(closes.latest) and closes.latest[base] <= now:
        base += 1
    while s < len(splits.latest) and splits.latest[s] <= now:
        s += 1
    states.estimate[0], states.base[0], states.ahead[0], states.splits[0] = LOST, base, 0, s
    return 1


@kernel
def verdict_at(
    made: Made, batch: int, estimate: np.float32, content: Ints, timestamp: Ints, codec: int, lanes: Producers
) -> int:
    """Where a batch made with this estimate ends, against the capture: AGREED, _FEWER or _MORE."""
    first, uncompressed = made.first[batch], 0
    limit = max(lanes.batch_size[0], upper_bound(content[first]))
    for record in range(first, made.end[batch]):
        size = record_bytes(content[record], record - first, timestamp[record] - timestamp[first])
        estimated = estimated_bytes(uncompressed, estimate, lanes.estimation_factor[0], codec != 0)
        if not has_room(record - first, estimated, limit, size):
            return _MORE
        uncompressed += size
    if made.is_cut[batch]:
        return AGREED
    count = made.end[batch] - first
    estimated = estimated_bytes(uncompressed, estimate, lanes.estimation_factor[0], codec != 0)
    size = record_bytes(made.next_content[batch], count, made.next_timestamp[batch] - timestamp[first])
    if not has_room(count, estimated, limit, size):
        return AGREED
    if made.other_content[batch] >= 0:
        size = record_bytes(made.other_content[batch], count, made.other_timestamp[batch] - timestamp[first])
        if not has_room(count, estimated, limit, size):
            return AGREED
    return _FEWER


@kernel
def verdict_between(
    made: Made, batch: int, bounds: Singles, content: Ints, timestamp: Ints, codec: int, lanes: Producers
) -> int:
    """The verdict on a batch that was made with any estimate within the bounds: _CLOSE_ORDER where it depends on it.

    The larger the estimate, the fewer records: what both bounds give, all between them give.
    """
    if bounds[0] < 0:
        return _CLOSE_ORDER
    least = verdict_at(made, batch, bounds[0], content, timestamp, codec, lanes)
    greatest = verdict_at(made, batch, bounds[1], content, timestamp, codec, lanes)
    return least if least == greatest else _CLOSE_ORDER


@kernel
def verdict_of(
    made: Made, batch: int, states: States, count: int, agree: States, bounds: Singles, content: Ints, timestamp: Ints,
    codec: int, lanes: Producers,
) -> tuple[int, int]:  # fmt: skip
    """(the verdict over all states: AGREED where each agrees, _CLOSE_ORDER where some do; how many of them agree).

    agree: those that do, written.
    """
    agreed, worst = 0, AGREED
    for at in range(count):
        if states.estimate[at] == UNTOLD:
            return _BEGAN_BEFORE, 0
        if states.estimate[at] == LOST:
            return verdict_between(made, batch, bounds, content, timestamp, codec, lanes), 0
        found = verdict_at(made, batch, states.estimate[at], content, timestamp, codec, lanes)
        if found == AGREED:
            agreed = move(states, at, agree, agreed)
        else:
            worst = found
    return AGREED if agreed == count else (_CLOSE_ORDER if agreed else worst), agreed


@kernel
def judge_batches(
    made: Made, closes: Closes, splits: Splits, content: Ints, timestamp: Ints, codec: int, lanes: Producers,
    now: States, agree: States, bounds: Singles, verdicts: Ints,
) -> None:  # fmt: skip
    """`judge`, into `verdicts`; now: the state to start with, and at the end one that is possible."""
    count = 1
    for batch in range(len(made.created)):
        created = made.created[batch]
        if count == 1 and now.estimate[0] < 0:
            skip_closes(now, closes, created)
        count = go_on(now, count, closes, splits, created + MS, lanes)
        if count <= MOST_STATES:
            count = without_overdue(now, count, closes, splits, created)
        if count == 0 or count > MOST_STATES:
            count = lost(now, closes, splits, created)
        verdicts[batch], agreed = verdict_of(made, batch, now, count, agree, bounds, content, timestamp, codec, lanes)
        if 0 < agreed < count and is_alone(made, batch):  # then it tells which of them it was
            count = 0
            for at in range(agreed):
                count = move(agree, at, now, count)
    finish(now, closes, splits, lanes)


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
    """float32[2], what no order of closes and splits has the estimate fall below and exceed; LOST where the estimate
    to begin with is not known.
    """
    if initial < 0:
        return np.full(2, LOST, np.float32)
    told = np.concatenate([np.full(1, initial, np.float32), closes.ratio])
    raised = [after_split(int(lanes.profile[0]), ratio) for ratio in splits.ratio]
    least, greatest = told.min() - lanes.improving_step[0], told.max() + lanes.deteriorate_step[0]
    return np.array([max(least, np.float32(0)), max([greatest, *raised])], np.float32)


def judge(
    made: Made, closes: Closes, splits: Splits, content: Ints, timestamp: Ints, codec: int, lanes: Producers,
    initial: float,
) -> tuple[Ints, float]:  # fmt: skip
    """(the verdict on each batch of one topic and codec, AGREED or a code of CODES; an estimate at the end).

    content, timestamp: of the records, int64. lanes: the captured settings are lane 0. initial: the estimate before the
    first close, UNTOLD where it is not known.
    """
    now, agree = (
        States(np.zeros(MOST_STATES, np.float32), *(np.zeros(MOST_STATES, np.int64) for _ in range(3)))
        for _ in range(2)
    )
    now.estimate[0] = initial
    verdicts = np.zeros(len(made.created), np.int64)
    judge_batches(
        Made(*map(read_only, made)), Closes(*all_read_only(closes)), Splits(*all_read_only(splits)),
        read_only(content), read_only(timestamp), codec, Producers(*all_read_only(lanes)), now, agree,
        estimate_bounds(closes, splits, lanes, initial), verdicts,
    )  # fmt: skip
    return verdicts, float(now.estimate[0])
