"""The replay of librdkafka consumers: how much each has in its queue, and how that agrees with the capture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.tables.memory_reasons import QUEUE
from schemas.tables.values import (
    BY_CAPTURE,
    CAPTURE_TOO_SHORT,
    NEVER_FULL,
    OTHER_FETCH_LIMITS,
    SEVERAL_PROCESSES,
    SIZES_NOT_MEASURED,
    STATED,
)
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.consumer_memory.consumers import Consumers, limits_by_unit
from udfs.replay.consumer_memory.fetch_queue.bounds import Bound, FetchBounds, asked_max_bytes, bound_of
from udfs.replay.consumer_memory.fetch_queue.captured import (
    captured_pace,
    cut_responses,
    late_for_full_queue,
    responses_with_records,
    stated_pace,
)
from udfs.replay.consumer_memory.fetch_queue.fetcher import replay_queue
from udfs.replay.consumer_memory.fetch_queue.levels import known_levels
from udfs.replay.consumer_memory.fetch_queue.state import THRESHOLDS, ApplicationPace, new_queue
from udfs.replay.consumer_memory.settings import MemoryLanes
from udfs.replay.shared.captured_pieces import LEAST_TIME_US, SPAN_TOLERANCE
from udfs.replay.shared.fidelity_rows import NO_REASON, FidelityCounts, count_cases
from udfs.replay.shared.lanes import AS_CAPTURED, CAPTURED
from udfs.replay.shared.window import Window

QUEUE_DECISIONS = "queue_decisions"


class QueueLane(NamedTuple):
    """The outcome of a lane. thresholds: THRESHOLDS[1]. bound: None if sizes are not known. outcome: QUEUE_OUTCOME[1],
    None if it is not known; unknown_for says why. pace_of: where the application's pace comes from.
    """

    thresholds: Records
    bound: Bound | None
    outcome: Records | None
    pace_of: str | None
    unknown_for: str | None


class ReplayedQueue(NamedTuple):
    """A librdkafka consumer in every lane.

    release: of librdkafka, 1000 x major + minor; 0 if it is not known. at_most: the most bytes that its queue can have
    had as captured, None if sizes or processes are not known. unmeasured: batches without a known size.
    """

    unit: int
    release: int
    responses: int
    messages: int
    value_bytes: int
    unmeasured: int
    at_most: int | None
    lanes: list[QueueLane]
    decisions: FidelityCounts


def librdkafka_consumers(consumers: Consumers) -> Ints:
    """The units whose client is librdkafka: int64[n]."""
    is_librdkafka = np.zeros(consumers.units, np.bool_)
    np.logical_or.at(is_librdkafka, consumers.exchanges["unit"], consumers.exchanges["librdkafka"] != NONE)
    return consumers.numbers[is_librdkafka[consumers.numbers]]


def replay_consumer_queue(consumers: Consumers, unit: int, lanes: MemoryLanes) -> ReplayedQueue:
    """Replay the queue of one consumer in every lane."""
    exchanges, fetches = exchanges_of_unit(consumers.exchanges, unit), exchanges_of_unit(consumers.answered, unit)
    fetches, release = fetches[fetches["asked"] > 0], int(exchanges["librdkafka"].max())
    counted = fetches[consumers.window.has(fetches["requested_at"])]
    unmeasured = int(fetches["unmeasured"].sum())
    thresholds = [thresholds_of(lanes, lane, release) for lane in range(len(lanes.names))]
    captured = thresholds[CAPTURED]
    responses = responses_with_records(fetches, int(captured["backoff_us"][0]))
    levels = known_levels(responses, captured)
    is_full = late_for_full_queue(responses, levels)
    pace = captured_pace(responses, is_full, captured)
    responses["gap_us"][is_full] = 0  # the replay itself decides how long a full queue holds a fetch back
    is_one, pace = bool(consumers.is_told_apart[unit]), None if unmeasured else pace
    queue = Queue(responses, levels, is_full, pace, unmeasured, is_one, consumers.window)
    return ReplayedQueue(
        unit=unit,
        release=release,
        responses=int(np.count_nonzero(counted["record_bytes"])),
        messages=int(counted["records"].sum()),
        value_bytes=int(counted["value_bytes"].sum()),
        unmeasured=unmeasured,
        at_most=most_held(queue) if is_one and not unmeasured else None,
        lanes=replayed_lanes(queue, consumers, unit, fetches, lanes, thresholds),
        decisions=compared_decisions(queue, captured),
    )


def exchanges_of_unit(exchanges: Records, unit: int) -> Records:
    """The exchanges of a unit, which are next to each other. exchanges: EXCHANGE[n]."""
    first, end = np.searchsorted(exchanges["unit"], [unit, unit + 1]).tolist()
    return exchanges[first:end]


class Queue(NamedTuple):
    """What the capture shows of a consumer's queue.

    responses: RECORDS_RESPONSE[responses]. levels: LEVEL[responses]. is_full: bool[responses], the response was asked
    for late because the queue was full. pace: None if it is not known. unmeasured: batches without a known size.
    is_told_apart: it is known that the queue is that of one process.
    """

    responses: Records
    levels: Records
    is_full: Bools
    pace: ApplicationPace | None
    unmeasured: int
    is_told_apart: bool
    window: Window

    @property
    def is_counted(self) -> Bools:
        """The responses that were asked for in the window: bool[responses]."""
        return self.window.has(self.responses["requested_at"])


def thresholds_of(lanes: MemoryLanes, lane: int, release: int) -> Records:
    """A consumer's THRESHOLDS[1] in a lane. release: of librdkafka; an unknown release, 0, counts as the newest."""
    kbytes = int(lanes.queue["max_kbytes"][lane])
    if kbytes == AS_CAPTURED:
        earlier = [default for before, default in lanes.older_kbytes if 0 < release < before]
        kbytes = earlier[0] if earlier else lanes.default_kbytes
    return new_records(
        THRESHOLDS,
        1,
        max_bytes=kbytes * 1000,  # librdkafka's kilobyte
        min_messages=lanes.queue["min_messages"][lane],
        backoff_us=lanes.queue["backoff_us"][lane],
    )


def replayed_lanes(
    queue: Queue, consumers: Consumers, unit: int, fetches: Records, lanes: MemoryLanes, thresholds: list[Records]
) -> list[QueueLane]:
    """The outcome of every lane.

    fetches: EXCHANGE[n], the consumer's answered fetches. thresholds: THRESHOLDS[1] of each lane.
    """
    queue_lanes, brokers = list[QueueLane](), int(consumers.fetched["brokers"][unit])
    for lane, lane_thresholds in enumerate(thresholds):
        limits = fetch_limits_in(consumers, unit, int(lanes.fetch_number[lane]), thresholds[CAPTURED], lane_thresholds)
        max_bytes, min_messages = int(lane_thresholds["max_bytes"][0]), int(lane_thresholds["min_messages"][0])
        bound = None if queue.unmeasured else bound_of(fetches, brokers, limits, max_bytes, min_messages)
        us_per_record = int(lanes.queue["us_per_record"][lane])
        queue_lanes.append(replayed_lane(queue, thresholds[CAPTURED], lane_thresholds, us_per_record, bound, limits))
    return queue_lanes


def fetch_limits_in(
    consumers: Consumers, unit: int, number: int, captured: Records, thresholds: Records
) -> FetchBounds:
    """The limits of a consumer's fetches in a lane with the fetch limits of this number. captured, thresholds:
    THRESHOLDS[1], the captured ones and the lane's.
    """
    of_lane, partition_max_bytes = consumers.limits[number], consumers.fetched["partition_max_bytes"][unit : unit + 1]
    before = max_bytes = int(consumers.max_bytes(number)[unit])
    if int(of_lane["max_bytes"]) == AS_CAPTURED:
        max_bytes = asked_max_bytes(before, int(captured["max_bytes"][0]), int(thresholds["max_bytes"][0]))
    return FetchBounds(
        max_bytes=min(max_bytes, int(of_lane["broker_max_bytes"])),
        partition_max_bytes=int(limits_by_unit(int(of_lane["partition_max_bytes"]), partition_max_bytes)[0]),
        is_captured=number == CAPTURED,
        asks_less=max_bytes < before,
    )


def replayed_lane(
    queue: Queue, captured: Records, thresholds: Records, us_per_record: int, bound: Bound | None, limits: FetchBounds
) -> QueueLane:
    """The outcome of one lane.

    captured, thresholds: THRESHOLDS[1], those in force and those of the lane. us_per_record: how long the application
    works on each record, or AS_CAPTURED.
    """
    if not queue.is_told_apart:
        return QueueLane(thresholds, bound, None, None, SEVERAL_PROCESSES)
    is_stated = us_per_record != AS_CAPTURED
    pace = stated_pace(us_per_record) if is_stated else queue.pace
    if queue.unmeasured or not limits.is_captured or pace is None:
        why = SIZES_NOT_MEASURED if queue.unmeasured else OTHER_FETCH_LIMITS if not limits.is_captured else NEVER_FULL
        return QueueLane(thresholds, bound, None, None, why)
    responses = cut_responses(queue.responses, limits.max_bytes) if limits.asks_less else queue.responses
    sim = new_queue(responses, pace, thresholds, ends_of_window(queue.window))
    replay_queue(sim)
    outcome = sim.outcome
    if not outcome["full_us"][0] and may_hold_more(thresholds, captured):
        return QueueLane(thresholds, bound, None, None, CAPTURE_TOO_SHORT)
    return QueueLane(thresholds, bound, outcome, STATED if is_stated else BY_CAPTURE, None)


def may_hold_more(thresholds: Records, captured: Records) -> bool:
    """Whether a queue may hold more than the captured one. thresholds, captured: THRESHOLDS[1]."""
    return any(bool(thresholds[name][0] > captured[name][0]) for name in ("max_bytes", "min_messages"))


def ends_of_window(window: Window) -> Ints:
    """A window's begin and end (us): int64[2]."""
    return np.array([window.begin, window.end], np.int64)


def most_held(queue: Queue) -> int:
    """The most bytes that the queue can have had in the window, as captured."""
    return int(queue.levels["most_bytes"][queue.is_counted].max(initial=0))


def compared_decisions(queue: Queue, captured: Records) -> FidelityCounts:
    """Whether a full queue held back the same fetches in the capture and in the replay of the captured settings.

    captured: THRESHOLDS[1]. Where the queue cannot have been full, the pace does not matter.
    """
    if not queue.is_told_apart:
        return count_cases(QUEUE_DECISIONS, {QUEUE.several_processes: int(queue.is_counted.sum())}, QUEUE)
    if queue.unmeasured:
        return count_cases(QUEUE_DECISIONS, {QUEUE.sizes_not_measured: int(queue.is_counted.sum())}, QUEUE)
    responses, may_be_full = queue.responses, queue.levels["may_be_full"] == 1
    is_late = responses["is_late"] == 1
    if queue.pace is None:
        verdicts = np.select(
            [is_late & ~may_be_full, may_be_full], [QUEUE.waited_otherwise, QUEUE.pace_unknown], NO_REASON
        )
    else:
        sim = new_queue(responses, queue.pace, captured, ends_of_window(queue.window))
        replay_queue(sim)
        in_capture = np.where(queue.is_full, responses["requested_at"], NONE)
        by_replay, within_us = sim.held_back_until, tolerance_of(responses, captured)
        verdicts = np.select(
            [
                is_late & ~may_be_full,
                queue.is_full & ~are_near(in_capture, by_replay, within_us),
                (by_replay != NONE) & ~are_near(by_replay, in_capture, within_us),
            ],
            [QUEUE.waited_otherwise, QUEUE.asked_sooner, QUEUE.held_back],
            NO_REASON,
        )
    words, counts = np.unique(verdicts[queue.is_counted], return_counts=True)
    return count_cases(QUEUE_DECISIONS, dict(zip(words.tolist(), counts.tolist(), strict=True)), QUEUE)


def tolerance_of(responses: Records, captured: Records) -> int:
    """How far apart two waits may end and still count as the same wait (us).

    responses: RECORDS_RESPONSE[n]. captured: THRESHOLDS[1] in force.
    """
    span_us = int(responses["arrived_at"].max(initial=ALWAYS) - responses["requested_at"].min(initial=NEVER))
    return max(int(captured["backoff_us"][0]), LEAST_TIME_US, round(SPAN_TOLERANCE * max(span_us, 0)))


def are_near(times: Ints, others: Ints, within_us: int) -> Bools:
    """Which of the times have one of the others within `within_us`: bool[n]. times, others: int64[n], NONE for no time.

    When a consumer's queue is no longer full, a few milliseconds decide which of its fetchers asks first.
    """
    known = np.sort(others[others != NONE])
    if not len(known):
        return np.zeros(len(times), np.bool_)
    after = np.searchsorted(known, times)
    before, behind = known[np.maximum(after - 1, 0)], known[np.minimum(after, len(known) - 1)]
    return (times != NONE) & (np.minimum(abs(times - before), abs(behind - times)) <= within_us)


def spans_of(outcomes: Records) -> Ints:
    """How long each lane took (us), at least 1: int64[n]. outcomes: QUEUE_OUTCOME[n]."""
    return np.maximum(np.minimum(outcomes["ended_at"], NEVER) - outcomes["began_at"], 1)
