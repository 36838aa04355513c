"""When a batch can be read in the closed loop, as captured responses show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from udfs.columns.arrays import all_read_only, read_only
from udfs.columns.records import new_records
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.closed_loop.events import BOUND
from udfs.replay.fetch_max_bytes.closed_loop.logs import (
    FETCH_TIMES,
    NODE_LOGS,
    REACH,
    WANTED,
    ShownLogs,
    make_rising,
    reach_of_logs,
    visible_from,
)
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


def reached(
    base: Sequence[int] = (0, 10, 20, 30), first_offset: int = 0, first_request: int = 0, horizon: int = 300,
    sought: Sequence[int] = (), appended_after: Sequence[int] = (0, 0, 0, 0),
) -> tuple[dict[str, int], list[int]]:  # fmt: skip
    """(the REACH of a log whose batches can be read from the beginning, from 180 and from 260 on, and not at all; when
    each can be read).
    """
    shown = ShownLogs(
        nodes=new_records(NODE_LOGS, 1, end_fetch=3, answers_at_once=1, horizon=horizon),
        requests=new_records(FETCH_TIMES, 3, sent=SENT, answered=ANSWERED),
        partitions=new_records(
            WANTED, 1, end_batch=len(LAST), end_bound=3, first_offset=first_offset, first_request=first_request,
            end_sought=len(sought),
        ),
        batches=new_records(
            READABLE_BATCH, len(LAST), base_offset=base, last_offset=LAST, appended_before=NEVER,
            appended_after=appended_after,
        ),
        bounds=new_records(BOUND, 3, request=SENT, response=ANSWERED, bound=[10, 20, 30]),
        sought=np.array(sought, np.int64),
    )  # fmt: skip
    visible_at, reach = np.zeros(len(LAST), np.int64), np.zeros(1, REACH)
    reach_of_logs(ShownLogs(*all_read_only(shown)), visible_at, reach)
    return {name: int(reach[name][0]) for name in REACH.names or ()}, visible_at.tolist()


@pytest.mark.parametrize(
    ("given", "reach"),
    [
        ({}, (0, 0, 3, 1, 1)),
        ({"horizon": 260}, (0, 0, 3, 1, 1)),
        ({"horizon": 259}, (0, 0, 2, 1, 1)),
        ({"first_request": 179}, (0, 0, 3, 1, 1)),
        ({"first_request": 180}, (0, 0, 3, 2, 1)),
        ({"base": (0, 10, 21, 30)}, (0, 0, 2, 1, 0)),
        ({"first_offset": 10}, (1, 1, 3, 1, 1)),
        ({"first_offset": 19}, (1, 1, 3, 1, 1)),
        ({"first_offset": 10, "sought": [9]}, (0, 1, 3, 1, 1)),
        ({"first_offset": 20, "sought": [25, 19]}, (1, 2, 3, 1, 1)),
        ({"first_offset": 20, "sought": [5], "base": (0, 11, 20, 30)}, (2, 2, 3, 2, 1)),
        ({"first_offset": 10, "base": (0, 11, 20, 30)}, (1, 1, 1, 1, 0)),
        ({"first_offset": 40}, (4, 4, 4, 4, 1)),
    ],
)
def test_a_log_can_be_read_from_the_lowest_offset_asked_for_to_the_end_of_the_captured_time_or_a_gap(
    given: dict[str, Any], reach: tuple[int, ...]
) -> None:
    """(lowest, start, end, end of the backlog, whether nothing is missing)."""
    assert tuple(reached(**given)[0].values()) == reach


def test_no_batch_can_be_read_before_it_was_appended_or_before_the_one_before_it() -> None:
    assert reached(appended_after=[ALWAYS] * 4)[1] == [ALWAYS, 180, 260, 0]
    assert reached(appended_after=(0, 200, 190, 0))[1] == [0, 200, 260, 0]
    assert reached(appended_after=(270, 200, 190, 0))[1] == [270, 270, 270, 0]


def test_values_are_made_rising_within_each_stretch() -> None:
    values = np.array([3, 1, 5, 2, 1, 2])
    make_rising(values, read_only(np.array([0, 3, 3, 6])))
    assert values.tolist() == [3, 3, 5, 2, 2, 2]
