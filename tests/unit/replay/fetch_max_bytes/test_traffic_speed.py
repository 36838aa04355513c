"""In lanes with `traffic.speed`, the captured records are produced in less time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables.values import CONSUMER
from tests.unit.replay.fetch_max_bytes.captured_reader import batch_rows, catch_up, lanes_of, reads_of
from tests.unit.replay.fetch_max_bytes.closed_units import MS, PACE, Client, Part, replayed
from udfs.replay.fetch_max_bytes import events
from udfs.replay.fetch_max_bytes.closed_loop.events import CapturedFetches
from udfs.replay.fetch_max_bytes.closed_loop.intent import intent_of
from udfs.replay.fetch_max_bytes.closed_loop.replay import lane_rules
from udfs.replay.fetch_max_bytes.closed_loop.state import NO_BACKLOG, ReaderLanes
from udfs.replay.fetch_max_bytes.replay import note_for_closed_loop
from udfs.replay.fetch_max_bytes.settings import FetchLanes, Reader, fetch_lanes
from udfs.replay.shared.lanes import AS_CAPTURED, LaneSettings

TIMES = st.lists(st.integers(0, 400), min_size=1, max_size=12).map(sorted)
"""When batches can be read (ms)."""
ONE_SLOW = replace(PACE, gap=3.0 * MS, answer=7.0 * MS, late=1.0 * MS)


def read_at(times: list[int]) -> list[Part]:
    """A partition whose batches come at these times, and one that always has more than a fetch brings."""
    visible = [1 + ms * MS for ms in times]
    return [
        Part([100] * len(times), visible=visible, max_bytes=200, records=3),
        Part([100] * 300, max_bytes=100, records=3),
    ]


def of_lane(out: ReaderLanes) -> list[list[int]]:
    """What a reader is given, how long it waits, and when it has read its backlog."""
    sums = out.sums.partitions[:2, 0]
    return [sums[name].tolist() for name in ("requests", "returned", "empty", "longest_us")] + [
        out.lanes["requests"].tolist(),
        out.catch_up_us[:, 0].tolist(),
    ]


@given(times=TIMES, overlaps=st.booleans())
def test_traffic_at_twice_the_speed_is_a_capture_of_half_the_length(times: list[int], overlaps: bool) -> None:
    client = Client(max_bytes=300, max_wait_ms=40, max_poll_records=4, overlaps=overlaps, record_us=900.0)
    twice = replace(client, speed=2.0)
    captured = replayed(read_at([2 * ms for ms in times]), [twice], 1 + 900 * MS, ONE_SLOW)
    assert of_lane(captured) == of_lane(replayed(read_at(times), [client], 1 + 450 * MS, ONE_SLOW))


def test_a_reader_that_keeps_up_falls_behind_when_more_is_produced_than_it_can_fetch() -> None:
    """A batch comes every 20 ms, and one fetch every 10 ms can bring one: at three times the speed that is too few."""
    part = Part([100] * 50, visible=[20 * MS * i for i in range(1, 51)], records=3)
    client = Client(max_bytes=100)
    out = replayed([part], [client, replace(client, speed=3.0)], 1000 * MS, ONE_SLOW)
    assert out.sums.partitions["returned"][0].tolist() == [5000, 5000]
    assert (out.lanes["end_lag"][0] <= 100, out.lanes["end_lag"][1] >= 1000) == (True, True)
    captured, faster = out.timeline.buckets["lag"].max(axis=(1, 2)).tolist()
    assert (captured <= 100, faster >= 1000) == (True, True)


def test_a_partition_without_a_backlog_has_no_catch_up_at_any_speed() -> None:
    part = Part([100] * 3, visible=[10 * MS, 20 * MS, 30 * MS])
    assert replayed([part], [Client(speed=2.0)]).catch_up_us.tolist() == [[NO_BACKLOG]]


@pytest.mark.parametrize("lane", [{}, {"consumer.fetch.max.bytes": 100}])
def test_lanes_have_the_captured_speed_unless_they_say_another(lane: dict[str, int]) -> None:
    names = ("captured", "lane")
    in_force = {"traffic.speed": 1.0}
    assert fetch_lanes(LaneSettings(names, ({}, lane), in_force)).traffic_speed.tolist() == [1.0, 1.0]
    faster = lane | {"traffic.speed": 2.5}
    assert fetch_lanes(LaneSettings(names, ({}, faster), in_force)).traffic_speed.tolist() == [1.0, 2.5]


def test_a_lane_reads_at_its_own_speed_and_waits_as_long_by_its_clients_clock() -> None:
    captured = CapturedFetches()
    for logs, reads in map(events.logs_and_reads, reads_of([*batch_rows(), *catch_up()]).to_batches()):
        captured.note_logs(logs)
        note_for_closed_loop(captured, events.reads_of(reads), reads)
    intent = intent_of(captured, Reader("app", "10.0.0.1", CONSUMER), lanes_of(AS_CAPTURED))
    assert intent
    lanes = replace(lanes_of(AS_CAPTURED, AS_CAPTURED), traffic_speed=np.array([1.0, 2.5]))
    rules = lane_rules(intent, Reader("app", "10.0.0.1", CONSUMER), lanes)
    assert rules["speed"][0].tolist() == [1.0, 2.5]
    assert rules["max_wait_us"][0].tolist() == [500 * MS, 1250 * MS]


def test_lanes_of_another_speed_are_not_the_same_to_a_reader() -> None:
    lanes: FetchLanes = lanes_of(100, 200)
    faster = replace(lanes, traffic_speed=np.array([1.0, 2.0]))
    assert lanes.equals(lanes, Reader("app", "10.0.0.1", CONSUMER))
    assert not lanes.equals(faster, Reader("app", "10.0.0.1", CONSUMER))
