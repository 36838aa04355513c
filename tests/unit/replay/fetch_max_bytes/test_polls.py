"""How long an application works from one poll() to the next, which is known if it is always at work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from udfs.columns.time_units import US_PER_MS as MS
from udfs.replay.fetch_max_bytes.closed_loop.pace import PacedFetches, observed_pace, pace_of
from udfs.replay.fetch_max_bytes.closed_loop.pace_fits import time_until
from udfs.replay.fetch_max_bytes.closed_loop.polls import NO_WAIT_US, WorkBetweenPolls, work_between_polls
from udfs.replay.fetch_max_bytes.closed_loop.polls import TakenResponses as Taken

RECORDS = (10, 40, 20, 70, 30) * 6
"""What each poll() returns."""


@dataclass
class Application:
    """An application that works for record_us on each record and for poll_us in each poll(). Its responses come
    response_us after their fetches; every third one comes after quickest_us.
    """

    record_us: int = 400
    poll_us: int = 2 * MS
    response_us: int = 3 * MS
    quickest_us: int = 3 * MS

    def taken(self) -> Taken:
        """Fetches of one broker, one a poll()."""
        at, came, fetched = 0, [], []
        for number, before in enumerate((0, *RECORDS[:-1])):
            came.append(at + (self.response_us if number % 3 else self.quickest_us))
            at = max(came[-1] + 100, at + (self.poll_us + self.record_us * before if before else 0))
            fetched.append(at)
        none = np.zeros(len(RECORDS), np.int64)
        return Taken(none, np.array(came), np.array(fetched), np.array(RECORDS), none.astype(bool))


def line(work: WorkBetweenPolls | None) -> tuple[float, float]:
    assert work is not None
    slope, base = np.polyfit(work.records, work.time, 1)
    return float(base), float(slope)


def test_the_work_of_an_application_that_is_always_at_work_is_the_time_between_its_polls() -> None:
    assert line(work_between_polls(Application().taken())) == pytest.approx((2 * MS, 400))


def test_responses_that_are_on_their_way_while_the_application_works_do_not_count_as_slow() -> None:
    """A Java consumer reads its sockets in poll() alone."""
    slow = line(work_between_polls(Application(response_us=5 * MS, quickest_us=1 * MS).taken()))
    assert slow == pytest.approx((2 * MS, 400))


def test_an_application_that_responses_wake_up_is_not_always_at_work_however_slowly_it_wakes() -> None:
    """Its polls are 80 ms apart. Responses wait for 4 ms, except for one that waits for 100 us."""
    fetched = np.arange(1, 31) * 80 * MS
    came = fetched - np.where(np.arange(30) == 7, 100, 4 * MS)
    none = np.zeros(30, np.int64)
    assert work_between_polls(Taken(none, came, fetched, np.array(RECORDS), none.astype(bool))) is None


def test_polls_of_an_application_that_waits_for_its_brokers_do_not_show_its_work() -> None:
    assert work_between_polls(Application(response_us=40 * MS, quickest_us=40 * MS).taken()) is None


def test_fetches_that_one_poll_sends_to_several_brokers_count_as_one() -> None:
    one, again = Application().taken(), np.repeat(np.arange(len(RECORDS)), 2)
    both = Taken._make(column[again] for column in one)
    both.fetched[1::2] += 50
    both.node[1::2] = 1
    work = work_between_polls(both)
    assert work is not None
    assert set(work.records.tolist()) == {2 * records for records in RECORDS}
    assert line(work) == pytest.approx((2 * MS, 200))


def test_the_time_in_which_a_reader_stood_still_is_no_work() -> None:
    stopped = Application().taken()
    stopped.fetched[15:] += 60_000 * MS
    stopped.came[16:] += 60_000 * MS
    stopped.is_stopped[15] = True
    assert line(work_between_polls(stopped)) == pytest.approx((2 * MS, 400))


def test_a_few_polls_show_no_pace() -> None:
    assert work_between_polls(Taken._make(column[:8] for column in Application().taken())) is None


def test_the_time_before_the_first_poll_is_no_work() -> None:
    """A consumer that starts looks up offsets at other brokers while its first response waits."""
    late = Application().taken()
    late.fetched[:] += 40 * MS
    late.came[1:] += 40 * MS
    work, at_once = work_between_polls(late), work_between_polls(Application().taken())
    assert work is not None
    assert at_once is not None
    assert work.first_wait_us == at_once.first_wait_us + 40 * MS
    assert work.first_nodes.tolist() == [0]


def test_the_pace_of_an_application_at_work_is_its_polls_and_its_records() -> None:
    """The client's own time is the shortest wait of a response: longer ones are waits for the application. The quickest
    responses show how long brokers and the network take, because the client reads nothing while it works.
    """
    taken = Application(response_us=5 * MS, quickest_us=1 * MS).taken()
    request, none = np.append(0, taken.fetched), np.zeros(len(RECORDS) + 1, np.int64)
    fetches = PacedFetches(
        node=none,
        request=request,
        response=np.append(taken.came, request[-1] + 3 * MS),
        records=np.append(taken.records, 10),
        size=none + 1000,
        ready_at=none,
        is_stopped=none.astype(bool),
        max_wait_us=none + 500 * MS,
    )
    pace = pace_of(observed_pace(fetches, 1, is_one_process=True, polls=True))
    assert pace.poll_us.tolist() == pytest.approx([2 * MS])
    assert time_until(pace.taking.points, 100) == pytest.approx(100 * 400)
    assert pace.gap_us[0] <= NO_WAIT_US
    assert pace.start_us.tolist() == [0]
    assert pace.answer_us.tolist() == [1 * MS]
