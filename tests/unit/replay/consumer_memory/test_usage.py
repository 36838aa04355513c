"""How much memory is in use for how long: the timeline, the curve and their quantiles."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.columns.arrays import Ints
from udfs.replay.consumer_memory.state import POOL_OUTCOME
from udfs.replay.consumer_memory.usage import (
    SLOT_US,
    SLOTS,
    advance_meter,
    begin_metering,
    count_wait,
    draw_curves,
    new_meter,
    note_waited,
    room_for_curves,
    sum_up,
    use_bytes,
)
from udfs.replay.shared.histogram import BUCKETS, bucket_of_value, quantile_of, quantile_within


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
