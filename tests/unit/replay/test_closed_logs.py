"""When a batch can be read in the closed loop, by what responses show of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from schemas.tables.steps import READS
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.closed_logs import requests_of, told_of
from udfs.replay.fetch_max_bytes.log_reach import visible_from

LAST = np.array([9, 19, 29, 39])
FETCHES = {str(READS.request_time): np.array([0, 100, 200]), str(READS.response_time): np.array([10, 180, 260])}
TOLD = FETCHES | {str(READS.told_bound): np.array([10, 20, 30])}
"""Three fetches, of which the first finds a batch there and each later one is told of one more."""


def when_visible(before: Sequence[int], answers_at_once: bool) -> list[int]:
    """When each batch can be read that responses first had records of at these times."""
    told, requests = told_of(np.zeros(3, np.int64), 1, TOLD), requests_of(FETCHES)
    batches = zip(LAST, before, strict=True)
    return [int(visible_from(last, first, 0, told, requests, answers_at_once)) for last, first in batches]


def test_a_bound_is_told_by_a_fetch_that_was_sent_and_answered() -> None:
    assert when_visible([NEVER] * 4, True) == [ALWAYS, 180, 260, NEVER]


@pytest.mark.parametrize(
    ("before", "visible"),
    [(120, 180), (50, 50), (5, 11)],  # while its fetch was under way; between two; before the fetch that did not get it
)
def test_what_another_got_a_consumer_gets_when_its_own_fetches_can_have_it(before: int, visible: int) -> None:
    """Of a follower, or a fetch that waits for more than a byte, they do not tell."""
    assert when_visible([5, before, 190, 300], True) == [ALWAYS, visible, 190, 300]
    assert when_visible([5, before, 190, 300], False) == [ALWAYS, before, 190, 300]
