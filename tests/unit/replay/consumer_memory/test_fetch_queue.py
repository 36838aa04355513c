"""A librdkafka consumer fetches ahead until its queue is full, and then waits for the application."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schemas.tables.memory_reasons import QUEUE
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.consumer_memory.events import EXCHANGE
from udfs.replay.consumer_memory.fetch_queue import captured
from udfs.replay.consumer_memory.fetch_queue.bounds import DEFAULT_MAX_BYTES, FetchBounds, asked_max_bytes, bound_of
from udfs.replay.consumer_memory.fetch_queue.captured import (
    captured_pace,
    cut_responses,
    late_for_full_queue,
    responses_with_records,
    stated_pace,
)
from udfs.replay.consumer_memory.fetch_queue.fetcher import replay_queue
from udfs.replay.consumer_memory.fetch_queue.levels import known_levels
from udfs.replay.consumer_memory.fetch_queue.replay import Queue, compared_decisions
from udfs.replay.consumer_memory.fetch_queue.state import THRESHOLDS, ApplicationPace, QueueSim, new_queue
from udfs.replay.shared.window import WHOLE

MS, SECOND = 1000, 1_000_000
MESSAGES, SIZE = 10, 100
"""Messages of a response, and bytes of each."""
PATIENT = 1 << 40
"""A threshold that is never reached."""


def thresholds(max_bytes: int = PATIENT, min_messages: int = PATIENT, backoff_ms: int = 1000) -> Records:
    return new_records(THRESHOLDS, 1, max_bytes=max_bytes, min_messages=min_messages, backoff_us=backoff_ms * MS)


def fetches(*times: tuple[int, int, int], **columns: Any) -> Records:
    """Answered fetches of a partition: (connection, requested at, answered at), each with MESSAGES messages."""
    connection, requested_at, complete_at = np.array(times, np.int64).reshape(-1, 3).T
    shown = {"records": MESSAGES, "value_bytes": MESSAGES * SIZE, "record_bytes": MESSAGES * SIZE, "asked": 1} | columns
    times_of = {"requested_at": requested_at, "complete_at": complete_at, "size_known_at": complete_at}
    return new_records(EXCHANGE, len(times), connection=connection, **times_of, **shown)


def backlog(responses: int, brokers: int = 1) -> Records:
    """A backlog as a consumer that never waits reads it. Brokers answer in 1 ms."""
    times = [(broker, at * MS, at * MS + MS) for at in range(responses) for broker in range(brokers)]
    return responses_with_records(fetches(*times), SECOND)


def replayed(responses: Records, pace: ApplicationPace, limits: Records) -> QueueSim:
    sim = new_queue(responses, pace, limits, np.array([ALWAYS, NEVER]))
    replay_queue(sim)
    return sim


def outcome(responses: Records, pace: ApplicationPace, limits: Records) -> dict[str, int]:
    found = replayed(responses, pace, limits).outcome
    return {name: int(found[name][0]) for name in found.dtype.names or ()}


SLOW = stated_pace(10 * MS)
"""10 ms a message: 100 ms a response."""


def test_a_consumer_asks_until_its_queue_is_full_and_one_response_comes_on_top() -> None:
    """Two responses are below 2,500 bytes, so a third is asked for. The fourth is asked for after a backoff."""
    found = outcome(backlog(20), SLOW, thresholds(max_bytes=2500))
    assert 2900 < found["most_bytes"] <= 3000
    assert 29 <= found["most_messages"] <= 30
    assert found["ended_at"] == pytest.approx(MS + 20 * 100 * MS + found["idle_us"], rel=0.01)


def test_each_broker_s_thread_may_overshoot_by_a_response_of_its_own() -> None:
    found = outcome(backlog(10, brokers=3), SLOW, thresholds(max_bytes=2500))
    assert found["most_bytes"] == pytest.approx(2000 + 3 * 1000, abs=50)


def test_the_number_of_messages_is_a_threshold_as_well() -> None:
    found = outcome(backlog(20), SLOW, thresholds(min_messages=25))
    assert 29 <= found["most_messages"] <= 30


def test_a_consumer_without_thresholds_holds_all_that_its_application_has_not_taken() -> None:
    found = outcome(backlog(20), SLOW, thresholds())
    assert (found["held_back"], found["full_us"], found["idle_us"]) == (0, 0, 0)
    assert found["most_bytes"] == pytest.approx(20 * 1000, abs=300)


def test_a_queue_that_a_backoff_empties_leaves_the_application_idle() -> None:
    """The queue holds 200 ms of work, and is looked at once a second."""
    slow, often = (outcome(backlog(10), SLOW, thresholds(1500, backoff_ms=backoff)) for backoff in (1000, 10))
    assert slow["idle_us"] > 3 * SECOND
    assert often["idle_us"] < 200 * MS
    assert slow["ended_at"] - often["ended_at"] == pytest.approx(slow["idle_us"] - often["idle_us"], abs=100 * MS)


def test_no_response_comes_before_its_records_are_there() -> None:
    """The second fetch waits 300 ms for records."""
    responses = responses_with_records(fetches((0, 0, MS), (0, 2 * MS, 302 * MS)), SECOND)
    assert responses["ready_at"].tolist() == [ALWAYS, 302 * MS]
    assert outcome(responses, stated_pace(0), thresholds())["ended_at"] == 302 * MS


def as_captured(limits: Records, pace: ApplicationPace, responses: int = 200) -> Records:
    """The fetches of a consumer of one broker under these limits, each answered in 1 ms."""
    times, queue, now = list[tuple[int, int, int]](), list[int](), 0
    work_ends = 0
    for _ in range(responses):
        while sum(end > now for end in queue) * 1000 >= limits["max_bytes"][0]:
            now += int(limits["backoff_us"][0])
        times.append((0, now, now + MS))
        now += MS
        work_ends = max(work_ends, now) + int(pace.time[1]) * MESSAGES
        queue.append(work_ends)
    return fetches(*times)


def test_the_pace_is_known_when_a_consumer_with_a_full_queue_fetches_again() -> None:
    limits = thresholds(max_bytes=20_000)
    responses = responses_with_records(as_captured(limits, SLOW), SECOND)
    pace = captured_pace(responses, late_for_full_queue(responses, known_levels(responses, limits)), limits)
    assert pace is not None
    assert pace.time[-1] / pace.messages[-1] == pytest.approx(10 * MS, rel=0.05)


def test_while_the_queue_is_never_full_the_pace_is_not_known() -> None:
    limits = thresholds(max_bytes=1 << 30)
    responses = responses_with_records(as_captured(limits, SLOW), SECOND)
    assert captured_pace(responses, late_for_full_queue(responses, known_levels(responses, limits)), limits) is None


def test_a_request_shows_that_the_queue_is_below_its_thresholds() -> None:
    """When the third response is asked for, at most 1,500 bytes of the first two are left, however little was taken."""
    responses = responses_with_records(fetches((0, 0, 1), (0, 2, 3), (0, 4, 5), (0, 6, 7)), SECOND)
    levels = known_levels(responses, thresholds(max_bytes=1501))
    assert levels["most_bytes"].tolist() == [1000, 2000, 2500, 2500]


def test_a_limit_on_messages_also_limits_the_bytes_in_the_queue() -> None:
    """At most nine messages of 100 bytes are left whenever the next response is asked for."""
    responses = responses_with_records(fetches((0, 0, 1), (0, 2, 3), (0, 4, 5)), SECOND)
    assert known_levels(responses, thresholds(min_messages=10))["most_bytes"].tolist() == [1000, 1900, 1900]


def test_a_response_that_another_thread_has_just_received_may_not_be_in_the_queue_yet() -> None:
    """The second thread asks while the first may still decompress, so both responses may still be there in full."""
    times = (0, 0, 1), (1, 0, 1), (1, 2, 3), (0, 4, 5)
    levels = known_levels(responses_with_records(fetches(*times), SECOND), thresholds(max_bytes=1500))
    assert levels["most_bytes"].tolist() == [1000, 2000, 3000, 3499]
    assert levels["may_be_full"].tolist()[2:] == [1, 1]
    assert levels["is_full_at_most"].tolist()[2:] == [0, 1]


def decisions(limits: Records, in_force: Records) -> dict[str, int]:
    """The verdicts on a consumer under the limits in_force that is replayed under other limits."""
    responses = responses_with_records(as_captured(in_force, SLOW), int(limits["backoff_us"][0]))
    levels = known_levels(responses, limits)
    is_full = late_for_full_queue(responses, levels)
    pace = captured_pace(responses, is_full, limits)
    responses["gap_us"][is_full] = 0
    found = compared_decisions(Queue(responses, levels, is_full, pace, 0, True, WHOLE), limits)
    return {"agreed": found.agreed, "unknown": found.unknown, **found.reasons}


def test_under_the_limits_in_force_the_replay_waits_when_the_capture_does() -> None:
    """The times may differ by up to a backoff."""
    found = decisions(thresholds(max_bytes=20_000), thresholds(max_bytes=20_000))
    assert found["agreed"] >= 198
    assert found["unknown"] == 0


def test_a_consumer_that_waits_although_its_queue_cannot_be_full_has_other_limits() -> None:
    assert decisions(thresholds(max_bytes=1 << 30), thresholds(max_bytes=20_000))[QUEUE.waited_otherwise] >= 1


def test_a_consumer_that_may_have_waited_and_did_not_has_an_unknown_pace() -> None:
    assert decisions(thresholds(max_bytes=5000), thresholds(max_bytes=1 << 30))[QUEUE.pace_unknown] >= 190


def test_the_bound_is_the_threshold_and_a_response_of_each_broker() -> None:
    """One broker is asked for three partitions, the other for one. Values take twice the captured record bytes."""
    own = fetches((1, 0, 1), (2, 0, 1), asked=[3, 1], record_bytes=MESSAGES * SIZE // 2)
    bound = bound_of(own, 2, FetchBounds(1 << 30, 100_000, False), 1_000_000, PATIENT)
    assert bound is not None
    assert (bound.threshold, bound.overshoot) == (1_000_000, 2 * (300_000 + 100_000))
    assert bound.messages == 10_000 + 8000


def test_a_queue_is_bounded_by_bytes_or_by_messages_whichever_is_less() -> None:
    own = fetches((1, 0, 1))
    limits = FetchBounds(0, 0, False)
    by_bytes, by_messages = (bound_of(own, 1, limits, 1_000_000, messages) for messages in (100_000, 500))
    assert by_bytes is not None
    assert by_messages is not None
    assert (by_bytes.threshold, by_messages.threshold) == (1_000_000, 500 * SIZE)


def test_a_consumer_that_sets_no_fetch_max_bytes_asks_for_no_more_than_its_queue_may_have() -> None:
    """It asks for message.max.bytes at least."""
    large, small, least = 65_536_000, 4_096_000, 1000
    assert asked_max_bytes(DEFAULT_MAX_BYTES, large, small) == 4096 * 1024
    assert asked_max_bytes(4096 * 1024, small, large) == DEFAULT_MAX_BYTES
    assert asked_max_bytes(DEFAULT_MAX_BYTES, large, least) == 1_000_000
    assert asked_max_bytes(DEFAULT_MAX_BYTES - 1, large, small) == DEFAULT_MAX_BYTES - 1


def test_a_response_larger_than_a_lane_asks_for_comes_in_parts_one_after_the_other() -> None:
    parts = cut_responses(backlog(2), 400)
    assert parts["record_bytes"].tolist() == [333, 333, 334] * 2
    assert parts["messages"].tolist() == [3, 3, 4] * 2
    assert parts["following"].tolist() == [1, 2, 3, 4, 5, NONE]
    whole, cut = (outcome(of, SLOW, thresholds(1500)) for of in (backlog(10), cut_responses(backlog(10), 400)))
    assert cut["most_bytes"] < 1500 + 400 < whole["most_bytes"]


def test_a_captured_response_larger_than_its_limits_may_come_again_unless_the_client_asks_for_less() -> None:
    """The first batch of a response comes whole, however large it is."""
    own = fetches((1, 0, 1))
    as_before, less = (
        bound_of(own, 1, FetchBounds(400, 400, True, asks_less), 1 << 20, PATIENT) for asks_less in (False, True)
    )
    assert as_before is not None
    assert less is not None
    assert (as_before.overshoot, less.overshoot) == (MESSAGES * SIZE, 400)


def test_a_consumer_without_messages_has_no_known_bound() -> None:
    assert bound_of(fetches((1, 0, 1), records=0), 1, FetchBounds(1, 1, True), 1, 1) is None


def test_with_too_many_connections_a_later_one_counts_for_a_thread_that_has_none_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first two connections are open at the same time. The third is opened a second later."""
    monkeypatch.setattr(captured, "MOST_FETCHERS", 2)
    responses = responses_with_records(fetches((1, 0, MS), (2, 0, 2 * MS), (3, SECOND, SECOND + MS)), 1)
    assert responses["fetcher"].tolist() == [0, 1, 0]
    assert (responses["gap_us"].tolist(), responses["is_late"].tolist()) == ([0, 0, SECOND - MS], [0, 0, 0])
