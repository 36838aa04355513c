"""Batches that an idempotent producer keeps back while the parts of a split batch are sent one after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.replay.batch_split.producers import (
    Produced,
    Producer,
    as_produced,
    captured,
    even_sizes,
    replayed,
    settings_of,
)
from udfs.columns.sentinels import NONE
from udfs.replay.batch_split.accumulator import seal_batch
from udfs.replay.batch_split.partition_queue import (
    IN_FLIGHT,
    NO_PART,
    TO_SEND,
    close_in_turn,
    comes_after_sent,
    enqueue_batch,
    leave_queue,
    must_wait_in_queue,
)
from udfs.replay.batch_split.sender_events import CLOSED, KIND, KIND_BITS, LINGERED
from udfs.replay.batch_split.state import ProducerSim, new_sim, no_outcomes
from udfs.replay.shared.event_heap import INDEX, pop

SETTINGS = Producer(1024, 2048, linger=5)
TOO_LARGE = 75
"""How many records of 100 bytes the first batch has at an estimate of 0.1. It is refused and split into ten."""
LATER = range(60, 460, 20)
"""The ms at which single records follow while the parts are sent, the first at 55 ms and the last at 505 ms."""


def followed_by_singles(has_sequence: bool) -> Produced:
    """Records for a batch that is too large, then single ones. Each of them has lingered before the next one comes."""
    ms, values = [0] * TOO_LARGE + list(LATER), [100] * TOO_LARGE + [5] * len(LATER)
    return Produced(ms, values, initial=[0.1], has_sequence=has_sequence, round_trip=50)


@pytest.mark.parametrize(("has_sequence", "batches"), [(True, 1 + 1), (False, 1 + len(LATER))])
def test_a_batch_that_waits_for_the_parts_of_a_split_one_is_filled_further_though_it_has_lingered(
    has_sequence: bool, batches: int
) -> None:
    records = followed_by_singles(has_sequence)
    found = replayed(SETTINGS, records, even_sizes(records, [1.0] * len(records.ms)))
    assert (found.of("splits"), found.of("split_batches"), found.of("batches")) == (1, 10, batches)
    assert found.of("records") == len(records.ms)


@pytest.mark.parametrize(("has_sequence", "recovery"), [(True, 6 * 50_000), (False, 0)])
def test_each_part_is_closed_when_the_one_before_is_answered_so_the_estimate_falls_step_by_step(
    has_sequence: bool, recovery: int
) -> None:
    """From 1.0 to the ratio of 0.97 it takes six steps of 0.005."""
    records = replace(followed_by_singles(has_sequence), ms=[0] * TOO_LARGE, values=[100] * TOO_LARGE)
    found = replayed(SETTINGS, records, even_sizes(records, [0.972 * 109 / 100] * TOO_LARGE))
    assert (found.of("recoveries"), found.of("recovery_longest")) == (1, recovery)


def test_full_batches_wait_until_the_last_part_is_sent_and_then_leave_together() -> None:
    """All of them are created before any of them is closed, so with the same estimate."""
    ms = [0] * TOO_LARGE + [60] * 30
    records = Produced(ms, [100] * len(ms), initial=[0.1], has_sequence=True, round_trip=50)
    found = replayed(SETTINGS, records, even_sizes(records, [1.0] * len(ms)))
    assert (found.of("batches"), found.of("split_batches")) == (1 + 4, 10)
    assert found.of("bytes_sent") == 2 * TOO_LARGE * 100 + 30 * 100 + (1 + 4 + 10) * 61


def test_the_parts_of_a_refused_part_go_before_the_parts_after_it() -> None:
    """Every part is sent in the end, each once, whichever are refused again."""
    records = Produced([0] * TOO_LARGE, [100] * TOO_LARGE, initial=[0.1], has_sequence=True, round_trip=50)
    found = replayed(Producer(1024, 700, linger=5), records, even_sizes(records, [1.0] * TOO_LARGE))
    assert (found.of("failed"), found.of("splits")) == (0, 1 + 9), "nine of ten parts have 861 bytes"
    assert found.of("split_batches") == 10 + 9 * 3


NOW = 1_000


def partition(part: int = NO_PART, **batch: int) -> ProducerSim:
    """A partition with an empty queue. part: the state of the part that left last. batch: fields of the only captured
    batch, which has 64 records.
    """
    produced, rules = Produced([0] * 64, [10] * 64), as_produced(2048)
    capture = captured(produced, even_sizes(produced, [1.0] * 64))
    for name, value in batch.items():
        capture.batches[name] = value
    sim = new_sim(capture, settings_of(SETTINGS), rules, np.ones((1, 1, 5), np.float32), no_outcomes(1, 1))
    sim.filling[0]["queued"], sim.filling[0]["left"], sim.filling[0]["part"] = NONE, NONE, part
    return sim


def hold(sim: ProducerSim, first: int, *, made_by_split: bool = False, may_leave: int = 0) -> None:
    """Let a batch of ten records wait in the queue."""
    ready = sim.ready[first]
    ready["end"], ready["uncompressed"], ready["made_by_split"] = first + 10, 1_000, made_by_split
    enqueue_batch(sim, first, may_leave)


def left(sim: ProducerSim) -> list[tuple[int, int, int]]:
    """(kind, first record, us) of the events of all that leaves the queue, in the order of time."""
    leave_queue(sim, 0, NOW)
    events = [pop(sim.heap) for _ in range(int(sim.heap.events[0]))]
    return [(code & KIND, (code & INDEX) >> KIND_BITS, time) for time, code in events]


def test_a_part_that_is_put_back_goes_before_waiting_batches_with_later_records() -> None:
    sim = partition()
    for first in (20, 0, 10):
        hold(sim, first, made_by_split=True)
    assert left(sim) == [(CLOSED, 0, NOW)]


@pytest.mark.parametrize(("part", "is_kept"), [(NO_PART, False), (TO_SEND, True), (IN_FLIGHT, False)])
def test_an_empty_queue_keeps_a_batch_only_until_the_last_part_is_sent(part: int, is_kept: bool) -> None:
    assert must_wait_in_queue(partition(part), 0) == is_kept


@pytest.mark.parametrize(("may_leave", "time"), [(NOW - 400, NOW), (NOW + 400, NOW + 400)])
def test_a_batch_leaves_no_sooner_than_it_may(may_leave: int, time: int) -> None:
    sim = partition()
    hold(sim, 0, may_leave=may_leave)
    assert left(sim) == [(CLOSED, 0, time)]


def test_a_batch_leaves_as_long_after_the_last_part_as_the_captured_one() -> None:
    sim = partition(delay_in_turn=300)
    hold(sim, 0)
    assert left(sim) == [(CLOSED, 0, NOW + 300)]


def test_each_of_several_batches_leaves_as_long_after_the_one_before_it_as_the_captured_one() -> None:
    sim = partition(delay_in_turn=300)
    for first in (0, 10):
        hold(sim, first)
    assert left(sim) == [(CLOSED, 0, NOW + 300), (CLOSED, 10, NOW + 600)]


def test_a_batch_with_half_the_bytes_takes_half_of_the_time_that_is_in_proportion_to_bytes() -> None:
    sim = partition(delay_in_turn=300, by_bytes=120, uncompressed=2_000)
    hold(sim, 0)
    assert left(sim) == [(CLOSED, 0, NOW + 240)]


def test_a_batch_is_not_closed_before_an_earlier_one_that_has_left_the_queue() -> None:
    """It is due before the last batch that left the queue is closed, so it is closed after that one."""
    sim = partition(delay_in_turn=300)
    for first in (0, 10):
        hold(sim, first)
    left(sim)
    sim.ready[20]["end"] = 30
    assert comes_after_sent(sim, 20, NOW + 400)
    assert not comes_after_sent(sim, 20, NOW + 600)
    assert not comes_after_sent(sim, 10, NOW + 400)
    close_in_turn(sim, 20)
    assert pop(sim.heap)[0] == NOW + 900


REFUSED = 7
"""The number of a captured batch."""


@pytest.mark.parametrize(
    ("queued_by", "refused", "time"),
    [(NONE, NONE, 50_000), (REFUSED, REFUSED, 50_000), (REFUSED, NONE, NOW + 20)],
    ids=["waited for no parts", "waits for the same parts", "is not held back here"],
)
def test_a_batch_that_is_as_captured_is_closed_when_captured_unless_it_had_been_held_back(
    queued_by: int, refused: int, time: int
) -> None:
    sim = partition(closed=50_000, queued_by=queued_by)
    filling = sim.filling[0]
    filling["first"], filling["count"], filling["refused"] = 0, 64, refused
    seal_batch(sim, 0, 0, NOW, NOW + 20)
    assert pop(sim.heap)[0] == time


def test_if_pace_is_drawn_anew_no_batch_is_closed_at_a_captured_time() -> None:
    sim = partition(closed=NONE, queued_by=NONE)
    sim.filling[0]["first"], sim.filling[0]["count"] = 0, 64
    seal_batch(sim, 0, 0, NOW, NOW + 20)
    assert pop(sim.heap)[0] == NOW + 20


@pytest.mark.parametrize(("part", "events"), [(TO_SEND, []), (IN_FLIGHT, [(LINGERED, 30, NOW + 300)])])
def test_a_batch_that_lingered_while_it_waited_for_parts_is_closed_once_the_last_part_is_sent(
    part: int, events: list[tuple[int, int, int]]
) -> None:
    sim = partition(part, delay_in_turn=300)
    filling = sim.filling[0]
    filling["is_overdue"], filling["first"], filling["count"] = 1, 30, 2
    assert left(sim) == events
