"""When a batch can be read in the closed loop, by what responses show of it."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.tables.steps import READS
from udfs.replay.fetch.closed_logs import shown, visible_from
from udfs.replay.fetch.partition_log import ALWAYS, NEVER

LAST = np.array([9, 19, 29, 39])
TOLD = {
    str(READS.told_bound): np.array([10, 20, 30]),
    str(READS.request_time): np.array([0, 100, 200]),
    str(READS.response_time): np.array([10, 180, 260]),
}
"""Three fetches, of which the first finds a batch there and each later one is told of one more."""


def test_a_bound_is_told_by_a_fetch_that_was_sent_and_answered() -> None:
    found = shown(LAST, TOLD)
    assert found.at.tolist() == [ALWAYS, 180, 260, NEVER]
    assert found.asked.tolist() == [ALWAYS, 100, 200, NEVER]


@pytest.mark.parametrize(("answers_at_once", "visible"), [(True, 180), (False, 120)])
def test_what_another_got_while_a_fetch_was_under_way_was_not_for_its_reader_yet(
    answers_at_once: bool, visible: int
) -> None:
    """The second batch came to a follower at 120; the third, at 190, was there when the last fetch was sent."""
    before = np.array([5, 120, 190, 300])
    assert visible_from(before, shown(LAST, TOLD), answers_at_once).tolist() == [ALWAYS, visible, 190, 300]
