"""Responses of the closed loop in place of captured fetches: their sizes, their times, and what stays as captured."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.steps import CLOSED_RESPONSES
from tests.unit.replay.closed_units import Client, Part, replayed
from tests.unit.replay.consumer_memory.events import HEARTBEAT, Row, batches, fetch, of_group, row
from tests.unit.replay.consumer_memory.traces import bounds_of, trace_of
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import arrow_schema, stream_of
from udfs.replay.consumer_memory import responses as closed_traces
from udfs.replay.consumer_memory.consumers import Consumed, replays_of
from udfs.replay.consumer_memory.draining import GIVEN_UP, RESPONSE, TAKEN_OVER
from udfs.replay.consumer_memory.fidelity import AGREED, Drift, held_alike
from udfs.replay.consumer_memory.given_up import LEAVE_GROUP, SYNC_GROUP
from udfs.replay.consumer_memory.pool import UNBOUNDED
from udfs.replay.consumer_memory.rows import Unit, closed_loop_row
from udfs.replay.consumer_memory.state import NOT_GIVEN_BACK, Trace
from udfs.replay.fetch_max_bytes.client_order import JAVA_3, JAVA_4
from udfs.replay.fetch_max_bytes.client_pace import as_captured_clients
from udfs.replay.fetch_max_bytes.closed_responses import Kept
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.fetch_max_bytes.fetch_read import Lanes
from udfs.replay.shared.captured_pieces import PIECES
from udfs.replay.shared.lanes import AS_CAPTURED


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
    of = {"number": time, "connection_id": 0, "time": time, "came": came, "held": held, "returned_bytes": size}
    rows = pa.RecordBatch.from_pylist(
        [{**of, "records": size // 10, "partitions": min(size, 1)}], schema=arrow_schema(CLOSED_RESPONSES)
    )
    return row("consumer", "app", kind=RESPONSE, lane=lane, time=time, responses=stream_of(rows), **columns)


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
    return {name: getattr(kept, name)[0, : int(kept.total[0])].tolist() for name in Kept._fields[:-2]}


def given_up_of(parts: list[Part], client: Client) -> list[list[int]]:
    """(response, partition, since, until, turn) of all that is given up."""
    found = replayed(parts, [client]).kept.given_up
    return np.array(found[:-1])[:, 0, : int(found.total[0])].T.tolist()


def test_the_closed_loop_keeps_each_response_with_when_it_is_drained() -> None:
    """Two batches of 10 records of 1 ms: 1 ms to answer, 1 ms until the client turns to it."""
    kept = kept_of([Part([100, 100], records=10)], Client(max_bytes=150, record_us=1000.0))
    assert (kept["asked"], kept["came"]) == ([1, 12_001], [1001, 13_001])
    assert kept["drained"] == [12_001, 23_001 + 1000]
    assert (kept["bytes"], kept["records"], kept["partitions"]) == ([150, 100], [10, 10], [1, 1])


def test_what_is_given_up_before_it_is_taken_is_told_with_its_turn() -> None:
    """Both come at 1001 us, and the client turns to them 1 ms later."""
    parts = [Part([100], records=10), Part([100], records=10, leaves=5000, asked_last=1)]
    slow, fast = (Client(record_us=each, profile=JAVA_3) for each in (1000.0, 10.0))
    assert given_up_of(parts, slow) == [[0, 1, 1, NEVER, 2001 + 10_000]]
    assert kept_of(parts, slow)["drained"] == [2001 + 10_000]
    assert given_up_of(parts, fast) == []
    assert kept_of(parts, fast)["drained"] == [2201]


@pytest.mark.parametrize("profile", [JAVA_3, JAVA_4])
@pytest.mark.parametrize("seeks", [500, 5000])
def test_what_came_before_the_client_seeks_is_gone_when_it_asks_from_there(profile: int, seeks: int) -> None:
    """It seeks while the first response is on its way, or while it works on that."""
    part = Part([100, 100], records=10, moves=[(seeks, 1)], gone_at=seeks + 1, asked_last=1)
    found = given_up_of([part], Client(record_us=1000.0, profile=profile))
    assert [(response, since, until) for response, _, since, until, _ in found] == [(0, 1, seeks + 1)]


def test_the_closed_loop_holds_as_much_as_the_capture_a_little_earlier_or_later() -> None:
    captured = [(0, 0, 1_000_000, 1000, 2_000_000), (0, 3_000_000, 8_000_000, 500, 0)]
    moved = [(0, 0, 1_050_000, 1000, 1_900_000), (0, 3_000_000, 8_050_000, 500, 0)]
    assert held_alike(trace_of(captured), trace_of(moved)) == {
        AGREED: PIECES,
        Drift.MORE_HELD: 0,
        Drift.LESS_HELD: 0,
        Drift.AFTER_GIVING_UP: 0,
    }
    longer = [(0, 0, 1_000_000, 1000, 4_000_000), (0, 5_000_000, 8_000_000, 500, 0)]
    found = held_alike(trace_of(captured), trace_of(longer))
    # A piece is 250 ms. Of the eight from 3 s to 5 s the first begins less than 160 ms, 2 % of the time, behind.
    assert (found[Drift.MORE_HELD], found[Drift.LESS_HELD]) == (7, 0)
    assert held_alike(trace_of(longer), trace_of(captured))[Drift.LESS_HELD] == 7


def test_what_is_held_differently_after_something_was_given_up_has_that_for_its_reason() -> None:
    """A piece is 250 ms: seven differ, from 3.25 s to 5 s."""
    captured = trace_of([(0, 0, 1_000_000, 1000, 2_000_000), (0, 3_000_000, 8_000_000, 500, 0)])
    longer = trace_of([(0, 0, 1_000_000, 1000, 4_000_000), (0, 5_000_000, 8_000_000, 500, 0)])
    for one, other, drift in ((captured, longer, Drift.MORE_HELD), (longer, captured, Drift.LESS_HELD)):
        found = held_alike(one, other, given_up=4_000_000)
        assert (found[drift], found[Drift.AFTER_GIVING_UP]) == (3, 4)


def test_what_several_processes_of_one_name_held_is_not_known() -> None:
    """The other one reads the partition from its beginning while this one holds what is in front of 6."""
    unit = Unit("consumer", "app", "10.0.0.1", "run")
    rows = [*CAPTURED, response(0, 0, 10, 40, 60)]
    told = []
    for both in (rows, [*rows, *fetch(20, 30, 100, [(1, 0, 6)], connection=1)]):
        (row,) = closed_loop_row(unit, consumed(both), limits_of()).to_pylist()
        told.append((row["checked"], row["unknown"], dict(row["reasons"]).get("another_connection", 0)))
    assert told == [(PIECES, 0, 0), (0, PIECES, PIECES)]


def given_up(number: int, since: int | None, turn: int, until: int | None = None, partition: int = 1) -> Row:
    """What the closed loop's response of this number has of a partition that is given up: the one asked for then."""
    key = {"lane": 1, "time": number, "connection_id": 0, "exchange_no": number, "partition_key": partition}
    return row("consumer", "app", kind=GIVEN_UP, **key, started=since, came=turn, released=until)


def held_with(*rows: Row) -> int:
    """How long the response of the closed loop that came at 8 us is held: for 30 us, and for what is given up.

    The capture fetches at 0, 50, 90, 220 and 500 us.
    """
    later = [*fetch(220, 230, 40, [(2, 0, 0)]), *fetch(500, 510, 40, [(2, 0, 0)])]
    exchanged = [*CAPTURED, *later, response(1, 0, 8, 30, 20), *rows]
    return fetches(consumed(exchanged).trace(1, limits_of(200)))["held"][0]


def taken_over(time: int, partition: int = 1) -> Row:
    return row(
        "consumer", "app", time=time, connection_id=7, exchange_no=time, kind=TAKEN_OVER, partition_key=partition
    )


def test_what_is_given_up_for_good_pins_its_response_where_nothing_tells_that_it_was_lost() -> None:
    assert held_with(given_up(0, 90, 100)) == NOT_GIVEN_BACK
    assert held_with(given_up(0, 90, 100), of_group(80, 85, SYNC_GROUP), taken_over(200, partition=2)) == NOT_GIVEN_BACK


@pytest.mark.parametrize(("turn", "gone"), [(100, 220), (300, 300)])
def test_what_another_member_takes_over_is_dropped_in_its_turn_once_it_is_lost_and_the_client_polls(
    turn: int, gone: int
) -> None:
    assert held_with(given_up(0, 90, turn), taken_over(200)) == gone - 8
    assert held_with(given_up(0, 90, turn, until=400), taken_over(50), taken_over(200), taken_over(450)) == gone - 8
    assert held_with(given_up(0, 90, turn, until=150), taken_over(200)) == 150 - 8


def test_what_is_not_in_the_next_assignment_is_dropped_in_its_turn() -> None:
    assert held_with(given_up(0, 90, 100), of_group(120, 130, SYNC_GROUP)) == 220 - 8
    assert held_with(given_up(0, 90, 100, until=400), of_group(120, 130, SYNC_GROUP)) == 400 - 8


def test_what_a_consumer_has_is_gone_when_it_leaves_or_closes_its_session() -> None:
    close = {**fetch(300, 310, 40, [])[0], "closes_session": True}
    assert held_with(given_up(0, 90, 100), close) == 300 - 8
    assert held_with(given_up(0, 90, 100), {**close, "connection_id": 3}) == NOT_GIVEN_BACK
    assert held_with(given_up(0, 90, 100), of_group(120, 130, LEAVE_GROUP)) == 220 - 8


def test_a_response_is_held_for_what_is_not_given_up_all_the_same() -> None:
    assert held_with(given_up(0, -9, 10), taken_over(0)) == 30
