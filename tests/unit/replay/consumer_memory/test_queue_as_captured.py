"""A consumer's responses as its fetches show them: who fetched them, how long each took, and what followed it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.replay.consumer_memory.test_fetch_queue import thresholds
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS
from udfs.replay.consumer_memory.events import EXCHANGE
from udfs.replay.consumer_memory.fetch_queue import captured
from udfs.replay.consumer_memory.fetch_queue.captured import (
    AT_ONCE_US,
    captured_pace,
    cut_responses,
    fetchers_of,
    following_responses,
    late_for_full_queue,
    responses_with_records,
    stated_pace,
)
from udfs.replay.consumer_memory.fetch_queue.fetcher import work_end
from udfs.replay.consumer_memory.fetch_queue.levels import LEVEL
from udfs.replay.consumer_memory.fetch_queue.state import RECORDS_RESPONSE, ApplicationPace
from udfs.replay.consumer_memory.fidelity import Levels, levels_without_bound
from udfs.replay.consumer_memory.state import MESSAGE


@given(st.lists(st.integers(0, 3), max_size=12))
def test_the_next_response_is_that_of_the_same_fetcher(fetcher: list[int]) -> None:
    found = following_responses(np.array(fetcher, np.int64)).tolist()
    for place, of in enumerate(fetcher):
        assert found[place] == next((at for at in range(place + 1, len(fetcher)) if fetcher[at] == of), NONE)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=12))
def test_with_few_fetchers_a_connection_gets_the_one_that_was_free_first(spans: list[tuple[int, int]]) -> None:
    begin, end = (np.array([span[0] + span[1] * place for span in spans], np.int64) for place in (0, 1))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(captured, "MOST_FETCHERS", 3)
        found = fetchers_of(begin, end).tolist()
    if len(spans) <= 3:
        assert found == list(range(len(spans)))
        return
    open_until, new = list[tuple[int, int]](), 0
    for place in sorted(range(len(spans)), key=lambda at: (begin[at], end[at])):
        open_until.sort()
        if open_until and open_until[0][0] <= begin[place]:
            _, of = open_until.pop(0)
        else:
            of, new = new % 3, new + 1
        assert found[place] == of
        open_until.append((int(end[place]), of))


def test_a_gap_is_from_the_response_before_on_the_connection_and_a_wait_for_records_is_no_answer_time() -> None:
    """The third fetch of the first connection finds nothing, and the fourth waits 300 ms for records."""
    shown = new_records(
        EXCHANGE, 6, connection=[1, 1, 1, 1, 2, 2], requested_at=[0, 15, 35, 50, 7, 8],
        complete_at=[10, 30, 40, 300_055, 9, 11], size_known_at=[10, 30, 40, 300_050, 9, 11],
        record_bytes=[9, 9, 0, 9, 9, 9],
    )  # fmt: skip
    found = responses_with_records(shown, 20)
    names = ["fetcher", "requested_at", "arrived_at", "answer_us", "ready_at", "gap_us", "is_late", "following"]
    assert found[names].tolist() == [
        (1, 7, 9, 2, ALWAYS, 0, 0, 2),
        (0, 0, 10, 10, ALWAYS, 0, 0, 3),
        (1, 8, 11, 3, ALWAYS, 0, 0, NONE),
        (0, 15, 30, 15, ALWAYS, 5, 0, 4),
        (0, 50, 300_055, 5, 300_055, 0, 1, NONE),
    ]


@pytest.mark.parametrize(("waited_us", "is_wait"), [(AT_ONCE_US, False), (AT_ONCE_US + 1, True)])
def test_a_broker_that_has_records_begins_its_response_within_a_tenth_of_a_second(
    waited_us: int, *, is_wait: bool
) -> None:
    shown = new_records(EXCHANGE, 1, connection=1, complete_at=waited_us + 3, size_known_at=waited_us, record_bytes=9)
    found = responses_with_records(shown, 20)
    expected = (3, waited_us + 3) if is_wait else (waited_us + 3, ALWAYS)
    assert found[["answer_us", "ready_at"]].tolist() == [expected]


@pytest.mark.parametrize(("gap_us", "backoff_us", "is_late"), [(9, 20, 0), (10, 20, 1), (0, 0, 0), (1, 0, 1)])
def test_a_fetch_is_late_from_half_a_backoff_after_the_response_on(gap_us: int, backoff_us: int, is_late: int) -> None:
    shown = new_records(
        EXCHANGE, 2, connection=1, requested_at=[0, 5 + gap_us], complete_at=[5, 8 + gap_us], size_known_at=[5, 8],
        record_bytes=9,
    )  # fmt: skip
    assert responses_with_records(shown, backoff_us)["is_late"].tolist() == [0, is_late]


def test_parts_of_a_response_add_up_and_only_the_first_comes_after_the_gap() -> None:
    whole = new_records(
        RECORDS_RESPONSE, 2, messages=[7, 5], value_bytes=[70, 5], record_bytes=[100, 30], answer_us=[10, 4],
        gap_us=[8, 9], following=[1, NONE],
    )  # fmt: skip
    parts = cut_responses(whole, 40)
    names = ["messages", "value_bytes", "record_bytes", "answer_us", "gap_us", "following"]
    assert parts[names].tolist() == [
        (2, 23, 33, 3, 8, 1), (2, 23, 33, 3, 0, 2), (3, 24, 34, 4, 0, 3), (5, 5, 30, 4, 9, NONE),
    ]  # fmt: skip
    assert cut_responses(whole, 100) is whole
    assert len(cut_responses(whole, 99)) == 3


def test_a_response_was_late_for_a_full_queue_if_the_queue_can_have_been_full() -> None:
    responses, levels = new_records(RECORDS_RESPONSE, 3, is_late=[1, 1, 0]), np.zeros(3, LEVEL)
    levels["is_full_at_most"], levels["may_be_full"] = [1, 0, 1], 1
    assert late_for_full_queue(responses, levels).tolist() == [True, False, False]


def test_the_pace_is_what_was_taken_half_a_backoff_before_each_late_fetch() -> None:
    """Three responses of ten messages and 1,000 bytes. A full queue has 1,500 bytes, or 12 messages."""
    responses = new_records(
        RECORDS_RESPONSE, 4, requested_at=[0, 20, 5000, 9000], arrived_at=[10, 30, 5010, 9010], messages=10,
        value_bytes=1000,
    )  # fmt: skip
    is_full = np.array([False, False, True, True])
    by_bytes, by_messages = (
        captured_pace(responses, is_full, limits)
        for limits in (thresholds(max_bytes=1500, backoff_ms=1), thresholds(min_messages=12, backoff_ms=1))
    )
    assert by_bytes is not None
    assert by_messages is not None
    assert [of.tolist() for of in by_bytes] == [[0, 5, 15], [0, 5000 - 500 - 10, 9000 - 500 - 10]]
    assert by_messages.messages.tolist() == [0, 8, 18]
    assert captured_pace(responses, is_full & False, thresholds()) is None


def test_work_goes_on_at_the_captured_pace_and_beyond_that_at_the_average() -> None:
    pace = ApplicationPace(np.array([0, 10, 30]), np.array([0, 100, 200]))
    assert [work_end(pace, messages) for messages in (0, 5, 10, 20, 30, 60)] == [0, 50, 100, 150, 200, 400]
    assert [work_end(stated_pace(7), messages) for messages in (0, 1, 4)] == [0, 7, 28]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), max_size=8))
def test_the_most_bytes_of_a_span_are_those_at_any_time_of_it(messages: list[tuple[int, int, int, int]]) -> None:
    """(when its size is known, how long until it is complete, for how long it is then held, its bytes)."""
    known, complete, held, size = (np.array([message[at] for message in messages], np.int64) for at in range(4))
    levels = levels_without_bound(
        new_records(MESSAGE, len(messages), size_known_at=known, complete_at=known + complete, held_us=held, size=size)
    )
    times = np.arange(-1, 30)
    spans = [(int(begin), int(end)) for begin in times[::4] for end in times[::5] if begin <= end]
    most = levels.most(np.array([begin for begin, _ in spans]), np.array([end for _, end in spans]))
    for (begin, end), found in zip(spans, most.tolist(), strict=True):
        before, with_last = (
            max(sum(s for k, c, h, s in messages if k <= at < k + c + h + until) for at in range(begin, end + 1))
            for until in (0, 1)
        )
        assert before <= found <= with_last, "at the moment at which one goes, another may come"


def test_bytes_in_use_are_stepwise() -> None:
    levels = Levels(np.array([5, 8]), np.array([10, 4]))
    begin, end = np.array([0, 0, 5, 6, 8, 9]), np.array([4, 5, 7, 8, 8, 99])
    assert levels.most(begin, end).tolist() == [0, 10, 10, 10, 4, 4]
