"""Responses of the closed loop in place of captured fetches: their sizes, their times, and what stays as captured."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.gold_memory import CONSUMER_MEMORY
from schemas.tables.memory_reasons import HELD
from schemas.tables.steps_memory import CLOSED_RESPONSES
from schemas.tables.values import CONSUMER
from tests.unit.replay.consumer_memory.events import HEARTBEAT, Row, batches, fetch, of_group, row
from tests.unit.replay.consumer_memory.traces import pools_of
from udfs.columns.records import new_records
from udfs.columns.time_units import NEVER
from udfs.facts.arrow_tables import arrow_schema, arrow_stream
from udfs.replay.consumer_memory import responses as responses_module
from udfs.replay.consumer_memory.consumers import ConsumerEvents, Consumers, replay_pools
from udfs.replay.consumer_memory.fidelity import CLOSED_LOOP_HELD, verdicts_on_consumers
from udfs.replay.consumer_memory.given_up import LEAVE_GROUP, SYNC_GROUP
from udfs.replay.consumer_memory.rows import consumer_memory_rows
from udfs.replay.consumer_memory.settings import BUFFER_SETTINGS, FETCH_LIMITS, QUEUE_SETTINGS, UNBOUNDED, MemoryLanes
from udfs.replay.consumer_memory.state import Traces
from udfs.replay.consumer_memory.units import Units
from udfs.replay.shared.captured_pieces import PIECES
from udfs.replay.shared.lanes import AS_CAPTURED


def response(lane: int, time: int, came: int, held: int | None, size: int, **columns: int | str | None) -> Row:
    """A response of the closed loop with one partition's records, 10 bytes each."""
    of = {"number": time, "connection_id": 0, "time": time, "came": came, "held": held, "returned_bytes": size}
    rows = pa.RecordBatch.from_pylist(
        [{**of, "records": size // 10, "partitions": min(size, 1)}], schema=arrow_schema(CLOSED_RESPONSES)
    )
    at = {"kind": MemoryEvent.RESPONSES, "lane": lane, "time": time}
    return row("consumer", "app", **at, responses=arrow_stream(rows), **columns)


# Two fetches with 60 record bytes in 100 and 30 in 70 (20 bytes each take 1 us), and a coordinator's connection.
CAPTURED = [
    *fetch(0, 10, 100, [(1, 0, 6)]),
    *fetch(50, 60, 70, [(1, 6, 3)]),
    *fetch(90, 95, 40, [(1, 9, 0)]),
    row("consumer", "app", time=20, came=21, connection_id=9, exchange_no=1, api_key=HEARTBEAT, size=5),
]


def consumers(rows: list[Row], *max_bytes: int, cut: int = 100, speed: float = 1.0, count: int = 1) -> Consumers:
    """One process. max_bytes: fetch.max.bytes of the fetch limits beside those in force. speed, count: of these,
    how many times as fast records are produced, and how many consumers read what the process reads.
    """
    limits = new_records(
        FETCH_LIMITS,
        1 + len(max_bytes),
        max_bytes=[AS_CAPTURED, *max_bytes],
        partition_max_bytes=AS_CAPTURED,
        broker_max_bytes=1 << 30,
        consumers=[1, *[count] * len(max_bytes)],
        speed=[1.0, *[speed] * len(max_bytes)],
    )
    events = ConsumerEvents()
    for batch in batches(sorted(rows, key=lambda row: (row["time"], row["connection_id"])), cut):
        events.add(batch, np.zeros(batch.num_rows, np.int64))
    return events.consumers(limits)


def fetches(traces: Traces) -> dict[str, list[int]]:
    """The times and sizes of the fetches, by field."""
    of = traces.messages[traces.messages["max_bytes"] > 0]
    return {name: of[name].tolist() for name in ("requested_at", "size_known_at", "complete_at", "size", "held_us")}


def test_a_response_has_as_many_bytes_besides_its_records_as_captured_responses() -> None:
    """A captured response has 40 bytes besides its records, whether it has records or not."""
    rows = [*CAPTURED, response(1, 0, 8, 30, 20), response(1, 40, 48, 0, 0), response(1, 60, 70, None, 70)]
    traces = consumers(rows, 200).traces(1)
    found = fetches(traces)
    assert (found["requested_at"], found["complete_at"]) == ([0, 40, 60], [8, 48, 70])
    assert (found["size"], found["held_us"]) == ([60, 40, 110], [30, 0, NEVER])
    assert traces.messages["max_bytes"].tolist() == [200, 0, 200, 200]
    assert traces.connections["is_privileged"].tolist() == [0, 1]


def test_a_byte_takes_as_long_to_come_as_captured_bytes_took() -> None:
    slow = [{**row, "started": row["time"] + 5} if row["kind"] == 0 else row for row in CAPTURED]
    traces = consumers([*slow, response(1, 0, 48, 30, 380)], 200).traces(1)
    took = (10 - 5) + (60 - 55) + (95 - 95)  # us, for 210 bytes
    assert fetches(traces)["size_known_at"] == [48 - round(420 * took / 210)]


def test_connections_and_lanes_that_the_closed_loop_does_not_have_stay_as_captured() -> None:
    other = fetch(30, 40, 55, [(7, 0, 1)], connection=4)
    replaced = consumers([*CAPTURED, *other, response(1, 0, 8, 30, 20)], 200)
    assert fetches(replaced.traces(1))["size"] == [60, 55]
    assert fetches(consumers([*CAPTURED, *other], 200).traces(0))["size"] == [100, 55, 70, 40]


@pytest.mark.parametrize("cut", [1, 7])
def test_traces_are_the_same_however_rows_are_split_into_batches(cut: int) -> None:
    rows = [*CAPTURED, response(1, 0, 8, 30, 20), response(2, 0, 9, 31, 30), response(1, 40, 48, None, 10)]
    for number in (0, 1, 2):
        once, again = (consumers(rows, 200, 300, cut=size).traces(number) for size in (100, cut))
        for name in ("messages", "connections", "traces"):
            assert np.array_equal(getattr(once, name), getattr(again, name))


def test_lanes_with_the_same_fetch_limits_are_replayed_together() -> None:
    rows = [*CAPTURED, *(response(lane, 0, 8, 30 * lane, 20) for lane in (0, 1)), response(1, 40, 48, 0, 40)]
    of, pools, numbers = consumers(rows, 50), pools_of(UNBOUNDED, 1000, 60, UNBOUNDED), np.array([0, 1, 1, 0])
    buffers, queues = new_records(BUFFER_SETTINGS, 4), new_records(QUEUE_SETTINGS, 4)
    lanes = MemoryLanes(("a", "b", "c", "d"), pools, pools, buffers, queues, of.limits, numbers)
    done = list(replay_pools(of, lanes, pools[np.newaxis]))
    assert [(part.fetch_number, part.lanes.tolist()) for part in done] == [(0, [0, 3]), (1, [1, 2])]
    assert [of.record_bytes(number).tolist() for number in (0, 1)] == [[90], [60]]
    # The limit of the only partition, and the limit of a fetch.
    assert [of.memory_bound(number).tolist() for number in (0, 1)] == [[500], [50]]
    assert done[0].speed.tolist() == [[1.0, 1.0]]
    # Under the captured limits the closed loop gets 2 records by 21 us, when the coordinator answers; here 6 by 48 us.
    assert done[1].speed[0, 0] == pytest.approx((6 / 48) / (2 / 21))


def pool_row(found: Consumers, size: int) -> Row:
    """The row of the only process in a lane with a pool of this size, under the fetch limits beside those in force."""
    pools = pools_of(UNBOUNDED, size)
    buffers, queues = new_records(BUFFER_SETTINGS, 2), new_records(QUEUE_SETTINGS, 2)
    lanes = MemoryLanes(("captured", "lane"), pools, pools, buffers, queues, found.limits, np.array([0, 1]))
    units = Units(CONSUMER, "run", ["app"], ["10.0.0.1"])
    done = list(replay_pools(found, lanes, pools[np.newaxis]))[1]
    (row,) = dict(consumer_memory_rows(units, found, lanes, done))[CONSUMER_MEMORY].to_pylist()
    return dict(row)


def test_at_twice_the_speed_waits_are_half_as_long_by_the_clients_clock() -> None:
    """The closed loop keeps to the capture's clock, by which all that a client does then takes twice as long."""
    rows = [*CAPTURED, response(1, 0, 8, 60, 20), response(1, 40, 48, 20, 20)]
    as_fast, twice = (pool_row(consumers(rows, 200, speed=speed), 60) for speed in (1.0, 2.0))
    assert as_fast["waits"] == twice["waits"] == 1
    assert (as_fast["wait_ms_max"], twice["wait_ms_max"]) == (0.02, 0.01)
    assert twice["span_ms"] == as_fast["span_ms"] / 2
    assert twice["depleted_share"] == as_fast["depleted_share"] > 0
    assert twice["used_bytes_max"] == as_fast["used_bytes_max"]


def test_a_consumer_that_keeps_up_with_twice_the_traffic_has_twice_the_throughput() -> None:
    rows = [*CAPTURED, *(response(lane, 0, 8, 30, 20) for lane in (0, 1))]
    as_fast, twice = (pool_row(consumers(rows, 200, speed=speed), UNBOUNDED) for speed in (1.0, 2.0))
    assert (as_fast["throughput_ratio"], twice["throughput_ratio"]) == (1.0, 2.0)


def test_at_twice_the_speed_a_byte_takes_twice_as_long_to_come_by_the_captures_clock() -> None:
    slow = [{**row, "started": row["time"] + 5} if row["kind"] == 0 else row for row in CAPTURED]
    as_fast, twice = (
        fetches(consumers([*slow, response(1, 0, 48, 30, 380)], 200, speed=speed).traces(1))["size_known_at"]
        for speed in (1.0, 2.0)
    )
    assert 48 - twice[0] == pytest.approx(2 * (48 - as_fast[0]), abs=1)


def test_a_consumer_that_has_no_partition_on_a_connection_holds_nothing_of_what_was_captured_there() -> None:
    """Of two consumers that share the partitions, the one that is replayed has those of the first connection. So it is
    for a connection that was opened anew: the closed loop has its responses on the first one.
    """
    other = fetch(30, 40, 55, [(7, 0, 1)], connection=4)
    in_loop = row("consumer", "app", kind=MemoryEvent.IN_LOOP, time=0, connection_id=4, exchange_no=0)
    found = consumers([*CAPTURED, *other, in_loop, response(1, 0, 8, 30, 20)], 200, count=2)
    assert fetches(found.traces(1))["size"] == [60]


def test_throughput_is_not_told_of_one_of_several_consumers_or_of_one_that_is_not_replayed() -> None:
    looped = [response(lane, 0, 8, 30, 20) for lane in (0, 1)]
    assert pool_row(consumers([*CAPTURED, *looped], 200, count=2), UNBOUNDED)["throughput_ratio"] is None
    assert pool_row(consumers(CAPTURED, 200, speed=2.0), UNBOUNDED)["throughput_ratio"] is None


def test_of_several_consumers_each_has_its_part_of_the_partitions() -> None:
    """Of three partitions, one of two consumers has two; its bound is theirs."""
    rows = [*CAPTURED, *fetch(96, 98, 40, [(2, 0, 0), (3, 0, 0)]), response(1, 0, 8, 30, 20)]
    one, two = (consumers(rows, 10_000, count=count) for count in (1, 2))
    assert [of.partitions(1).tolist() for of in (one, two)] == [[3], [2]]
    assert pool_row(two, UNBOUNDED)["partitions"] == 2
    assert one.memory_bound(1)[0] * 2 == two.memory_bound(1)[0] * 3


def test_responses_that_there_is_no_room_for_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses_module, "MOST_RESPONSES", 2)
    rows = [response(1, time, time + 1, 0, 10, left_out=5 * (time == 0)) for time in range(4)]
    found = consumers([*CAPTURED, *rows], 200)
    assert (len(found.responses_under(1)), found.all_left_out(1).tolist()) == (2, [5 + 2])


def test_held_memory_is_unknown_where_several_processes_share_a_name() -> None:
    """The other process reads the partition from its beginning while this one holds the records before offset 6."""
    rows, verdicts = [*CAPTURED, response(0, 0, 10, 40, 60)], []
    for both in (rows, [*rows, *fetch(20, 30, 100, [(1, 0, 6)], connection=1)]):
        (held,) = (of for _, of in verdicts_on_consumers(consumers(both)) if of.metric == CLOSED_LOOP_HELD)
        verdicts.append((held.checked, held.unknown, held.reasons.get(HELD.another_connection, 0)))
    assert verdicts == [(PIECES, 0, 0), (0, PIECES, PIECES)]


def test_held_memory_is_unknown_where_it_is_not_known_which_process_fetched() -> None:
    """Whatever else the closed loop could not be checked for."""
    rows = [*CAPTURED, response(0, 0, 10, 40, 60, unchecked=HELD.throttled)]
    mixed = [row | {"is_told_apart": False if row["kind"] == MemoryEvent.PARTITION else None} for row in rows]
    (held,) = (of for _, of in verdicts_on_consumers(consumers(mixed)) if of.metric == CLOSED_LOOP_HELD)
    assert (held.checked, held.unknown, held.reasons) == (0, PIECES, {HELD.several_processes: PIECES})


def given_up(number: int, since: int | None, turn: int, until: int | None = None, partition: int = 1) -> Row:
    """The records of a partition in the closed loop's response of this number, which the client gives up."""
    key = {"lane": 1, "time": number, "connection_id": 0, "exchange_no": number, "partition_key": partition}
    return row("consumer", "app", kind=MemoryEvent.GIVEN_UP, **key, started=since, came=turn, released=until)


def held_with(*rows: Row) -> int:
    """How long (us) the closed loop's response that came at 8 us is held: for 30 us, or longer for given-up records.

    The capture fetches at 0, 50, 90, 220 and 500 us.
    """
    later = [*fetch(220, 230, 40, [(2, 0, 0)]), *fetch(500, 510, 40, [(2, 0, 0)])]
    exchanged = [*CAPTURED, *later, response(1, 0, 8, 30, 20), *rows]
    return fetches(consumers(exchanged, 200).traces(1))["held_us"][0]


def taken_over(time: int, partition: int = 1) -> Row:
    at = {"time": time, "connection_id": 7, "exchange_no": time}
    return row("consumer", "app", **at, kind=MemoryEvent.TAKEN_OVER, partition_key=partition)


def test_records_given_up_for_good_pin_their_response_if_nothing_shows_that_the_partition_was_lost() -> None:
    assert held_with(given_up(0, 90, 100)) == NEVER
    assert held_with(given_up(0, 90, 100), of_group(80, 85, SYNC_GROUP), taken_over(200, partition=2)) == NEVER


@pytest.mark.parametrize(("turn", "gone"), [(100, 220), (300, 300)])
def test_records_of_a_partition_that_another_member_takes_over_are_dropped_in_their_turn(turn: int, gone: int) -> None:
    assert held_with(given_up(0, 90, turn), taken_over(200)) == gone - 8
    assert held_with(given_up(0, 90, turn, until=400), taken_over(50), taken_over(200), taken_over(450)) == gone - 8
    assert held_with(given_up(0, 90, turn, until=150), taken_over(200)) == 150 - 8


def test_records_of_a_partition_that_the_next_assignment_lacks_are_dropped_in_their_turn() -> None:
    assert held_with(given_up(0, 90, 100), of_group(120, 130, SYNC_GROUP)) == 220 - 8
    assert held_with(given_up(0, 90, 100, until=400), of_group(120, 130, SYNC_GROUP)) == 400 - 8


def test_a_consumers_records_are_gone_when_it_leaves_its_group_or_closes_its_session() -> None:
    close = {**fetch(300, 310, 40, [])[0], "closes_session": True}
    assert held_with(given_up(0, 90, 100), close) == 300 - 8
    assert held_with(given_up(0, 90, 100), {**close, "connection_id": 3}) == NEVER
    assert held_with(given_up(0, 90, 100), of_group(120, 130, LEAVE_GROUP)) == 220 - 8


def test_a_response_with_dropped_records_is_held_until_its_other_records_are_taken() -> None:
    assert held_with(given_up(0, -9, 10), taken_over(0)) == 30
