"""When a batch can be read in the closed loop, by what responses show of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from udfs.columns.records import new_records
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.closed_loop.events import BOUND
from udfs.replay.fetch_max_bytes.closed_loop.logs import FETCH_TIMES, NODE_LOGS, WANTED, ShownLogs, visible_from
from udfs.replay.fetch_max_bytes.state import READABLE_BATCH

LAST, SENT, ANSWERED = [9, 19, 29, 39], [0, 100, 200], [10, 180, 260]
"""Three fetches, of which the first finds a batch there and each later one is told of one more."""


def when_visible(before: Sequence[int], answers_at_once: bool) -> list[int]:
    """When each batch can be read that responses first had records of at these times."""
    shown = ShownLogs(
        nodes=new_records(NODE_LOGS, 1, end_fetch=3, answers_at_once=answers_at_once),
        requests=new_records(FETCH_TIMES, 3, sent=SENT, answered=ANSWERED),
        partitions=new_records(WANTED, 1, end_batch=len(LAST), end_bound=3),
        batches=new_records(READABLE_BATCH, len(LAST), last_offset=LAST, appended_before=before),
        bounds=new_records(BOUND, 3, request=SENT, response=ANSWERED, bound=[10, 20, 30]),
        sought=np.zeros(0, np.int64),
    )
    return [int(visible_from(shown, 0, batch)) for batch in range(len(LAST))]


def test_a_bound_is_shown_by_a_fetch_that_was_sent_and_answered() -> None:
    assert when_visible([NEVER] * 4, True) == [ALWAYS, 180, 260, NEVER]


@pytest.mark.parametrize(
    ("before", "visible"),
    [(120, 180), (50, 50), (5, 11)],  # while its fetch was under way; between two; before the fetch that did not get it
)
def test_what_another_got_a_consumer_gets_when_its_own_fetches_can_have_it(before: int, visible: int) -> None:
    """Of a follower, or a fetch that waits for more than a byte, they do not tell."""
    assert when_visible([5, before, 190, 300], True) == [ALWAYS, visible, 190, 300]
    assert when_visible([5, before, 190, 300], False) == [ALWAYS, before, 190, 300]
