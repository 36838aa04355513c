"""Responses of the closed loop in place of captured fetches: their sizes, their times, and what stays as captured."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.replay.closed_units import Client, Part, replayed
from tests.unit.replay.memory_events import HEARTBEAT, Row, batches, fetch, row
from tests.unit.replay.memory_traces import bounds_of, trace_of
from udfs.replay.fetch.client_order import JAVA_3, JAVA_4
from udfs.replay.fetch.client_pace import as_captured_clients
from udfs.replay.fetch.closed_responses import Kept
from udfs.replay.fetch.fetch_lanes import FetchLanes
from udfs.replay.fetch.fetch_read import AS_CAPTURED, Lanes
from udfs.replay.memory import closed_traces
from udfs.replay.memory.consumer_lanes import Consumed, replays_of
from udfs.replay.memory.drained import RESPONSE
from udfs.replay.memory.memory_fidelity import AGREED, PIECES, Drift, held_alike
from udfs.replay.memory.memory_pool import UNBOUNDED
from udfs.replay.memory.memory_report import Unit, closed_loop_row
from udfs.replay.memory.memory_state import NOT_GIVEN_BACK, Trace
from udfs.time_units import NEVER


def limits_of(*max_bytes: int) -> FetchLanes:
    """The captured limits, and others."""
    n = 1 + len(max_bytes)
    lanes = Lanes(
        np.array([AS_CAPTURED, *max_bytes]), np.full(n, AS_CAPTURED), np.full(n, 1 << 30), np.zeros(n, np.int64)
    )
    names = ("captured", *map(str, max_bytes))
    return FetchLanes(names, lanes, lanes, as_captured_clients(n), as_captured_clients(n))


def response(lane: int, time: int, came: int, held: int | None, size: int, **columns: int | str | None) -> Row:
    """A response of the closed loop with one partition's records, 10 bytes each."""
    given = {"connection_id": 0, "partitions": min(size, 1), "exchange_no": time, **columns}
    rows = {"lane": lane, "time": time, "came": came, "held": held, "returned_bytes": size, "records": size // 10}
    return row("consumer", "app", kind=RESPONSE, **rows, **given)


# Two fetches with 60 record bytes in 100 and 30 in 70 (20 bytes each take 1 us), and a coordinator's connection.
CAPTURED = [
    *fetch(0, 10, 100, [(1, 0, 6)]),
    *fetch(50, 60, 70, [(1, 6, 3)]),
    *fetch(90, 95, 40, [(1, 9, 0)]),
    row("consumer", "app", time=20, came=21, connection_id=9, exchange_no=1, api_key=HEARTBEAT, size=5),
]


def consumed(rows: list[Row], cut: int = 100) -> Consumed:
    found = Consumed()
    for batch in batches(sorted(rows, key=lambda row: (row["time"], row["connection_id"])), cut):
        found.add(batch)
    return found


def fetches(trace: Trace) -> dict[str, list[int]]:
    """What fetches of the trace come to."""
    of = trace.max_bytes > 0
    return {name: getattr(trace, name)[of].tolist() for name in ("asked", "started", "came", "size", "held")}


def test_a_response_takes_beside_its_records_what_the_captured_ones_took() -> None:
    """40 bytes without records; 40 with one partition's."""
    rows = [*CAPTURED, response(1, 0, 8, 30, 20), response(1, 40, 48, 0, 0), response(1, 60, 70, None, 70)]
    trace = consumed(rows).trace(1, limits_of(200))
    assert fetches(trace) | {"started": None} == {
        "asked": [0, 40, 60], "came": [8, 48, 70], "size": [60, 40, 110], "held": [30, 0, NOT_GIVEN_BACK],
        "started": None,
    }  # fmt: skip
    assert trace.max_bytes.tolist() == [200, 0, 200, 200]
    assert trace.privileged.tolist() == [0, 1]


def test_a_byte_takes_as_long_to_come_as_captured_bytes_took() -> None:
    slow = [{**row, "started": row["time"] + 5} if row["kind"] == 0 else row for row in CAPTURED]
    trace = consumed([*slow, response(1, 0, 48, 30, 380)]).trace(1, limits_of(200))
    took = (10 - 5) + (60 - 55) + (95 - 95)  # us, for 210 bytes
    assert fetches(trace)["started"] == [48 - round(420 * took / 210)]


def test_connections_and_lanes_that_the_closed_loop_does_not_have_stay_as_captured() -> None:
    other = fetch(30, 40, 55, [(7, 0, 1)], connection=4)
    trace = consumed([*CAPTURED, *other, response(1, 0, 8, 30, 20)]).trace(1, limits_of(200))
    assert fetches(trace)["size"] == [60, 55]
    assert fetches(consumed([*CAPTURED, *other]).trace(0, limits_of(200)))["size"] == [100, 55, 70, 40]


@pytest.mark.parametrize("cut", [1, 7])
def test_traces_are_the_same_whatever_the_cuts(cut: int) -> None:
    rows = [*CAPTURED, response(1, 0, 8, 30, 20), response(2, 0, 9, 31, 30), response(1, 40, 48, None, 10)]
    for number in (0, 1, 2):
        once, again = (consumed(rows, size).trace(number, limits_of(200, 300)) for size in (100, cut))
        assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))


def test_lanes_with_the_same_fetch_limits_are_one_replay() -> None:
    rows = [*CAPTURED, *(response(lane, 0, 8, 30 * lane, 20) for lane in (0, 1)), response(1, 40, 48, 0, 40)]
    bounds = bounds_of(UNBOUNDED, 1000, 60, UNBOUNDED)
    done = list(replays_of(consumed(rows), ("a", "b", "c", "d"), bounds, np.array([0, 1, 1, 0]), limits_of(50)))
    assert [(part.number, part.names) for part in done] == [(0, ("a", "d")), (1, ("b", "c"))]
    assert [part.record_bytes for part in done] == [90, 60]
    assert [part.bound for part in done] == [500, 50]  # one partition of 500 bytes; one broker and 50 bytes
    assert done[0].speed.tolist() == [1.0, 1.0]
    # The closed loop as captured: 2 records until 95 us, when the coordinator and all else is done: here until 8 us.
    assert done[1].speed[0] == pytest.approx((6 / 48) / (2 / 21))


def test_what_there_is_no_room_for_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed_traces, "MOST_RESPONSES", 2)
    rows = [response(1, time, time + 1, 0, 10, left_out=5 * (time == 0)) for time in range(4)]
    found = consumed([*CAPTURED, *rows])
    assert (len(found.closed.responses(1).came), found.closed.left_out[1]) == (2, 5 + 2)


def kept_of(parts: list[Part], client: Client) -> dict[str, list[int]]:
    kept: Kept = replayed(parts, [client]).kept
    return {name: getattr(kept, name)[0, : int(kept.total[0])].tolist() for name in Kept._fields[:-1]}


def test_the_closed_loop_keeps_each_response_with_when_it_is_drained() -> None:
    """Two batches of 10 records of 1 ms: 1 ms to answer, 1 ms until the client turns to it."""
    kept = kept_of([Part([100, 100], records=10)], Client(max_bytes=150, record_us=1000.0))
    assert (kept["asked"], kept["came"]) == ([1, 12_001], [1001, 13_001])
    assert kept["drained"] == [12_001, 23_001 + 1000]
    assert (kept["bytes"], kept["records"], kept["partitions"]) == ([150, 100], [10, 10], [1, 1])


def test_a_response_of_a_partition_that_is_given_up_is_pinned() -> None:
    part = Part([100], records=10, leaves=5000)
    assert kept_of([part], Client(record_us=1000.0, profile=JAVA_3))["drained"] == [NEVER]
    assert kept_of([part], Client(record_us=10.0, profile=JAVA_3))["drained"] == [2101]


@pytest.mark.parametrize("profile", [JAVA_3, JAVA_4])
@pytest.mark.parametrize("seeks", [500, 5000])
def test_what_came_before_the_client_seeks_is_gone_when_it_asks_from_there(profile: int, seeks: int) -> None:
    """It seeks while the first response is on its way, or while it works on that."""
    part = Part([100, 100], records=10, moves=[(seeks, 1)], gone_at=seeks + 1)
    kept = kept_of([part], Client(record_us=1000.0, profile=profile))
    assert kept["drained"][0] == kept["asked"][1]


def test_a_response_of_a_partition_that_is_given_up_is_held_until_that_is_gone() -> None:
    part = Part([100], records=10, leaves=5000, gone_at=90_000)
    assert kept_of([part], Client(record_us=1000.0, profile=JAVA_3))["drained"] == [90_000]


def test_the_closed_loop_holds_as_much_as_the_capture_a_little_earlier_or_later() -> None:
    captured = [(0, 0, 1_000_000, 1000, 2_000_000), (0, 3_000_000, 8_000_000, 500, 0)]
    moved = [(0, 0, 1_050_000, 1000, 1_900_000), (0, 3_000_000, 8_050_000, 500, 0)]
    assert held_alike(trace_of(captured), trace_of(moved)) == {AGREED: PIECES, Drift.MORE_HELD: 0, Drift.LESS_HELD: 0}
    longer = [(0, 0, 1_000_000, 1000, 4_000_000), (0, 5_000_000, 8_000_000, 500, 0)]
    found = held_alike(trace_of(captured), trace_of(longer))
    # A piece is 250 ms. Of the eight from 3 s to 5 s the first begins less than 160 ms, 2 % of the time, behind.
    assert (found[Drift.MORE_HELD], found[Drift.LESS_HELD]) == (7, 0)
    assert held_alike(trace_of(longer), trace_of(captured))[Drift.LESS_HELD] == 7


def test_what_several_processes_of_one_name_held_is_not_known() -> None:
    """The other one reads the partition from its beginning while this one holds what is in front of 6."""
    unit = Unit("consumer", "app", "10.0.0.1", "run")
    rows = [*CAPTURED, response(0, 0, 10, 40, 60)]
    told = []
    for both in (rows, [*rows, *fetch(20, 30, 100, [(1, 0, 6)], connection=1)]):
        (row,) = closed_loop_row(unit, consumed(both), limits_of()).to_pylist()
        told.append((row["checked"], row["unknown"], dict(row["reasons"]).get("another_connection", 0)))
    assert told == [(PIECES, 0, 0), (0, PIECES, PIECES)]
