"""The batch.size of a producer, as its batches tell it where nobody states it.

A batch that took a record was allowed as much, and one that ended at a record, not for its time, was not allowed that
one more. So each batch allows a range of batch.size, and the value is in nearly all of these ranges. They are those of
the estimates that are possible when the batch was made, of which `split_fidelity` tells more.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from udfs.columns.arrays import Ints, all_read_only, read_only
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import (
    Producers,
    after_split,
    estimated_bytes,
    record_bytes,
    updated,
    upper_bound,
)
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.possible_estimates.estimates import MOST_AHEAD, MS, Closes, Splits
from udfs.replay.batch_split.possible_estimates.events import Group
from udfs.replay.batch_split.possible_estimates.fidelity import CODES, EARLY, Made, Reason, bytes_of_next, judge
from udfs.replay.batch_split.roundest import UNBOUNDED, roundest

MOST_OUTSIDE = 0.01
"""Of the batches, those that Kafka's default may leave unexplained beside the best value."""
AROUND = (0.02, 0.01, 0)
"""How far from where most ranges meet the value may be: estimates depend on the order of closes, which nobody knows."""


@kernel
def gone_by(
    closes: Closes, splits: Splits, base: int, split: int, estimate: np.float32, now: int, lanes: Producers
) -> tuple[int, int, np.float32]:
    """(closes, splits, the estimate), once all that surely was by now is behind."""
    while True:
        is_close = base < len(closes.latest) and closes.latest[base] <= now
        is_split = split < len(splits.latest) and splits.latest[split] <= now
        if is_split and (not is_close or splits.latest[split] <= closes.latest[base]):
            estimate = after_split(lanes.profile[0], splits.ratio[split])
            split += 1
        elif is_close:
            estimate = updated(lanes.profile[0], estimate, closes.ratio[base], lanes, 0)
            base += 1
        else:
            return base, split, estimate


@kernel
def possible(
    closes: Closes, splits: Splits, base: int, split: int, estimate: np.float32, till: int, lanes: Producers
) -> tuple[np.float32, np.float32]:
    """The least and the greatest estimate with what may have been by then, taken in the order of requests."""
    least = greatest = estimate
    for close in range(base, min(base + MOST_AHEAD, len(closes.latest))):
        if closes.none_before[close] > till:
            break
        if closes.earliest[close] <= till:
            estimate = updated(lanes.profile[0], estimate, closes.ratio[close], lanes, 0)
            least, greatest = min(least, estimate), max(greatest, estimate)
    if split < len(splits.earliest) and splits.earliest[split] <= till:
        greatest = max(greatest, after_split(lanes.profile[0], splits.ratio[split]))
    return least, greatest


@kernel
def range_of(
    made: Made, batch: int, estimates: tuple[np.float32, np.float32], content: Ints, timestamp: Ints, codec: int,
    lanes: Producers,
) -> tuple[int, int]:  # fmt: skip
    """The least and the greatest batch.size under which a batch ends where it did; the first above the second for none.

    estimates: the least and the greatest at which it can have been made.
    """
    first, factor, uncompressed, least = made.first[batch], lanes.estimation_factor[0], 0, 0
    for record in range(first, made.end[batch]):
        size = record_bytes(content[record], record - first, timestamp[record] - timestamp[first])
        if record > first:
            least = max(least, estimated_bytes(uncompressed, estimates[0], factor, codec != 0) + size)
        uncompressed += size
    at_least = upper_bound(content[first])  # what the batch is allowed whatever batch.size is
    if least <= at_least:
        least = 0
    if made.cut[batch] >= EARLY:
        return least, UNBOUNDED
    size = bytes_of_next(made, batch, timestamp[first])
    most = estimated_bytes(uncompressed, estimates[1], factor, codec != 0) + size - 1
    return least, (most if most >= at_least else -1)


@kernel
def ranges(
    made: Made, closes: Closes, splits: Splits, content: Ints, timestamp: Ints, codec: int, lanes: Producers,
    estimate: np.float32, least: Ints, most: Ints,
) -> None:  # fmt: skip
    """`range_of` each batch, written to least and most: int64[batches]. estimate: before the first close."""
    base = split = 0
    for batch in range(len(made.created)):
        created = made.created[batch]
        base, split, estimate = gone_by(closes, splits, base, split, estimate, created, lanes)
        estimates = possible(closes, splits, base, split, estimate, created + MS, lanes)
        least[batch], most[batch] = range_of(made, batch, estimates, content, timestamp, codec, lanes)


def ranges_of(sent: Sent, group: Group, lanes: Producers) -> Ints:
    """int64[2, batches], the least and the greatest batch.size of each batch of a topic and codec."""
    found = np.zeros((2, len(group.told.made.created)), np.int64)
    made, closes, splits, content, timestamp = judged_from(sent, group)
    ranges(
        Made(*map(read_only, made)), Closes(*all_read_only(closes)), Splits(*all_read_only(splits)),
        read_only(content), read_only(timestamp), group.codec, Producers(*all_read_only(lanes)),
        np.float32(group.initial), *found,
    )  # fmt: skip
    return found


def judged_from(sent: Sent, group: Group) -> tuple[Made, Closes, Splits, Ints, Ints]:
    """What of a group its batches are judged from."""
    told = group.told
    return told.made, told.closes, told.splits, sent.log.content, sent.log.timestamp


def with_estimate(group: Group) -> Group:
    """The group without its rows, which for many topics would fill the memory. An estimate that is not known at the
    beginning is taken to be what the first batch has: it soon follows the batches."""
    ratios = group.told.closes.ratio
    is_known = group.initial >= 0 or len(ratios) == 0
    return group._replace(mine=group.mine[:0].copy(), initial=group.initial if is_known else float(ratios[0]))


def told_batch_size(sent: Sent, groups: Iterable[Group], lanes: Producers, default: int) -> int:
    """The batch.size in bytes that a producer's batches of all topics tell, `default` where they allow that.

    The ranges tell about where it is. Of the round values there, it is the one with the fewest batches that could not
    have ended where they did; among equals the roundest.
    """
    known = [with_estimate(group) for group in groups]
    least, most = np.concatenate([np.zeros((2, 0), np.int64), *(ranges_of(sent, g, lanes) for g in known)], axis=1)
    candidates = in_most_ranges(least[least <= most], most[least <= most], default)
    if len(candidates) == 1:
        return candidates[0]
    return min(candidates, key=lambda size: sum(disagreeing(sent, group, lanes, size) for group in known))


def disagreeing(sent: Sent, group: Group, lanes: Producers, batch_size: int) -> int:
    """How many batches cannot have ended where they did under a batch.size."""
    of_size = lanes._replace(batch_size=np.full_like(lanes.batch_size, batch_size))
    verdicts = judge(*judged_from(sent, group), group.codec, of_size, group.initial)[0]
    return int(np.isin(verdicts, (CODES[Reason.FEWER_RECORDS], CODES[Reason.MORE_RECORDS])).sum())


def is_shown(least: Ints, most: Ints, low: int, high: int, default: int, some: int) -> bool:
    """Whether batches show another value than the default: one above it is, once more than `some` took what the default
    has no room for. Below it they have to end where they did for want of room, most of those with several records: a
    send that waits for memory leaves batches that are not full, and so do other things that a capture does not tell.
    """
    if low > default:
        return int((least > default).sum()) > some
    is_full = most < UNBOUNDED
    return int((is_full & (least > 0) & (least <= low) & (most >= high)).sum()) * 2 > int(is_full.sum())


def in_most_ranges(least: Ints, most: Ints, default: int) -> list[int]:
    """The values to choose from: round ones about where most of the ranges [least, most], int64[ranges] each, meet, the
    roundest first; `default` alone where it is in nearly as many of them.
    """
    begins = np.unique(np.concatenate([[0], least, most[most < UNBOUNDED] + 1]))
    counts = np.searchsorted(np.sort(least), begins, "right") - np.searchsorted(np.sort(most), begins, "left")
    best, of_default = int(np.argmax(counts)), int(np.searchsorted(begins, default, "right")) - 1
    low = int(begins[best])
    high = int(begins[best + 1]) - 1 if best + 1 < len(begins) else UNBOUNDED
    some = int(MOST_OUTSIDE * len(least))
    if counts[of_default] >= counts[best] - some or not is_shown(least, most, low, high, default, some):
        return [default]
    if high == UNBOUNDED:
        return [roundest(low, high)]
    around = ((low - int(share * low), high + int(share * high)) for share in AROUND)
    return list(dict.fromkeys(roundest(*window) for window in around))
