"""A line is fitted to times: the time for an amount of 0, and the additional time for each unit."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.replay.shared.line_fit import fit_line


@pytest.mark.parametrize(
    ("amounts", "times", "share", "line"),
    [
        ([], [], 0.5, (0, 0)),
        ([0, 0, 0], [3, 4, 8], 0.5, (5, 0)),
        ([0, 0, 0, 10, 10], [1, 2, 9, 22, 42], 0.5, (2, 3)),
        ([10, 30], [14, 34], 0.0, (14, 0.5)),
        ([10, 30, 20], [14, 34, 24], 0.5, (19, 0.25)),
        ([0, 5, 5], [9, 1, 2], 0.5, (1.5, 0)),
        ([0, 5], [9, 9], 0.5, (9, 0)),
    ],
    ids=["nothing", "no amounts", "idle times", "from the shortest", "half way to the median", "shorter than idle",
         "as long as idle"],
)  # fmt: skip
def test_the_line_has_the_same_sum_as_the_times(
    amounts: list[int], times: list[int], share: float, line: tuple[float, float]
) -> None:
    assert fit_line(np.array(amounts, np.int64), np.array(times, np.int64), share) == pytest.approx(line)
