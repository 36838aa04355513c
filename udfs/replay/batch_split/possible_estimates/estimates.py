"""Estimates that are possible at a time, of one topic and codec: each follows from an order of closes and splits.

A batch was closed at some time between what came before its request and the request. On every connection one close may
be under way; where several are, their order is open. So the estimate is one of a few, each with what led to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Singles
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import Producers, after_split, updated
from udfs.replay.shared.resent_batches import NONE

MS = 1000  # us
UNTOLD, LOST = -1.0, -2.0
"""Estimates that are not known: of a producer that began before the capture, and where too many are possible."""
MOST_STATES = 1024
MOST_STEPS = 1 << 18
MOST_AHEAD = 62
"""Closes that may be undecided at a time: bits of an int64."""


class Closes(NamedTuple):
    """Every sending of a batch of one topic and codec, in the order of the requests: int64 us, ratios float32.

    One surely comes before another if its `latest` is no later than the other's `earliest`.
    """

    latest: Ints  # its request
    earliest: Ints  # when it can have been closed
    none_before: Ints  # the least of `earliest` from here on
    after: Ints  # the place of its last record among all that were appended, NONE where it is not known
    splits: Ints  # so many come before it at least: that of the batch which it is a part of is the last of them
    ratio: Singles


class Splits(NamedTuple):
    """Every refusal of a batch as too large, in the order of the responses: int64 us, ratios float32."""

    earliest: Ints  # its response
    latest: Ints  # the request of the first batch made by the split
    ratio: Singles


class States(NamedTuple):
    """Estimates that are possible, each with what led to it: all closes before `base`, of those from there on the ones
    whose bits are set in `ahead`, and the first `splits` splits."""

    estimate: Singles
    base: Ints
    ahead: Ints
    splits: Ints
    path: Ints  # the last step to it, NONE for none


class Steps(NamedTuple):
    """What was closed or split on the way to states: int64[MOST_STEPS] a column."""

    event: Ints  # a close's number, or that of a split behind all closes
    batch: Ints  # which batch was created next
    before: Ints  # the step before, NONE for none
    used: Ints  # int64[2], how many, and how many were there before those


@kernel
def step(steps: Steps, event: int, batch: int, before: int) -> int:
    """Note a step; its number, NONE where there is no place."""
    at = steps.used[0]
    if at == len(steps.event):
        return NONE
    steps.event[at], steps.batch[at], steps.before[at] = event, batch, before
    steps.used[0] += 1
    return int(at)


@kernel
def add_state(
    states: States, count: int, estimate: np.float32, base: int, ahead: int, splits: int, steps: Steps, event: int,
    batch: int, before: int,
) -> int:  # fmt: skip
    """Add a state that is not there yet; the number of states, one too many where there is no place."""
    for at in range(min(count, MOST_STATES)):
        same = states.base[at] == base and states.ahead[at] == ahead and states.splits[at] == splits
        if same and states.estimate[at] == estimate:
            return count
    path = step(steps, event, batch, before) if count < MOST_STATES else NONE
    if path == NONE:
        return MOST_STATES + 1
    states.estimate[count], states.base[count], states.ahead[count] = estimate, base, ahead
    states.splits[count], states.path[count] = splits, path
    return count + 1


@kernel
def go_on(
    states: States, count: int, closes: Closes, splits: Splits, till: int, place: int, lanes: Producers, steps: Steps,
    batch: int,
) -> int:  # fmt: skip
    """Add the states that come of those which are there by closes and splits that may have been by then.

    place: of the record that is appended next, before which stand those of batches that can be closed.
    """
    at = 0
    while at < min(count, MOST_STATES):
        count = add_closes(states, count, at, closes, splits, till, place, lanes, steps, batch)
        base, s = states.base[at], states.splits[at]
        may_split = s < len(splits.latest) and splits.earliest[s] <= till
        if may_split and (base == len(closes.latest) or closes.latest[base] > splits.earliest[s]):
            split = after_split(lanes.profile[0], splits.ratio[s])
            event, ahead, path = len(closes.latest) + s, states.ahead[at], states.path[at]
            count = add_state(states, count, split, base, ahead, s + 1, steps, event, batch, path)
        at += 1
    return count


@kernel
def add_closes(
    states: States, count: int, at: int, closes: Closes, splits: Splits, till: int, place: int, lanes: Producers,
    steps: Steps, batch: int,
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
        if is_behind or closes.earliest[close] >= closes.latest[base] or closes.after[close] >= place:
            continue
        if closes.splits[close] > s:
            continue
        if s < len(splits.latest) and splits.latest[s] <= closes.earliest[close]:
            continue
        after = estimate if estimate < 0 else updated(lanes.profile[0], estimate, closes.ratio[close], lanes, 0)
        next_base, left = base, ahead | (1 << bit)
        while left & 1:
            next_base, left = next_base + 1, left >> 1
        count = add_state(states, count, after, next_base, left, s, steps, close, batch, states.path[at])
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
    other.path[count] = states.path[at]
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
    states.path[0] = NONE
    return 1
