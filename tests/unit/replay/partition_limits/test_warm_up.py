"""The warm-up compiles each kernel for the types that all histories have, so that no worker compiles it again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.replay.partition_limits.clusters import replay
from tests.unit.replay.partition_limits.test_replay import LANES, RICH
from udfs.replay.partition_limits.controller import replay_lanes
from udfs.replay.partition_limits.curve_passes import fill_curve
from udfs.replay.partition_limits.placement.possible_draws import check_placements
from udfs.replay.partition_limits.sums import sum_outcomes
from udfs.replay.partition_limits.warm_up import warm_up


@pytest.mark.parametrize("kernel", [replay_lanes, fill_curve, check_placements, sum_outcomes])
def test_a_kernel_is_compiled_for_one_combination_of_types(kernel: Any) -> None:
    warm_up()
    replay(RICH, LANES)
    assert len(kernel.signatures) == 1
