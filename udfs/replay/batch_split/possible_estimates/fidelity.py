"""Do batches end, in the capture, where KIP-126 ends them at the captured settings? One verdict for each batch."""

from __future__ import annotations

import numpy as np

from schemas.tables.split_reasons import SPLITS
from udfs.columns.arrays import Ints, Record, Records
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import estimated_bytes, has_room, record_bytes, upper_bound
from udfs.replay.batch_split.possible_estimates.estimates import (
    follow_events,
    follow_in_turn,
    forget_steps,
    keep_fewest_waits,
)
from udfs.replay.batch_split.possible_estimates.state import (
    EARLY,
    LINGERED,
    LOST,
    MOST_STEPS,
    NO_ESTIMATE,
    NOT_CUT,
    WAITED,
    EstimateGroup,
    GroupSim,
    Memory,
    new_sim,
)
from udfs.replay.batch_split.state import bytes_in_batch
from udfs.replay.shared.fidelity_rows import AGREED

BEGAN_BEFORE, ORDER_OPEN = SPLITS.codes[SPLITS.producer_began_before], SPLITS.codes[SPLITS.close_append_order]
FEWER_RECORDS, MORE_RECORDS = SPLITS.codes[SPLITS.fewer_records], SPLITS.codes[SPLITS.more_records]


@kernel
def bytes_of_next(batch: Record, first_timestamp: int) -> int:
    """Bytes of the record that may have ended a batch. If there are two such records the larger one decides."""
    count = batch.end - batch.first
    size: int = record_bytes(batch.next_content, count, batch.next_timestamp - first_timestamp)
    if batch.other_content >= 0:
        size = max(size, record_bytes(batch.other_content, count, batch.other_timestamp - first_timestamp))
    return size


@kernel
def verdict_with(sim: GroupSim, number: int, estimate: np.float32, cut: int) -> int:
    """Whether a batch that was created with this estimate ends where it was captured: AGREED, FEWER_ or MORE_RECORDS.

    cut: the least `cut` with which a batch may end before it is full: WAITED, EARLY, LINGERED or more.
    """
    batch, settings, uncompressed = sim.batches[number], sim.settings[0], 0
    first = sim.records[batch.first]
    limit = max(settings.batch_size, upper_bound(first.content))
    for record in range(batch.first, batch.end):
        size = bytes_in_batch(sim.records, record, batch.first)
        estimated = estimated_bytes(uncompressed, estimate, settings.estimation_factor, sim.codec != 0)
        if not has_room(record - batch.first, estimated, limit, size):
            return MORE_RECORDS
        uncompressed += size
    if batch.cut >= cut:
        return AGREED
    estimated = estimated_bytes(uncompressed, estimate, settings.estimation_factor, sim.codec != 0)
    has_more = has_room(batch.end - batch.first, estimated, limit, bytes_of_next(batch, first.timestamp))
    return FEWER_RECORDS if has_more else AGREED


@kernel
def verdict_within_bounds(sim: GroupSim, number: int) -> int:
    """The verdict on a batch that was created with any estimate within the bounds: ORDER_OPEN if it depends on which.

    A larger estimate gives fewer records. So if both bounds give the same verdict, all estimates between them give it.
    """
    if sim.bounds[0] < 0:
        return ORDER_OPEN
    least = verdict_with(sim, number, sim.bounds[0], EARLY)
    greatest = verdict_with(sim, number, sim.bounds[1], EARLY)
    return least if least == greatest else ORDER_OPEN


@kernel
def verdict_over_estimates(sim: GroupSim, number: int, cut: int) -> int:
    """The verdict over all possible estimates: AGREED if all of them agree, ORDER_OPEN if some do. Writes the agreeing
    ones to `agreeing`. cut: as in `verdict_with`.
    """
    memory, progress, worst = sim.memory, sim.memory.progress[0], AGREED
    progress.agreeing = 0
    for place in range(progress.estimates):
        known = memory.possible[place]
        if known.estimate == NO_ESTIMATE or known.estimate == LOST:
            progress.agreeing = 0
            return BEGAN_BEFORE if known.estimate == NO_ESTIMATE else verdict_within_bounds(sim, number)
        verdict = verdict_with(sim, number, known.estimate, cut)
        if verdict == AGREED:
            memory.agreeing[progress.agreeing] = known
            progress.agreeing += 1
        else:
            worst = verdict
    if progress.agreeing == progress.estimates:
        return AGREED
    return ORDER_OPEN if progress.agreeing else worst


@kernel
def judge_batch(sim: GroupSim, number: int) -> None:
    """Write the verdict on a batch. If one order is sought, a batch ends early without reason only if nothing else
    fits.
    """
    cut, verdict, progress = LINGERED if sim.in_order else EARLY, AGREED, sim.memory.progress[0]
    progress.agreeing = 0
    while cut >= (WAITED if sim.in_order else EARLY) and progress.agreeing == 0:
        verdict = verdict_over_estimates(sim, number, cut)
        cut -= 1
    if verdict == FEWER_RECORDS and sim.batches[number].cut == WAITED:
        verdict = ORDER_OPEN
    sim.verdicts[number] = AGREED if sim.in_order and progress.agreeing else verdict
    if sim.in_order and sim.batches[number].cut != NOT_CUT and progress.agreeing:
        sim.was_full[number] = is_full_with_any(sim, number)


@kernel
def is_full_with_any(sim: GroupSim, number: int) -> bool:
    """Whether one of the agreeing estimates leaves no room for the record that may have ended the batch."""
    for place in range(sim.memory.progress[0].agreeing):
        if verdict_with(sim, number, sim.memory.agreeing[place].estimate, LINGERED + 1) == AGREED:
            return True
    return False


@kernel
def keep_agreeing(sim: GroupSim, number: int) -> None:
    """Go on with only those possible estimates that agree with a batch, if the batch shows which of them it was."""
    memory, progress = sim.memory, sim.memory.progress[0]
    if 0 < progress.agreeing < progress.estimates and (sim.in_order or is_alone(sim, number)):
        for place in range(progress.agreeing):
            memory.possible[place] = memory.agreeing[place]
        progress.estimates = progress.agreeing


@kernel
def is_alone(sim: GroupSim, number: int) -> bool:
    """Whether no other batch was created in the same ms; the capture does not show the order of such batches."""
    batches = sim.batches
    is_first = number == 0 or batches[number - 1].time < batches[number].time
    return is_first and (number + 1 == len(batches) or batches[number + 1].time > batches[number].time)


@kernel
def judge_batches(sim: GroupSim) -> float:
    """Write the verdict on every batch, and the order. Returns the estimate at the end, or NO_ESTIMATE or LOST."""
    progress = sim.memory.progress[0]
    progress.estimates = 1
    for number in range(len(sim.batches)):
        follow_events(sim, number)
        judge_batch(sim, number)
        keep_agreeing(sim, number)
        if not sim.in_order:
            forget_steps(sim)
        elif progress.estimates == 1 or progress.steps > MOST_STEPS // 2:
            keep_fewest_waits(sim)
    keep_fewest_waits(sim)
    follow_in_turn(sim, NEVER)
    return float(sim.memory.possible[0].estimate)


def judge_group(group: EstimateGroup, records: Records, settings: Records, memory: Memory) -> tuple[Ints, float]:
    """(the verdict on each batch of a group in any possible order; an estimate that is possible at the end).

    A verdict is AGREED or a code of SPLITS: int64[batches]. The estimate may be NO_ESTIMATE or LOST. records:
    RECORD[records]. settings: SPLIT_SETTINGS[lanes].
    """
    sim = new_sim(group, records, settings, memory, in_order=False)
    return sim.verdicts, judge_batches(sim)


def judge_group_in_order(
    group: EstimateGroup, records: Records, settings: Records, memory: Memory
) -> tuple[Ints, Records]:
    """(the verdict on each batch of a group in one order of closes and splits, int64[batches]; that order,
    PLACED[closes, then splits]).

    The batches show the order, for what came of one shows which estimate it was created with. Of several orders that
    give the same batches one is taken; a batch that no order gives leaves all of them. records: RECORD[records].
    settings: SPLIT_SETTINGS[lanes].
    """
    sim = new_sim(group, records, settings, memory, in_order=True)
    judge_batches(sim)
    return sim.verdicts, sim.order
