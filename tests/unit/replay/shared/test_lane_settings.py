"""Settings as arrays with a value for each lane."""

from __future__ import annotations

import numpy as np

from udfs.replay.shared.lanes import AS_CAPTURED, NO_LIMIT, LaneSettings

LANES = LaneSettings(("captured", "more", "none"), ({}, {"step": 0.5, "bytes": 7}, {"bytes": NO_LIMIT}), {"bytes": 5})


def test_a_lane_has_its_own_value_else_the_one_in_force() -> None:
    assert LANES.values("bytes") == [5, 7, NO_LIMIT]
    assert LANES.ints("bytes", unset=-2).tolist() == [5, 7, -2]
    assert LANES.ints("step_of_another").tolist() == [0, 0, 0]
    assert LANES.changed_ints("bytes_of_another").tolist() == [AS_CAPTURED] * 3


def test_a_number_that_nobody_sets_is_0() -> None:
    singles = LANES.singles("step")
    assert (singles.tolist(), singles.dtype) == ([0, 0.5, 0], np.float32)
