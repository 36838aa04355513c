"""How much memory is in use for how long: the timeline, the curve and their quantiles."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.columns.arrays import Ints
from udfs.replay.consumer_memory.state import POOL_OUTCOME
from udfs.replay.consumer_memory.usage import (
    SLOT_US,
    SLOTS,
    advance_meter,
    begin_metering,
    begin_window,
    count_wait,
    draw_curves,
    enters_window,
    is_in_time,
    new_meter,
    note_waited,
    room_for_curves,
    sum_up,
    use_bytes,
    wait_more,
)
from udfs.replay.shared.histogram import BUCKETS, bucket_of_value, quantile_of, quantile_within
from udfs.replay.shared.window import Window


def test_a_timeline_keeps_its_peaks_however_long_it_gets() -> None:
    meter = new_meter()
    begin_metering(meter, 0)
    use_bytes(meter, 70)
    advance_meter(meter, 10)
    use_bytes(meter, -70)
    advance_meter(meter, 3 * SLOTS * SLOT_US)
    use_bytes(meter, 30)
    most = meter.slots["most_used"]
    assert meter.usage["slot_us"][0] == 4 * SLOT_US
    assert most[0] == 70
    assert most[3 * SLOTS // 4] == 30
    assert most[1 : 3 * SLOTS // 4].max() == 0
    assert (meter.level_us[70], int(meter.level_us.sum())) == (10, 3 * SLOTS * SLOT_US)


def test_a_lane_begins_without_the_usage_of_the_lane_before() -> None:
    meter, outcomes, curves = new_meter(), np.zeros(2, POOL_OUTCOME), room_for_curves(2, np.array([1]))
    for lane, used in enumerate((200, 20)):
        begin_metering(meter, 5)
        use_bytes(meter, used)
        advance_meter(meter, 25)
        count_wait(meter, used)
        note_waited(outcomes[lane], used)
        sum_up(meter, outcomes[lane])
        draw_curves(meter, curves, 0, lane)
    for name in ("used_max", "used_p50", "wait_p99", "longest_us"):
        assert outcomes[name].tolist() == [200, 20]
    assert (outcomes["began_at"].tolist(), outcomes["ended_at"].tolist()) == ([5, 5], [25, 25])
    steps, slots = curves.steps[: curves.written[0]], curves.slots[: curves.written[1]]
    assert steps[["lane", "bytes", "above_us"]].tolist() == [(0, 200, 0), (1, 20, 0)]
    assert slots[["lane", "slot", "most_used"]].tolist() == [(0, 0, 200), (1, 0, 20)]


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("values", [[], [0], [7, 7, 9000], list(range(0, 100_000, 7))])
def test_kernels_find_the_same_quantiles_as_other_code(values: list[int], share: float) -> None:
    counts: Ints = np.zeros(BUCKETS, np.int64)
    for value in values:
        counts[bucket_of_value(value)] += 1
    largest = max(values, default=0)
    assert quantile_of(counts, len(values), share, largest) == (quantile_within(counts, share, largest) or 0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, SLOT_US - 1, SLOT_US, 3 * SLOT_US + 7, 70 * SLOT_US, 300 * SLOT_US]),
        st.sampled_from([0, 5, 100, 255]),
        st.sampled_from([0, 1, 3]),
    ),
    min_size=1,
    max_size=12,
)


@given(STEPS)
def test_usage_is_what_a_plain_list_of_all_levels_shows(steps: list[tuple[int, int, int]]) -> None:
    """After some time a step changes the bytes in use, then how many wait. Each level lasts until the next change."""
    meter, outcome, curves = new_meter(), np.zeros(1, POOL_OUTCOME), room_for_curves(1, np.array([99]))
    begin_metering(meter, 1000)
    now, used, waiting, levels = 1000, 0, 0, [(1000, 1000, 0, 0)]
    for after_us, more, waits in steps:
        advance_meter(meter, now + after_us)
        levels.append((now, now + after_us, used, waiting))
        now += after_us
        use_bytes(meter, more - used)
        levels.append((now, now, more, waiting))
        wait_more(meter, waits - waiting)
        levels.append((now, now, more, waits))
        used, waiting = more, waits
    sum_up(meter, outcome[0])
    draw_curves(meter, curves, 2, 0)
    span, slot_us = now - 1000, int(meter.usage["slot_us"][0])
    assert slot_us == next(width for width in (SLOT_US << place for place in range(9)) if span // width < SLOTS)
    for place in range(SLOTS):
        begin = 1000 + place * slot_us
        within = [level for level in levels if level[0] < begin + slot_us and level[1] >= begin]
        expected = tuple(max((level[column] for level in within), default=0) for column in (2, 3))
        assert meter.slots[place].tolist() == expected
    spent = Counter[int]()
    for begin, end, of, _ in levels:
        spent[of] += end - begin
    lasting = sorted(level for level in spent if spent[level])
    assert [(level, int(meter.level_us[level])) for level in lasting] == [(level, spent[level]) for level in lasting]
    assert curves.steps[["unit", "bytes", "above_us"]][: curves.written[0]].tolist() == [
        (2, level, sum(spent[other] for other in lasting if other > level)) for level in lasting
    ]
    assert curves.written[1] == span // slot_us + 1
    for name, share in (("used_p50", 0.5), ("used_p95", 0.95), ("used_p99", 0.99)):
        below = (level for level in lasting if sum(spent[of] for of in lasting if of <= level) >= share * span)
        assert outcome[name][0] == (next(below) if span else 0)
    assert outcome[["began_at", "ended_at", "used_max"]][0].tolist() == (1000, now, max(level[2] for level in levels))


def test_quantiles_of_waits_are_over_all_that_got_memory() -> None:
    meter, outcome = new_meter(), np.zeros(1, POOL_OUTCOME)
    begin_metering(meter, 0)
    for waited in (0, 0, 0, 40, 90):
        count_wait(meter, waited)
        note_waited(outcome[0], waited)
    sum_up(meter, outcome[0])
    assert outcome[["wait_us", "longest_us", "wait_p50", "wait_p99"]][0].tolist() == (130, 90, 0, 90)


def test_the_usage_before_a_window_is_forgotten_and_memory_in_use_stays_in_use() -> None:
    meter, outcome = new_meter(Window(1000, 5000)), np.zeros(1, POOL_OUTCOME)
    begin_metering(meter, 10)
    use_bytes(meter, 200)
    count_wait(meter, 90)
    advance_meter(meter, 500)
    use_bytes(meter, -150)
    wait_more(meter, 2)
    assert [enters_window(meter, time) for time in (999, 1000, 1001)] == [False, True, True]
    begin_window(meter)
    assert not enters_window(meter, 1500), "it has begun"
    assert [is_in_time(meter, time) for time in (4999, 5000)] == [True, False]
    assert meter.slots[0].tolist() == (50, 2)
    advance_meter(meter, 1400)
    sum_up(meter, outcome[0])
    assert outcome[["began_at", "ended_at", "used_max", "used_p50", "wait_p99"]][0].tolist() == (1000, 1400, 50, 50, 0)
    assert (int(meter.level_us.sum()), int(meter.waits.sum())) == (400, 0)


def test_a_window_that_began_before_the_meter_needs_no_second_begin() -> None:
    meter = new_meter(Window(1000, 5000))
    begin_metering(meter, 1000)
    assert not enters_window(meter, 2000)
