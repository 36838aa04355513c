"""The estimates that are possible at a time, each of which follows from an order of closes and splits.

On every connection one close may be under way. If several are, their order is not known, and each order gives an
estimate of its own. These estimates are kept side by side, with the closes and splits that lead to them.
"""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import estimate_after_split, updated_estimate
from udfs.replay.batch_split.possible_estimates.state import LOST, MOST_ESTIMATES, GroupSim

MOST_AHEAD = 62
"""The most closes that may be undecided at once: each has a bit of an int64."""
TOO_MANY = MOST_ESTIMATES + 1


@kernel
def follow_events(sim: GroupSim, number: int) -> None:
    """Let the estimates follow all closes and splits that may have happened before a batch was created; LOST if these
    are too many.
    """
    progress, batch = sim.memory.progress[0], sim.batches[number]
    if progress.estimates == 1 and sim.memory.possible[0].estimate < 0:
        skip_closes(sim, batch.time)
    progress.batch, progress.until = number, batch.until
    progress.place = batch.place if sim.in_order else batch.later
    place = 0
    while place < progress.estimates <= MOST_ESTIMATES:
        add_closes(sim, place)
        add_split(sim, place)
        place += 1
    if progress.estimates <= MOST_ESTIMATES:
        drop_overdue(sim, batch.time)
        if sim.in_order and batch.before >= 0 and not sim.was_full[batch.before]:
            drop_unclosed(sim, batch.close_before)
    if progress.estimates == 0 or progress.estimates == TOO_MANY:
        keep_fewest_waits(sim)
        lose_estimates(sim, batch.time)


@kernel
def may_split(sim: GroupSim, place: int) -> bool:
    """Whether the next split of a possible estimate may have happened by then."""
    split = sim.memory.possible[place].splits
    return split < len(sim.splits) and sim.splits[split].earliest <= sim.memory.progress[0].until


@kernel
def add_closes(sim: GroupSim, place: int) -> None:
    """Add the estimates that follow from a possible one with one more close: any close that may have happened by then,
    and before all closes that the estimate has not yet followed.
    """
    known, progress, closes = sim.memory.possible[place], sim.memory.progress[0], sim.closes
    if known.estimate < 0 and not may_split(sim, place):  # it does not matter which closes happened
        return
    for bit in range(len(closes) - known.base):
        number = known.base + bit
        if closes[number].none_before > progress.until or progress.estimates == TOO_MANY:
            return
        if bit == MOST_AHEAD:
            progress.estimates = TOO_MANY
        elif not (known.ahead >> bit) & 1 and may_be_next(sim, place, number):
            add_close(sim, place, bit)


@kernel
def may_be_next(sim: GroupSim, place: int, number: int) -> bool:
    """Whether a close may be the next one that a possible estimate follows."""
    known, close, progress = sim.memory.possible[place], sim.closes[number], sim.memory.progress[0]
    if close.earliest > progress.until or close.earliest >= sim.closes[known.base].latest:
        return False
    if close.after >= progress.place:
        return False
    is_behind_next = known.splits < len(sim.splits) and sim.splits[known.splits].latest <= close.earliest
    return close.splits <= known.splits and not is_behind_next


@kernel
def add_close(sim: GroupSim, place: int, bit: int) -> None:
    """Add the estimate that follows from a possible one with one more close. bit: the distance of that close from its
    base.
    """
    known, settings = sim.memory.possible[place], sim.settings[0]
    number, ratio = known.base + bit, sim.closes[known.base + bit].ratio
    added = sim.memory.possible[sim.memory.progress[0].estimates]
    base, ahead = known.base, known.ahead | (1 << bit)
    while ahead & 1:
        base, ahead = base + 1, ahead >> 1
    added.base, added.ahead, added.splits, added.step = base, ahead, known.splits, known.step
    added.waits = known.waits + comes_after_its_ms(sim, sim.closes[number].earliest)
    added.estimate = known.estimate if known.estimate < 0 else updated_estimate(settings, known.estimate, ratio)
    keep_added(sim, number)


@kernel
def comes_after_its_ms(sim: GroupSim, earliest: int) -> bool:
    """Whether the judged batch was created after its ms, if an event possible from `earliest` on came before it."""
    return bool(earliest > sim.batches[sim.memory.progress[0].batch].time + US_PER_MS)


@kernel
def is_close_behind(known: Record, close: int) -> bool:
    """Whether a possible estimate has followed a close; true for NONE."""
    ahead = close - known.base
    return ahead < 0 or (ahead <= MOST_AHEAD and bool((known.ahead >> ahead) & 1))


@kernel
def add_split(sim: GroupSim, place: int) -> None:
    """Add the estimate that follows from a possible one with the next split, if that may have happened by then."""
    known, closes, progress = sim.memory.possible[place], sim.closes, sim.memory.progress[0]
    if progress.estimates == TOO_MANY or not may_split(sim, place):
        return
    split = sim.splits[known.splits]
    if not is_close_behind(known, split.after):
        return
    if known.base == len(closes) or closes[known.base].latest > split.earliest:
        added = sim.memory.possible[progress.estimates]
        added.base, added.ahead, added.splits, added.step = known.base, known.ahead, known.splits + 1, known.step
        added.waits = known.waits + comes_after_its_ms(sim, split.earliest)
        added.estimate = estimate_after_split(sim.settings[0].profile, split.ratio)
        keep_added(sim, len(closes) + known.splits)


@kernel
def keep_added(sim: GroupSim, event: int) -> None:
    """Keep the estimate written behind the others, unless an equal one has no more waits; note the step to it."""
    memory, progress = sim.memory, sim.memory.progress[0]
    count, added = progress.estimates, sim.memory.possible[progress.estimates]
    place = 0
    while place < count and not is_same(memory.possible[place], added):
        place += 1
    if place < count and memory.possible[place].waits <= added.waits:
        return
    if place == MOST_ESTIMATES or progress.steps == len(memory.steps):
        progress.estimates = TOO_MANY
        return
    step = memory.steps[progress.steps]
    step.event, step.batch, step.before = event, progress.batch, added.step
    added.step = progress.steps
    progress.steps += 1
    if place == count:
        progress.estimates += 1
    else:
        memory.possible[place] = added


@kernel
def is_same(known: Record, other: Record) -> bool:
    """Whether two estimates are equal and have followed the same closes and splits."""
    is_behind_same = known.base == other.base and known.ahead == other.ahead and known.splits == other.splits
    return bool(is_behind_same and known.estimate == other.estimate)


@kernel
def skip_closes(sim: GroupSim, time: int) -> None:
    """Let the only estimate, which is not known, follow all closes that surely happened by now."""
    known = sim.memory.possible[0]
    while known.base < len(sim.closes) and sim.closes[known.base].latest <= time:
        known.base += 1
        known.ahead >>= 1


@kernel
def drop_overdue(sim: GroupSim, time: int) -> None:
    """Drop the estimates that have not followed a close or split that surely happened by now."""
    kept = 0
    for place in range(sim.memory.progress[0].estimates):
        known = sim.memory.possible[place]
        lacks_close = known.base < len(sim.closes) and sim.closes[known.base].latest <= time
        if not lacks_close and not (known.splits < len(sim.splits) and sim.splits[known.splits].latest <= time):
            sim.memory.possible[kept] = known
            kept += 1
    sim.memory.progress[0].estimates = kept


@kernel
def drop_unclosed(sim: GroupSim, close: int) -> None:
    """Drop the estimates that have not followed a close, unless none has."""
    kept, possible = 0, sim.memory.possible
    for place in range(sim.memory.progress[0].estimates):
        kept += is_close_behind(possible[place], close)
    if kept == 0:
        return
    kept = 0
    for place in range(sim.memory.progress[0].estimates):
        if is_close_behind(possible[place], close):
            possible[kept] = possible[place]
            kept += 1
    sim.memory.progress[0].estimates = kept


@kernel
def lose_estimates(sim: GroupSim, time: int) -> None:
    """Too many estimates, or none: go on with only LOST, which has followed all that surely happened by now."""
    known = sim.memory.possible[0]
    known.estimate, known.base, known.ahead, known.splits, known.step = LOST, 0, 0, 0, NONE
    skip_closes(sim, time)
    while known.splits < len(sim.splits) and sim.splits[known.splits].latest <= time:
        known.splits += 1
    sim.memory.progress[0].estimates = 1


@kernel
def keep_fewest_waits(sim: GroupSim) -> None:
    """Keep only the estimate with the fewest waits, and write the steps to it into the order."""
    memory, progress, known = sim.memory, sim.memory.progress[0], sim.memory.possible[0]
    least = 0
    for place in range(min(progress.estimates, MOST_ESTIMATES)):
        if memory.possible[place].waits < memory.possible[least].waits:
            least = place
    if least:
        memory.possible[0] = memory.possible[least]
    number = known.step
    while number != NONE:
        step = memory.steps[number]
        sim.order[step.event].batch, sim.order[step.event].rank = step.batch, progress.settled + number
        number = step.before
    progress.settled += progress.steps
    progress.steps, progress.estimates, known.step = 0, 1, NONE


@kernel
def forget_steps(sim: GroupSim) -> None:
    """Forget the steps to the estimates."""
    for place in range(sim.memory.progress[0].estimates):
        sim.memory.possible[place].step = NONE
    sim.memory.progress[0].steps = 0


@kernel
def follow_in_turn(sim: GroupSim, time: int) -> None:
    """Let the first estimate follow all that surely happened by `time` (us), in the order of requests."""
    known, settings, closes, splits = sim.memory.possible[0], sim.settings[0], sim.closes, sim.splits
    while True:
        close, split = known.base, known.splits
        is_close = close < len(closes) and closes[close].latest <= time
        is_split = split < len(splits) and splits[split].latest <= time
        if is_split and (not is_close or splits[split].latest <= closes[close].latest):
            known.estimate = estimate_after_split(settings.profile, splits[split].ratio)
            known.splits += 1
        elif is_close:
            if known.estimate >= 0 and not known.ahead & 1:
                known.estimate = updated_estimate(settings, known.estimate, closes[close].ratio)
            known.base += 1
            known.ahead >>= 1
        else:
            return
