"""How much memory is in use for how long, and how long others wait for it, in the lane that is replayed.

The results of a lane are written into its outcome and into curves. The same arrays then serve the next lane and unit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record, Records
from udfs.columns.records import int_fields, new_records
from udfs.kernels.kernel import kernel
from udfs.replay.shared.histogram import BUCKETS, bucket_of_value, quantile_of
from udfs.replay.shared.window import WHOLE, Window

SLOTS = 256
SLOT_US = 100_000
"""The width of a slot at first. It doubles whenever SLOTS slots do not reach."""

USAGE = int_fields(
    "began_at",  # us
    "time",  # us: the time up to which everything is accounted for
    "used",  # bytes
    "most_used",
    "waiting",  # how many connections or threads wait for memory
    "slot_us",
    "top_level",  # the highest bucket in which time was spent
    "top_wait",  # the highest bucket of a wait
    "waits_counted",
    "window_begins_at",  # us: usage counts from then on
    "window_ends_at",  # us: usage counts until then
)
"""What is in use at the time `time`, and what was in use since `began_at`."""
SLOT = int_fields("most_used", "most_waiting")
"""The most bytes in use, and the most connections or threads that waited, in a slot of slot_us."""

MEASURED = (
    "began_at",  # us
    "ended_at",
    "used_p50",  # bytes in use, over time
    "used_p95",
    "used_p99",
    "used_max",
    "slot_us",
    "waits",  # how many allocations had to wait
    "wait_us",  # the sum of all waits; in pools of consumers and brokers, of those that ended
    "longest_us",
    "wait_p50",  # us, over all that got memory, most of which did not wait
    "wait_p99",
)
"""The fields of every outcome."""
CURVE_STEP = int_fields("unit", "lane", "bytes", "above_us")
"""A step of the exceedance curve: a number of bytes, and for how many us more than that were in use."""
CURVE_SLOT = int_fields("unit", "lane", "slot", "most_used", "most_waiting")
"""A SLOT of a lane's timeline."""


class Meter(NamedTuple):
    """The usage of one lane at a time.

    usage: USAGE[1]. slots: SLOT[SLOTS]. The others are separate arrays, because they are scanned. level_us:
    int64[BUCKETS], the time that was spent at a number of bytes of each bucket. level_bytes: int64[BUCKETS], the most
    bytes of each bucket. waits: int64[BUCKETS], how many got their memory after a wait of each bucket (us).
    """

    usage: Records
    slots: Records
    level_us: Ints
    level_bytes: Ints
    waits: Ints


class UsageCurves(NamedTuple):
    """The curves of many units and lanes: steps, CURVE_STEP[room], of which the first written[0] are filled, and slots,
    CURVE_SLOT[room], of which the first written[1] are.
    """

    steps: Records
    slots: Records
    written: Ints


def new_meter(window: Window = WHOLE) -> Meter:
    """A meter that has counted nothing yet, and will count what is in the window."""
    usage = new_records(USAGE, 1, window_begins_at=window.begin, window_ends_at=window.end)
    slots, buckets = np.zeros(SLOTS, SLOT), np.zeros((3, BUCKETS), np.int64)
    return Meter(usage, slots, buckets[0], buckets[1], buckets[2])


def room_for_curves(lanes: int, messages: Ints) -> UsageCurves:
    """Room for the curves of `lanes` lanes. messages: int64[units], how many messages of each unit take memory."""
    steps = int(np.minimum(2 * messages + 1, BUCKETS).sum())  # each message changes the bytes in use twice
    written = np.zeros(2, np.int64)
    return UsageCurves(
        np.empty(lanes * steps, CURVE_STEP), np.empty(lanes * len(messages) * SLOTS, CURVE_SLOT), written
    )


@kernel
def begin_metering(meter: Meter, time: int) -> None:
    """Forget the lane before, and start the clock."""
    usage = meter.usage[0]
    usage.used, usage.waiting = 0, 0
    count_from(meter, time)


@kernel
def count_from(meter: Meter, time: int) -> None:
    """Forget the usage before `time` (us). Memory in use stays in use."""
    usage = meter.usage[0]
    for bucket in range(usage.top_level + 1):
        meter.level_us[bucket], meter.level_bytes[bucket] = 0, 0
    for bucket in range(usage.top_wait + 1):
        meter.waits[bucket] = 0
    for place in range(SLOTS):
        meter.slots[place].most_used, meter.slots[place].most_waiting = 0, 0
    usage.began_at, usage.time, usage.most_used = time, time, usage.used
    usage.slot_us, usage.top_level, usage.top_wait, usage.waits_counted = SLOT_US, 0, 0, 0


@kernel
def enters_window(meter: Meter, time: int) -> bool:
    """Whether the window begins by this time, and after the meter began to count."""
    usage = meter.usage[0]
    return bool(usage.began_at < usage.window_begins_at <= time)


@kernel
def begin_window(meter: Meter) -> None:
    """Begin the window: memory in use and waits count from its first moment on."""
    usage = meter.usage[0]
    advance_meter(meter, max(usage.time, usage.window_begins_at))
    count_from(meter, usage.time)
    note_usage(meter)


@kernel
def is_in_time(meter: Meter, time: int) -> bool:
    """Whether a time is before the window's end."""
    return bool(time < meter.usage[0].window_ends_at)


@kernel
def fold_slots(meter: Meter) -> None:
    """Make slots twice as wide."""
    for place in range(SLOTS // 2):
        slot, even, odd = meter.slots[place], meter.slots[2 * place], meter.slots[2 * place + 1]
        slot.most_used = max(even.most_used, odd.most_used)
        slot.most_waiting = max(even.most_waiting, odd.most_waiting)
    for place in range(SLOTS // 2, SLOTS):
        meter.slots[place].most_used, meter.slots[place].most_waiting = 0, 0
    meter.usage[0].slot_us *= 2


@kernel
def note_slot(meter: Meter, place: int) -> None:
    """Note in a slot how much is in use, and how many wait."""
    slot, usage = meter.slots[place], meter.usage[0]
    slot.most_used = max(slot.most_used, usage.used)
    slot.most_waiting = max(slot.most_waiting, usage.waiting)


@kernel
def advance_meter(meter: Meter, time: int) -> None:
    """Go on to `time` (us). Nothing changes until then."""
    usage = meter.usage[0]
    if time > usage.time:
        bucket = bucket_of_value(usage.used)
        meter.level_us[bucket] += time - usage.time
        meter.level_bytes[bucket] = max(meter.level_bytes[bucket], usage.used)
        usage.top_level = max(usage.top_level, bucket)
    while (time - usage.began_at) // usage.slot_us >= SLOTS:
        fold_slots(meter)
    first = (usage.time - usage.began_at) // usage.slot_us
    for place in range(first, (time - usage.began_at) // usage.slot_us + 1):
        note_slot(meter, place)
    usage.time = time


@kernel
def note_usage(meter: Meter) -> None:
    """Note in the current slot how much is in use, and how many wait."""
    usage = meter.usage[0]
    note_slot(meter, (usage.time - usage.began_at) // usage.slot_us)


@kernel
def use_bytes(meter: Meter, more: int) -> None:
    """Use `more` bytes more from the meter's time on, or fewer if it is negative."""
    usage = meter.usage[0]
    usage.used += more
    usage.most_used = max(usage.most_used, usage.used)
    note_usage(meter)


@kernel
def wait_more(meter: Meter, more: int) -> None:
    """Let `more` more wait from the meter's time on, or fewer if it is negative."""
    meter.usage[0].waiting += more
    note_usage(meter)


@kernel
def count_wait(meter: Meter, waited_us: int) -> None:
    """Count an allocation that waited for `waited_us`."""
    usage, bucket = meter.usage[0], bucket_of_value(waited_us)
    meter.waits[bucket] += 1
    usage.top_wait = max(usage.top_wait, bucket)
    usage.waits_counted += 1


@kernel
def note_waited(outcome: Record, waited_us: int) -> None:
    """Note in the outcome a wait of `waited_us`."""
    outcome.wait_us += waited_us
    outcome.longest_us = max(outcome.longest_us, waited_us)


@kernel
def sum_up(meter: Meter, outcome: Record) -> None:
    """Write the lane's usage into the fields MEASURED of its outcome, which has counted its waits itself."""
    usage = meter.usage[0]
    outcome.began_at, outcome.ended_at, outcome.slot_us = usage.began_at, usage.time, usage.slot_us
    span, most = usage.time - usage.began_at, usage.most_used
    outcome.used_p50 = quantile_of(meter.level_us, span, 0.5, most)
    outcome.used_p95 = quantile_of(meter.level_us, span, 0.95, most)
    outcome.used_p99 = quantile_of(meter.level_us, span, 0.99, most)
    outcome.used_max = most
    outcome.wait_p50 = quantile_of(meter.waits, usage.waits_counted, 0.5, outcome.longest_us)
    outcome.wait_p99 = quantile_of(meter.waits, usage.waits_counted, 0.99, outcome.longest_us)


@kernel
def draw_curves(meter: Meter, curves: UsageCurves, unit: int, lane: int) -> None:
    """Add to the curves a step for each level at which time was spent, and the lane's slots up to its end."""
    usage = meter.usage[0]
    above = usage.time - usage.began_at
    for bucket in range(usage.top_level + 1):
        if meter.level_us[bucket] > 0:
            above -= meter.level_us[bucket]
            step = curves.steps[curves.written[0]]
            step.unit, step.lane, step.bytes, step.above_us = unit, lane, meter.level_bytes[bucket], above
            curves.written[0] += 1
    for place in range((usage.time - usage.began_at) // usage.slot_us + 1):
        slot = curves.slots[curves.written[1]]
        slot.unit, slot.lane, slot.slot = unit, lane, place
        slot.most_used, slot.most_waiting = meter.slots[place].most_used, meter.slots[place].most_waiting
        curves.written[1] += 1
