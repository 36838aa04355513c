"""Do batches end, in the capture, where KIP-126 ends them at the captured settings? One verdict a batch.

Each batch is judged by itself: the estimate at its creation follows from the batches captured before. When a batch was
created the client's clock tells in ms; when one was closed lies between the request before and its own. So the
estimate is one of a few, and a batch agrees if each of them ends it where the capture does.
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
    FEWER_RECORDS = "fewer_records"  # disagreement: the batch took no more records though it had room
    MORE_RECORDS = "more_records"  # disagreement: the batch took records for which it had no room
    SPLIT_NOT_CAPTURED = "split_not_captured"  # disagreement: larger than max.message.bytes, and not refused for it
    SPLIT_NOT_REPLAYED = "split_not_replayed"  # disagreement: refused as too large, and not larger
    BYTES_BEYOND_ERROR = (
        "bytes_beyond_error"  # disagreement: a re-cut batch's size is further off than the stated error
    )


UNKNOWN = (Reason.NOT_JAVA, Reason.RECORDS_UNKNOWN, Reason.BEGAN_BEFORE, Reason.CLOSE_ORDER)
CODES = {reason: code for code, reason in enumerate(Reason, 1)}
AGREED = 0
_BEGAN_BEFORE = CODES[Reason.BEGAN_BEFORE]
_CLOSE_ORDER = CODES[Reason.CLOSE_ORDER]
_FEWER, _MORE = CODES[Reason.FEWER_RECORDS], CODES[Reason.MORE_RECORDS]

CLOSE, SPLIT = 0, 1
MS = 1000  # us
MOST_STATES = 256


class Closes(NamedTuple):
    """Every sending of a batch of one topic and codec, in the order of the requests: int64 us, ratios float32."""

    latest: Ints  # its request
    earliest: Ints  # the client's request before it
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
    """Estimates that are possible, each with the number of splits that are behind it."""

    estimate: Singles
    splits: Ints


@kernel
def add_state(states: States, count: int, estimate: np.float32, splits: int) -> int:
    """Add a state that is not there yet; the number of states, one too many where there is no place."""
    for at in range(count):
        if states.estimate[at] == estimate and states.splits[at] == splits:
            return count
    if count < MOST_STATES:
        states.estimate[count], states.splits[count] = estimate, splits
    return count + 1


@kernel
def with_splits(states: States, count: int, splits: Splits, now: int, profile: int) -> int:
    """Add the states that come of splits which may have been made by now."""
    at = 0
    while at < min(count, MOST_STATES):
        done = states.splits[at]
        if done < len(splits.earliest) and splits.earliest[done] <= now:
            count = add_state(states, count, after_split(profile, splits.ratio[done]), done + 1)
        at += 1
    return count


@kernel
def closed(states: States, count: int, ratio: np.float32, lanes: Producers, other: States) -> int:
    """The states after a batch was closed, each once; `other` is written over."""
    size = 0
    for at in range(min(count, MOST_STATES)):
        before = states.estimate[at]
        after = before if before < 0 else updated(lanes.profile[0], before, ratio, lanes, 0)
        size = add_state(other, size, after, states.splits[at])
    for at in range(min(size, MOST_STATES)):
        states.estimate[at], states.splits[at] = other.estimate[at], other.splits[at]
    return size


@kernel
def add_estimates(possible: States, count: int, states: States, size: int) -> int:
    """Add the estimates of some states to those that are possible."""
    for at in range(min(size, MOST_STATES)):
        count = add_state(possible, count, states.estimate[at], 0)
    return MOST_STATES + 1 if size > MOST_STATES else count


@kernel
def without_overdue(states: States, count: int, splits: Splits, now: int) -> int:
    """The states without those that leave out a split which surely was made by now."""
    kept = 0
    for at in range(min(count, MOST_STATES)):
        done = states.splits[at]
        if done < len(splits.latest) and splits.latest[done] <= now:
            continue
        states.estimate[kept], states.splits[kept] = states.estimate[at], done
        kept += 1
    return kept


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
def verdict_of(
    made: Made, batch: int, states: States, count: int, content: Ints, timestamp: Ints, codec: int, lanes: Producers
) -> int:  # fmt: skip
    """The verdict over all states: AGREED where each agrees, _CLOSE_ORDER where some do."""
    agreed, worst = 0, AGREED
    for at in range(min(count, MOST_STATES)):
        if states.estimate[at] < 0:
            return _BEGAN_BEFORE
        found = verdict_at(made, batch, states.estimate[at], content, timestamp, codec, lanes)
        agreed += found == AGREED
        worst = found if found != AGREED else worst
    if count > MOST_STATES:
        return _CLOSE_ORDER
    return AGREED if agreed == count else (_CLOSE_ORDER if agreed else worst)


@kernel
def judge_batches(
    made: Made, closes: Closes, splits: Splits, content: Ints, timestamp: Ints, codec: int, lanes: Producers,
    now: States, ahead: States, other: States, possible: States, verdicts: Ints,
) -> None:  # fmt: skip
    """`judge`, into `verdicts`; now: the state to start with. The rest is working memory."""
    count, at = 1, 0
    for batch in range(len(made.created)):
        created = made.created[batch]
        while at < len(closes.latest) and closes.latest[at] <= created:
            count = without_overdue(now, count, splits, closes.earliest[at])
            count = with_splits(now, count, splits, closes.latest[at], lanes.profile[0])
            count = closed(now, count, closes.ratio[at], lanes, other)
            at += 1
        count = with_splits(now, count, splits, created, lanes.profile[0])
        count = without_overdue(now, count, splits, created)
        till, size, found = created + MS, 0, 0
        for state in range(min(count, MOST_STATES)):
            size = add_state(ahead, size, now.estimate[state], now.splits[state])
        size = with_splits(ahead, size, splits, till, lanes.profile[0])
        found = add_estimates(possible, found, ahead, size)
        later = at
        while later < len(closes.latest) and closes.earliest[later] <= till:
            size = closed(ahead, size, closes.ratio[later], lanes, other)
            size = with_splits(ahead, size, splits, till, lanes.profile[0])
            found = add_estimates(possible, found, ahead, size)
            later += 1
        verdicts[batch] = verdict_of(made, batch, possible, found, content, timestamp, codec, lanes)
    for last in range(at, len(closes.latest)):
        count = with_splits(now, count, splits, closes.latest[last], lanes.profile[0])
        count = closed(now, count, closes.ratio[last], lanes, other)


def judge(
    made: Made, closes: Closes, splits: Splits, content: Ints, timestamp: Ints, codec: int, lanes: Producers,
    initial: float,
) -> tuple[Ints, float]:  # fmt: skip
    """(the verdict on each batch of one topic and codec, AGREED or a code of CODES; an estimate at the end).

    content, timestamp: of the records, int64. lanes: the captured settings are lane 0. initial: the estimate before the
    first close, negative where it is not known.
    """
    now, ahead, other, possible = (
        States(np.zeros(MOST_STATES, np.float32), np.zeros(MOST_STATES, np.int64)) for _ in range(4)
    )
    now.estimate[0] = initial
    verdicts = np.zeros(len(made.created), np.int64)
    judge_batches(
        Made(*map(read_only, made)), Closes(*all_read_only(closes)), Splits(*all_read_only(splits)),
        read_only(content), read_only(timestamp), codec, Producers(*all_read_only(lanes)), now, ahead, other,
        possible, verdicts,
    )  # fmt: skip
    return verdicts, float(now.estimate[0])
