"""The batch.size of a producer, as its batches show it if nobody states it.

A batch took the records that batch.size allowed. If it ended before a record, and not because it had lingered,
batch.size did not allow that record. So each batch gives a range for batch.size, by the estimates that are possible
when it was created. The value is in nearly all of these ranges.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import estimate_after_split, estimated_bytes, updated_estimate, upper_bound
from udfs.replay.batch_split.possible_estimates.estimates import MOST_AHEAD, follow_in_turn
from udfs.replay.batch_split.possible_estimates.fidelity import FEWER_RECORDS, MORE_RECORDS, bytes_of_next, judge_group
from udfs.replay.batch_split.possible_estimates.state import EARLY, EstimateGroup, GroupSim, Memory, new_sim
from udfs.replay.batch_split.state import bytes_in_batch
from udfs.replay.shared.batch_size_ranges import UNBOUNDED, values_in_most_ranges


@kernel
def possible_range(sim: GroupSim, until: int) -> tuple[np.float32, np.float32]:
    """The least and the greatest estimate after what may have happened by then, in the order of requests."""
    known, closes, splits, settings = sim.memory.possible[0], sim.closes, sim.splits, sim.settings[0]
    estimate = least = greatest = known.estimate
    for number in range(known.base, min(known.base + MOST_AHEAD, len(closes))):
        if closes[number].none_before > until:
            break
        if closes[number].earliest <= until:
            estimate = updated_estimate(settings, estimate, closes[number].ratio)
            least, greatest = min(least, estimate), max(greatest, estimate)
    if known.splits < len(splits) and splits[known.splits].earliest <= until:
        greatest = max(greatest, estimate_after_split(settings.profile, splits[known.splits].ratio))
    return least, greatest


@kernel
def batch_size_range(sim: GroupSim, number: int, least: np.float32, greatest: np.float32) -> tuple[int, int]:
    """The least and the greatest batch.size under which a batch ends where it did; the first above the second for none.

    least, greatest: the estimates between which it can have been created.
    """
    batch, factor, uncompressed, at_least = sim.batches[number], sim.settings[0].estimation_factor, 0, 0
    for record in range(batch.first, batch.end):
        size = bytes_in_batch(sim.records, record, batch.first)
        at_least = max(at_least, estimated_bytes(uncompressed, least, factor, sim.codec != 0) + size)
        uncompressed += size
    allowed = upper_bound(sim.records[batch.first].content)  # for the first record, whatever batch.size is
    if at_least <= allowed:
        at_least = 0
    if batch.cut >= EARLY:
        return at_least, UNBOUNDED
    size = bytes_of_next(batch, sim.records[batch.first].timestamp)
    at_most = estimated_bytes(uncompressed, greatest, factor, sim.codec != 0) + size - 1
    return at_least, (at_most if at_most >= allowed else -1)


@kernel
def find_ranges(sim: GroupSim, ranges: Ints) -> None:
    """Write the `batch_size_range` of each batch. ranges: int64[2, batches], the least and the greatest batch.size in
    bytes.
    """
    for number in range(len(sim.batches)):
        time = sim.batches[number].time
        follow_in_turn(sim, time)
        least, greatest = possible_range(sim, time + US_PER_MS)
        ranges[0, number], ranges[1, number] = batch_size_range(sim, number, least, greatest)


def with_estimate(group: EstimateGroup) -> EstimateGroup:
    """The group without its sendings, which for many topics would fill the memory. If the estimate at the beginning is
    not known, it is taken to be the ratio of the first batch: it soon follows the batches.
    """
    ratios = group.closes["ratio"]
    is_known = group.initial >= 0 or len(ratios) == 0
    return group._replace(is_of=group.is_of[:0].copy(), initial=group.initial if is_known else float(ratios[0]))


def inferred_batch_size(
    groups: Iterable[EstimateGroup], records: Records, settings: Records, memory: Memory, default: int
) -> int:
    """The batch.size in bytes that all batches of a producer show, `default` where they allow that.

    The ranges show about where it is. Of the round values there, it is the one with the fewest batches that could not
    have ended where they did; among equals the roundest. records: RECORD[records]. settings: SPLIT_SETTINGS[lanes].
    """
    known, ranges = [with_estimate(group) for group in groups], [np.zeros((2, 0), np.int64)]
    for group in known:
        ranges.append(np.zeros((2, len(group.batches)), np.int64))
        find_ranges(new_sim(group, records, settings, memory, in_order=False), ranges[-1])
    least, most = np.concatenate(ranges, axis=1)
    candidates = values_in_most_ranges(least[least <= most], most[least <= most], default)

    def disagreeing(batch_size: int) -> int:
        """How many batches cannot have ended where they did under a batch.size."""
        changed = settings.copy()
        changed["batch_size"] = batch_size
        verdicts = [judge_group(group, records, changed, memory)[0] for group in known]
        return int(np.isin(np.concatenate(verdicts), (FEWER_RECORDS, MORE_RECORDS)).sum())

    return candidates[0] if len(candidates) == 1 else min(candidates, key=disagreeing)
