"""When a batch can be read in the closed loop, by what responses show of it."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.tables.steps import READS
from udfs.replay.fetch.closed_logs import requests_of, shown, visible_from
from udfs.time_units import ALWAYS, NEVER

LAST = np.array([9, 19, 29, 39])
FETCHES = {str(READS.request_time): np.array([0, 100, 200]), str(READS.response_time): np.array([10, 180, 260])}
TOLD = FETCHES | {str(READS.told_bound): np.array([10, 20, 30])}
"""Three fetches, of which the first finds a batch there and each later one is told of one more."""


def test_a_bound_is_told_by_a_fetch_that_was_sent_and_answered() -> None:
    found = shown(LAST, TOLD, requests_of(FETCHES))
    assert found.at.tolist() == [ALWAYS, 180, 260, NEVER]
    assert found.asked.tolist() == [ALWAYS, 100, 200, NEVER]
    assert found.since.tolist() == [ALWAYS, 11, 181, 261]


@pytest.mark.parametrize(
    ("before", "visible"),
    [(120, 180), (50, 50), (5, 11)],  # while its fetch was under way; between two; before the fetch that did not get it
)
def test_what_another_got_a_consumer_gets_when_its_own_fetches_can_have_it(before: int, visible: int) -> None:
    """Of a follower, or a fetch that waits for more than a byte, they do not tell."""
    others = np.array([5, before, 190, 300])
    found = shown(LAST, TOLD, requests_of(FETCHES))
    assert visible_from(others, found, True).tolist() == [ALWAYS, visible, 190, 300]
    assert visible_from(others, found, False).tolist() == [ALWAYS, before, 190, 300]
