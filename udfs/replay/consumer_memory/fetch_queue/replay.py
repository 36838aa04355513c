"""The replay of librdkafka consumers: what each has in its queue, and how that agrees with the capture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.tables.fidelity_reasons import QUEUE
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.records import records_of
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.consumers import Consumers, chosen
from udfs.replay.consumer_memory.fetch_queue.bounds import Bound, Limits, bound_of
from udfs.replay.consumer_memory.fetch_queue.captured import (
    Levels,
    captured_pace,
    found_full,
    levels_of,
    responses_of,
    stated_pace,
)
from udfs.replay.consumer_memory.fetch_queue.fetcher import replay_queue
from udfs.replay.consumer_memory.fetch_queue.state import THRESHOLDS, Pace, new_sim
from udfs.replay.consumer_memory.settings import MemoryLanes
from udfs.replay.consumer_memory.state import NONE
from udfs.replay.shared.fidelity_rows import NO_REASON, Compared, compared
from udfs.replay.shared.lanes import AS_CAPTURED, CAPTURED
from udfs.replay.shared.window import Window

QUEUE_DECISIONS = "queue_decisions"
BY_CAPTURE, AS_STATED = "capture", "stated"
"""Of LIBRDKAFKA_QUEUE.pace_of."""
SIZES_NOT_MEASURED, NEVER_FULL, OTHER_LIMITS = "sizes_not_measured", "never_full", "other_fetch_limits"
"""Of LIBRDKAFKA_QUEUE.unknown_for."""


class Lane(NamedTuple):
    """What a lane comes to. thresholds: THRESHOLDS[1]. outcome: OUTCOME[1], None where it is not known, and why."""

    thresholds: Records
    bound: Bound | None
    outcome: Records | None
    pace_of: str | None
    unknown_for: str | None


class Replayed(NamedTuple):
    """A librdkafka consumer in every lane.

    release: of librdkafka, 1000 x major + minor; 0 where it is not known. at_most: bytes that its queue can have had as
    captured, None where sizes are not known. unmeasured: batches without a known size.
    """

    unit: int
    release: int
    responses: int
    messages: int
    value_bytes: int
    unmeasured: int
    at_most: int | None
    lanes: list[Lane]
    decisions: Compared


def librdkafka_consumers(consumers: Consumers) -> Ints:
    """The units that are librdkafka's: int64[n]."""
    is_one = np.zeros(consumers.units, np.bool_)
    np.logical_or.at(is_one, consumers.exchanges["unit"], consumers.exchanges["librdkafka"] != NONE)
    numbers: Ints = consumers.numbers[is_one[consumers.numbers]]
    return numbers


def replay_consumer(consumers: Consumers, unit: int, lanes: MemoryLanes) -> Replayed:
    """One consumer in every lane."""
    own = consumers.answered[consumers.answered["unit"] == unit]
    fetches = own[own["asked"] > 0]
    release = int(consumers.exchanges["librdkafka"][consumers.exchanges["unit"] == unit].max())
    counted = fetches[consumers.window.has(fetches["requested_at"])]
    unmeasured = int(fetches["unmeasured"].sum())
    thresholds = [thresholds_of(lanes, lane, release) for lane in range(len(lanes.names))]
    captured = thresholds[CAPTURED]
    responses = responses_of(fetches, int(captured["backoff_us"][0]))
    levels = levels_of(responses, captured)
    is_full = found_full(responses, levels, captured)
    pace = captured_pace(responses, is_full, captured)
    queue = Queue(responses, levels, is_full, None if unmeasured else pace, unmeasured, consumers.window)
    return Replayed(
        unit=unit,
        release=release,
        responses=int(np.count_nonzero(counted["record_bytes"])),
        messages=int(counted["records"].sum()),
        value_bytes=int(counted["value_bytes"].sum()),
        unmeasured=unmeasured,
        at_most=None if unmeasured else most_in(queue),
        lanes=[
            replayed_lane(queue, of, us, bound, lanes.fetch_number[lane] == CAPTURED)
            for lane, (of, us, bound) in enumerate(
                zip(
                    thresholds,
                    lanes.queue["us_per_record"].tolist(),
                    bounds_of(consumers, unit, fetches, lanes, thresholds, unmeasured),
                    strict=True,
                )
            )
        ],
        decisions=compared_decisions(queue, captured),
    )


class Queue(NamedTuple):
    """What the capture shows of a consumer's queue. is_full: bool[responses]. pace: None where it is not known."""

    responses: Records
    levels: Levels
    is_full: Bools
    pace: Pace | None
    unmeasured: int
    window: Window

    @property
    def is_counted(self) -> Bools:
        """The responses that were asked for in the window: bool[responses]."""
        return self.window.has(self.responses["requested_at"])


def thresholds_of(lanes: MemoryLanes, lane: int, release: int) -> Records:
    """THRESHOLDS[1] of a consumer of a release, 0 for one that is not known: that of the newest one."""
    kbytes = int(lanes.queue["max_kbytes"][lane])
    if kbytes == AS_CAPTURED:
        earlier = [of for before, of in lanes.older_kbytes if 0 < release < before]
        kbytes = earlier[0] if earlier else lanes.default_kbytes
    return records_of(
        THRESHOLDS,
        1,
        max_bytes=kbytes * 1000,  # librdkafka's kilobyte
        min_messages=lanes.queue["min_messages"][lane],
        backoff_us=lanes.queue["backoff_us"][lane],
    )


def bounds_of(
    consumers: Consumers, unit: int, fetches: Records, lanes: MemoryLanes, thresholds: list[Records], unmeasured: int
) -> list[Bound | None]:
    """The bound in each lane; None where sizes are not known."""
    if unmeasured:
        return [None] * len(thresholds)
    found, brokers = list[Bound | None](), int(consumers.fetched["brokers"][unit])
    for lane, of in enumerate(thresholds):
        number = int(lanes.fetch_number[lane])
        of_lane, asked = consumers.limits[number], consumers.fetched["partition_max_bytes"][unit : unit + 1]
        limits = Limits(
            int(min(consumers.max_bytes(number)[unit], of_lane["broker_max_bytes"])),
            int(chosen(int(of_lane["partition_max_bytes"]), asked)[0]),
            number == CAPTURED,
        )
        found.append(bound_of(fetches, brokers, limits, int(of["max_bytes"][0]), int(of["min_messages"][0])))
    return found


def replayed_lane(queue: Queue, thresholds: Records, us_per_record: int, bound: Bound | None, is_own: bool) -> Lane:
    """A lane. us_per_record: AS_CAPTURED for the application's captured pace. is_own: its fetch limits are captured."""
    is_stated = us_per_record != AS_CAPTURED
    pace = stated_pace(us_per_record) if is_stated else queue.pace
    unknown_for = SIZES_NOT_MEASURED if queue.unmeasured else OTHER_LIMITS if not is_own else None
    if unknown_for is None and pace is None:
        unknown_for = NEVER_FULL
    if unknown_for is not None or pace is None:
        return Lane(thresholds, bound, None, None, unknown_for)
    sim = new_sim(queue.responses, pace, thresholds, ends_of(queue.window))
    replay_queue(sim)
    return Lane(thresholds, bound, sim.outcome, AS_STATED if is_stated else BY_CAPTURE, None)


def ends_of(window: Window) -> Ints:
    """A window's begin and end (us)."""
    return np.array([window.begin, window.end], np.int64)


def most_in(queue: Queue) -> int:
    """The most bytes that the queue can have had in the window, as captured."""
    return int(queue.levels.bytes_then[queue.is_counted].max(initial=0))


def compared_decisions(queue: Queue, captured: Records) -> Compared:
    """Whether a captured fetch was held back by a full queue where the replay of the captured settings has it so.

    captured: THRESHOLDS[1]. Where the queue cannot have been full the pace is no matter.
    """
    if queue.unmeasured:
        return compared(QUEUE_DECISIONS, {QUEUE.sizes_not_measured: int(queue.is_counted.sum())}, QUEUE)
    responses, levels = queue.responses, queue.levels
    may_be_full = (levels.bytes_before >= captured["max_bytes"][0]) | (
        levels.messages_before >= captured["min_messages"][0]
    )
    is_late = responses["is_late"] == 1
    if queue.pace is None:
        verdicts = np.select(
            [is_late & ~may_be_full, may_be_full], [QUEUE.waited_otherwise, QUEUE.pace_unknown], NO_REASON
        )
    else:
        sim = new_sim(responses, queue.pace, captured, ends_of(queue.window))
        replay_queue(sim)
        was_held_back = sim.was_held_back == 1
        verdicts = np.select(
            [is_late & ~may_be_full, queue.is_full & ~was_held_back, was_held_back & ~queue.is_full],
            [QUEUE.waited_otherwise, QUEUE.asked_sooner, QUEUE.held_back],
            NO_REASON,
        )
    words, counts = np.unique(verdicts[queue.is_counted], return_counts=True)
    return compared(QUEUE_DECISIONS, dict(zip(words.tolist(), counts.tolist(), strict=True)), QUEUE)


def spans_of(outcomes: Records) -> Ints:
    """How long each lane took (us), at least 1: int64[n]. outcomes: OUTCOME[n]."""
    return np.maximum(np.minimum(outcomes["ended_at"], NEVER) - outcomes["began_at"], 1)
