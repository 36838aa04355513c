"""When a batch can be read in the closed loop, as captured responses show."""

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
"""Three fetches. The bound of the first allows one batch, and that of each later fetch one more."""


def when_visible(before: Sequence[int], answers_at_once: bool, is_follower: bool = False) -> list[int]:
    """When each batch can be read. before: when a response first had records of each."""
    shown = ShownLogs(
        nodes=new_records(NODE_LOGS, 1, end_fetch=3, answers_at_once=answers_at_once, is_follower=is_follower),
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
    ("before", "at_once", "waiting"),
    [(120, 180, 120), (50, 50, 50), (5, 11, 11)],  # while its fetch was under way; between two; before one without it
)
def test_a_batch_that_another_reader_got_can_be_read_once_the_consumers_own_fetches_can_have_it(
    before: int, at_once: int, waiting: int
) -> None:
    """A response of the consumer shows its bound, though a fetch that waits for more than a byte may come later. The
    responses to a follower do not: it reads to the log end.
    """
    assert when_visible([5, before, 190, 300], True) == [ALWAYS, at_once, 190, 300]
    assert when_visible([5, before, 190, 300], False) == [ALWAYS, waiting, 190, 300]
    assert when_visible([5, before, 190, 300], False, is_follower=True) == [ALWAYS, before, 190, 300]
