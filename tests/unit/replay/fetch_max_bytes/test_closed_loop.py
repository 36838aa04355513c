"""A captured catch-up in closed loop: what the gold tables say about it, and about what the capture does not show."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.tables.event_kinds import LogEvent
from schemas.tables.steps import READS
from tests.packed import unpack
from tests.unit.replay.fetch_max_bytes.captured_reader import (
    BATCHES,
    BEGIN,
    MS,
    PARTITIONS,
    READER,
    READER_CONNECTION,
    SIZE,
    Rows,
    batch_rows,
    catch_up,
    lanes_of,
    read_row,
    reads_of,
)
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop import events, nodes, stays
from udfs.replay.fetch_max_bytes.closed_loop.fidelity import follows_same_partition
from udfs.replay.fetch_max_bytes.closed_loop.pace import PacedFetches, observed_pace, pace_of, pace_of_samples
from udfs.replay.fetch_max_bytes.closed_loop.pace_fits import Sample, time_until
from udfs.replay.fetch_max_bytes.replay import replay_fetches
from udfs.replay.fetch_max_bytes.settings import FetchLanes
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.replay.shared.line_fit import fit_line

TIMES = ("position", "request_time", "response_time")
LOOSE = [
    "response_time",
    "max_wait_ms",
    "max_bytes",
    "min_bytes",
    "fetch_offset",
    "response_bound",
    "partition_max_bytes",
]


def gold(events: Rows, lanes: FetchLanes, most: int = 10_000) -> dict[str, Rows]:
    """The gold rows. most: how many rows each batch has at most that the passes get."""
    return gold_of(reads_of(events, most), lanes, most)


def gold_of(reads: pa.Table, lanes: FetchLanes, most: int) -> dict[str, Rows]:
    """The gold rows from rows of READS."""
    rows: dict[str, Rows] = defaultdict(list)
    for packed in replay_fetches(reads.to_batches(max_chunksize=most), lanes, "run"):
        for batch in unpack([packed]):
            rows[packed["table"][0].as_py()] += batch.to_pylist()
    return rows


def closed_fidelity(events: Rows) -> dict[str, tuple[int, int, int, list[tuple[str, int]]]]:
    return {
        row["metric"].removeprefix("closed_loop_"): (row["checked"], row["agreed"], row["unknown"], row["reasons"])
        for row in gold(events, lanes_of(AS_CAPTURED))["fidelity"]
        if row["metric"].startswith("closed_loop_")
    }


EVENTS = batch_rows() + catch_up()


def test_under_the_captured_settings_the_closed_loop_agrees_with_the_capture() -> None:
    assert closed_fidelity(EVENTS) == {
        "bytes": (32, 32, 0, []),
        "catch_up": (PARTITIONS, PARTITIONS, 0, []),
        "order": (PARTITIONS * BATCHES, PARTITIONS * BATCHES, 0, []),
        "requests": (1, 1, 0, []),
    }


def closed_bytes(
    events: Rows, *max_bytes: int, captured_until: Mapping[str, int] | None = None
) -> dict[tuple[str, str], int]:
    """What the closed loop reads, by lane and broker."""
    read: dict[tuple[str, str], int] = defaultdict(int)
    lanes = replace(lanes_of(*max_bytes), captured_until=captured_until or {})
    for row in gold(events, lanes)["fetch_fairness"]:
        if row["mode"] == "closed":
            read[row["scenario"], row["broker"]] += row["bytes"]
    return read


ALL = BATCHES * SIZE * PARTITIONS


def test_a_connection_that_is_opened_anew_goes_on_from_what_the_lane_has_read() -> None:
    """A response of the second lane holds half as much, so it has read half as much when the connection breaks."""
    events = batch_rows() + catch_up(reconnects=8)
    assert closed_bytes(events, AS_CAPTURED, SIZE) == {("lane 0", "1"): ALL, ("lane 1", "1"): ALL}
    assert all(checked == agreed for checked, agreed, _, _ in closed_fidelity(events).values())


def test_partitions_that_move_to_another_broker_are_read_on_from_where_the_lane_is() -> None:
    """A response of the second lane holds half as much, so it has read half as much when the partitions move."""
    events = batch_rows() + catch_up(reconnects=8, broker="2")
    assert closed_bytes(events, AS_CAPTURED, SIZE) == {
        ("lane 0", "1"): ALL // 2, ("lane 0", "2"): ALL // 2, ("lane 1", "1"): ALL // 4, ("lane 1", "2"): ALL * 3 // 4,
    }  # fmt: skip
    assert all(checked == agreed for checked, agreed, _, _ in closed_fidelity(events).values())


BACK_AFTER = 2_000 * MS
BACK = [
    row | ({name: row[name] + BACK_AFTER for name in TIMES} if row.get("exchange_no", 0) >= 8 else {})
    for row in batch_rows() + catch_up(reconnects=4, broker="2", returns=8)
]
"""The leader moves to another broker for four fetches. Two seconds later it comes back."""


def test_partitions_whose_leader_comes_back_are_read_on_from_where_the_lane_is() -> None:
    """A response of the second lane holds half as much, so it has read half as much at each move."""
    assert closed_bytes(BACK, AS_CAPTURED, SIZE) == {
        ("lane 0", "1"): ALL * 3 // 4, ("lane 0", "2"): ALL // 4, ("lane 1", "1"): ALL * 7 // 8,
        ("lane 1", "2"): ALL // 8,
    }  # fmt: skip
    assert all(checked == agreed for checked, agreed, _, _ in closed_fidelity(BACK).values())


def test_the_catch_up_of_partitions_whose_leader_comes_back_lasts_from_the_first_fetch_to_the_last() -> None:
    rows = gold(BACK, lanes_of(AS_CAPTURED, SIZE, 10 * SIZE))["fetch_consumers"]
    took = [row["catch_up_ms"] for row in rows if row["mode"] == "closed"]
    assert took == pytest.approx([2152, 2312, 72], abs=30)


@pytest.mark.parametrize(("most", "is_followed"), [(0, False), (1, True)])
def test_a_partition_that_comes_back_too_often_goes_on_as_captured(
    most: int, is_followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each return copies the log. A lane that is behind then reads on from where the captured reader was."""
    monkeypatch.setattr(stays, "MOST_RETURNS", most)
    assert (sum(closed_bytes(BACK, SIZE).values()) == ALL) == is_followed


REFUSED = {"redirected": True, "returned_bytes": 0, "response_bound": None, "response_record_bytes": 0}
"""What a response has of a partition that the broker does not lead."""


@pytest.mark.parametrize(("refusals", "unknown"), [(2, 0), (101, 0), (102, 32)])
def test_what_is_refused_before_a_leader_has_moved_can_be_checked_if_it_does_not_last(
    refusals: int, unknown: int
) -> None:
    """A lane that is behind could read for more than a second what the captured reader did not get."""
    refused = [read_row(8 + i, p, p, 4, 0) | REFUSED for i in range(refusals) for p in range(PARTITIONS)]
    moved = [
        behind(row, 10 * MS * refusals) if row["exchange_no"] >= 8 else row
        for row in catch_up(reconnects=8, broker="2")
    ]  # fmt: skip
    assert closed_unknown([*batch_rows(), *moved, *refused]) == unknown


@pytest.mark.parametrize("broker", ["1", "2"])
def test_what_is_refused_and_then_read_at_the_same_broker_is_unknown(broker: str) -> None:
    """A leader was not available for the time of a fetch. Another reader's refusals do not matter."""
    at_1 = read_row(8, 0, 0, 4, 0) | REFUSED
    refused = [at_1 if broker == "1" else at_1 | {"broker": "2", "client_id": "another", "connection_id": 99}]
    events = [behind(row, 10 * MS) if row.get("exchange_no", 0) >= 8 else row for row in EVENTS]
    assert closed_unknown([*events, *refused]) == (32 if broker == "1" else 0)


def closed_unknown(events: Rows) -> int:
    """How many comparisons of bytes are unknown because partitions were refused."""
    rows = gold(events, lanes_of(AS_CAPTURED))["fidelity"]
    reasons = [dict(row["reasons"]) for row in rows if row["metric"] == "closed_loop_bytes"]
    return sum(of.get("partition_refused", 0) for of in reasons)


def test_a_consumer_that_asks_for_records_beyond_a_bound_fetches_as_often_as_it_did() -> None:
    """When it has read everything, the new leader's high watermark is lower by one for a while."""
    lower = {name: 10 * BATCHES - 1 for name in ("response_bound", "bound_low", "bound_high")}
    last = EVENTS[-1]["exchange_no"]
    at_once = [read_row(last + 1 + i, p, p, BATCHES, 0) | lower for i in range(60) for p in range(PARTITIONS)]
    assert closed_fidelity([*EVENTS, *at_once])["requests"] == (1, 1, 0, [])


def test_a_response_under_way_from_the_old_leader_arrives_before_its_partitions_are_asked_for_at_the_new_one() -> None:
    """The reader already fetches another partition there. It sends such a fetch just before that response."""
    other = read_row(7, 0, 0, 0, 0) | {"topic": "u", "topic_key": "u", "connection_id": READER_CONNECTION + 1}
    there = other | {"broker": "2", "opens_session": True} | {name: other[name] + MS // 2 for name in TIMES}
    moved = catch_up(reconnects=8, broker="2")
    assert closed_bytes([*batch_rows(), there, *moved], AS_CAPTURED) == {
        ("lane 0", "1"): ALL // 2, ("lane 0", "2"): ALL // 2,
    }  # fmt: skip


STOPS_FETCHES = [row for row in catch_up() if row["exchange_no"] < BATCHES]
STOPS = batch_rows() + STOPS_FETCHES
"""The reader sends only half of its fetches, so it reads half of the backlog."""
LAST = BEGIN + 10 * MS * (BATCHES - 1) + 2 * MS
"""When its last response came. Its fetches may wait for 500 ms."""
GOES_ON = {"1": LAST + 2000 * MS}
"""The capture shows the broker for two more seconds."""


def test_a_reader_that_leaves_a_backlog_leaves_it_at_the_same_time_in_every_lane() -> None:
    """It reads half of the backlog in the capture, a quarter in a lane with half as many bytes a response, and all of
    it in a lane without a limit.
    """
    lanes = (AS_CAPTURED, SIZE, 100 * SIZE)
    read = closed_bytes(STOPS, *lanes, captured_until=GOES_ON)
    assert list(read.values()) == [ALL // 2, ALL // 4, ALL]
    rows = gold(STOPS, replace(lanes_of(*lanes), captured_until=GOES_ON))["fetch_fairness"]
    assert all(row["is_given_up"] for row in rows if row["mode"] == "closed")


def test_a_reader_whose_last_fetch_ends_with_the_capture_reads_on() -> None:
    """A lane may take longer than the capture: the reader cannot have left before the capture ended."""
    for until in ({"1": LAST + 1000 * MS}, {"2": LAST + 2000 * MS}):
        assert set(closed_bytes(STOPS, AS_CAPTURED, SIZE, captured_until=until).values()) == {ALL}


@pytest.mark.parametrize(("closed_after_ms", "read"), [(1, ALL // 2), (3, ALL)])
def test_a_reader_whose_connection_is_closed_has_left(closed_after_ms: int, read: int) -> None:
    """The capture shows the broker for 2 ms after the reader's last response, so only the first end is within it."""
    lanes = replace(lanes_of(AS_CAPTURED), captured_until={"1": LAST + 2 * MS})
    lanes = replace(lanes, closed_at={READER["connection_id"]: LAST + closed_after_ms * MS})
    rows = gold(STOPS, lanes)["fetch_fairness"]
    assert sum(row["bytes"] for row in rows if row["mode"] == "closed") == read


@pytest.mark.parametrize(("closed", "read"), [(0, ALL), (1, ALL // 2)])
def test_a_reader_has_not_left_if_it_opens_another_connection(closed: int, read: int) -> None:
    """It opens one for the second half of its fetches, and ends in the middle of them."""
    moved = [row | {"connection_id": READER["connection_id"] + (row["exchange_no"] >= 2)} for row in STOPS_FETCHES]
    lanes = replace(lanes_of(AS_CAPTURED), captured_until={"1": LAST + 2 * MS})
    lanes = replace(lanes, closed_at={READER["connection_id"] + closed: LAST + 1 * MS})
    rows = gold(batch_rows() + moved, lanes)["fetch_fairness"]
    assert sum(row["bytes"] for row in rows if row["mode"] == "closed") == read


def test_a_reader_that_leaves_after_it_has_read_everything_reads_as_much_in_a_slower_lane() -> None:
    until = {"1": BEGIN + 10_000 * MS}
    assert set(closed_bytes(EVENTS, AS_CAPTURED, SIZE, captured_until=until).values()) == {ALL}


def test_a_reader_has_not_left_before_it_is_silent_for_longer_than_it_ever_was() -> None:
    """A consumer may work for seconds between two calls of poll(): this one did before its fifth fetch."""
    times = ("position", "request_time", "response_time")
    slow = [
        row | {name: row[name] + 3000 * MS for name in times} if row.get("exchange_no", 0) >= 4 else row
        for row in STOPS
    ]  # fmt: skip
    ends = LAST + 3000 * MS
    assert closed_bytes(slow, AS_CAPTURED, captured_until={"1": ends + 3000 * MS}) == {("lane 0", "1"): ALL}
    left = closed_bytes(slow, AS_CAPTURED, captured_until={"1": ends + 4000 * MS})
    assert left == {("lane 0", "1"): pytest.approx(ALL // 2, abs=2 * SIZE)}


def test_a_reader_that_a_quota_holds_back_has_not_left() -> None:
    held = [
        row | {"throttled": True, "returned_bytes": 0} if row.get("exchange_no") == BATCHES - 1 else row
        for row in STOPS
    ]
    assert closed_bytes(held, AS_CAPTURED, captured_until=GOES_ON) == {("lane 0", "1"): ALL}


def test_a_reader_leaves_all_brokers_that_it_stops_asking_at_the_same_time() -> None:
    """Its last two fetches read all that the second broker has. In the slower lane, two fetches read half of that."""
    there = {"connection_id": READER["connection_id"] + 1, "broker": "2", "topic": "u", "topic_key": "u"}
    later = 10 * MS * (BATCHES - 2)
    other = [
        row | there | {name: row[name] + later for name in ("position", "request_time", "response_time")}
        for row in catch_up(batches=1)
    ]
    events = [*STOPS, *(row | {"topic": "u", "topic_key": "u"} for row in batch_rows(batches=1)), *other]
    ends = {"1": LAST + 2000 * MS, "2": LAST + 2000 * MS}
    both = closed_bytes(events, AS_CAPTURED, SIZE, captured_until=ends)
    alone = closed_bytes(events, AS_CAPTURED, SIZE, captured_until={"2": ends["2"]})
    assert alone["lane 1", "2"] == PARTITIONS * SIZE
    assert both["lane 1", "2"] == PARTITIONS * SIZE // 2


@pytest.mark.parametrize(("broker", "largest"), [("1", SIZE), ("2", 2 * SIZE)])
def test_a_broker_with_a_limit_of_its_own_answers_under_it_in_both_loops(broker: str, largest: int) -> None:
    """Only broker 1 answers. Under the limit for all brokers, its responses have two batches."""
    rows = gold(EVENTS, replace(lanes_of(AS_CAPTURED), own_max_bytes={broker: np.array([SIZE])}))["fetch_consumers"]
    assert [row["response_bytes_max"] for row in rows] == [largest] * 2


def test_the_catch_up_at_two_brokers_lasts_from_the_first_fetch_at_one_to_the_last_at_the_other() -> None:
    for broker in ("1", "2"):
        rows = gold(batch_rows() + catch_up(reconnects=8, broker=broker), lanes_of(AS_CAPTURED, SIZE, 10 * SIZE))
        took = [row["catch_up_ms"] for row in rows["fetch_consumers"] if row["mode"] == "closed"]
        assert took == pytest.approx([152, 312, 72], abs=30), broker


def test_a_backlog_that_the_reader_gave_up_has_no_catch_up() -> None:
    """Only the first two fetches ask for partition 3, in the capture and in the lanes, as if its topic was deleted."""
    left = [row for row in batch_rows() + catch_up() if row["partition"] < 3 or row.get("exchange_no", 0) < 2]
    rows = gold(left, lanes_of(AS_CAPTURED, 100 * SIZE))
    fairness = [row for row in rows["fetch_fairness"] if row["mode"] == "closed"]
    assert {row["partition"] for row in fairness if row["is_given_up"]} == {3}
    assert {row["partition"] for row in fairness if row["catch_up_ms"] is None} == {3}
    closed = [row for row in rows["fetch_consumers"] if row["mode"] == "closed"]
    slowest = max(row["catch_up_ms"] or 0 for row in fairness if row["scenario"] == "lane 0")
    assert [row["given_up"] for row in closed] == [1, 1]
    assert closed[0]["catch_up_ms"] == slowest > 0


def test_a_lane_that_does_not_read_a_backlog_that_the_captured_lane_read_has_no_catch_up() -> None:
    """A response of the second lane holds half as much, so it has read half when the reader leaves partition 3."""
    left = [row for row in batch_rows() + catch_up() if row["partition"] < 3 or row.get("exchange_no", 0) < 16]
    events = [*left, *([row for row in catch_up(batches=16) if row["partition"] < 3 and row["exchange_no"] >= 16])]
    closed = [row for row in gold(events, lanes_of(AS_CAPTURED, SIZE))["fetch_consumers"] if row["mode"] == "closed"]
    assert [row["given_up"] for row in closed] == [0, 0]
    assert closed[0]["catch_up_ms"] is not None
    assert closed[1]["catch_up_ms"] is None


def test_a_partition_that_moves_to_another_broker_counts_once_for_its_reader() -> None:
    """KIP-74's bound is min(brokers x fetch.max.bytes, partitions x max.partition.fetch.bytes)."""
    rows = gold(batch_rows() + catch_up(reconnects=8, broker="2"), lanes_of(100 * SIZE))["fetch_consumers"]
    assert {(row["partitions"], row["brokers"], row["memory_bound_bytes"]) for row in rows} == {
        (PARTITIONS, 2, PARTITIONS * SIZE)
    }


@pytest.mark.parametrize("broker", ["1", "2"])
@pytest.mark.parametrize(
    "other",
    [{"max_bytes": 3 * SIZE}, {"fetch_offset": 0}, {"request_time": 10**9 * MS, "response_time": 10**9 * MS}],
    ids=["other limits", "starts over", "comes long after"],
)
def test_a_connection_that_another_process_may_have_opened_begins_as_captured(
    other: dict[str, int], broker: str
) -> None:
    """The lane is behind the capture, so it reads some records on both connections."""
    moved = {name: value + (BEGIN if "time" in name else 0) for name, value in other.items()}
    events = batch_rows() + [
        row | (moved if row["connection_id"] != READER["connection_id"] else {})
        for row in catch_up(reconnects=8, broker=broker)
    ]
    assert sum(closed_bytes(events, SIZE).values()) > ALL


def test_a_response_that_is_empty_because_of_a_quota_makes_the_client_wait_in_every_lane() -> None:
    """ClientQuotaManager.throttle: the records of fetch 3 come when the client asks again, 2 s later."""
    later = 2_000 * MS
    events = [row if row.get("exchange_no", 0) < 3 else behind(row, later) for row in EVENTS]
    assert_waits_in_every_lane([*events, *emptied_by_a_quota(EVENTS, 3)])


def test_a_client_that_asks_again_at_once_waits_until_the_broker_reads_from_the_muted_connection() -> None:
    """librdkafka does not wait for throttle_time_ms (KIP-219): its next request is answered 2 s later."""
    held = emptied_by_a_quota(EVENTS, 3)
    at_once = {"request_time": max(row["response_time"] for row in held) + 1}
    events = [row if row.get("exchange_no", 0) < 3 else behind(row, 2_000 * MS) for row in EVENTS]
    assert_waits_in_every_lane([*(row | at_once if row.get("exchange_no") == 4 else row for row in events), *held])


def test_a_lane_waits_for_a_quota_that_nobody_stated_when_it_has_got_as_much_as_the_captured_reader() -> None:
    """The captured reader gets 2 batches every 10 ms, 12 until a quota stops it for 2 s. The lane gets half of that."""
    events = [row if row.get("exchange_no", 0) < 6 else behind(row, 2_000 * MS) for row in EVENTS]
    rows = gold([*events, *emptied_by_a_quota(EVENTS, 6)], lanes_of(AS_CAPTURED, SIZE))["fetch_consumers"]
    took = {row["scenario"]: row["catch_up_ms"] for row in rows if row["mode"] == "closed"}
    left = BATCHES * PARTITIONS - 12
    assert 2_060 < took["lane 1"] < 2_060 + 10 * left


def emptied_by_a_quota(rows: Sequence[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """A fetch's rows, with a response that a quota has emptied for 2 s."""
    changed = {"throttled": True, "throttle_ms": 2_000, "returned_bytes": 0, "response_record_bytes": 0}
    return [row | changed for row in rows if row.get("exchange_no") == number]


def assert_waits_in_every_lane(rows: list[dict[str, Any]]) -> None:
    assert all(checked == agreed for checked, agreed, _, _ in closed_fidelity(rows).values())
    fairness = gold(rows, lanes_of(AS_CAPTURED, 100 * SIZE))["fetch_fairness"]
    took = [row["catch_up_ms"] for row in fairness if row["mode"] == "closed"]
    assert len(took) == 2 * PARTITIONS
    assert min(took) >= 2000


def behind(row: dict[str, Any], later: int, places: int = 1) -> dict[str, Any]:
    """A fetch's row, with a later exchange's number and times that are `later` us later."""
    times = {name: row[name] + later for name in TIMES}
    return row | times | {"exchange_no": row["exchange_no"] + places}


def test_a_partition_that_the_first_fetch_leaves_out_is_not_asked_for_in_it() -> None:
    events = [row for row in EVENTS if (row.get("exchange_no"), row["partition"]) != (0, 3)]
    assert all(checked == agreed for checked, agreed, _, _ in closed_fidelity(events).values())
    rows = gold(events, lanes_of(AS_CAPTURED))["fetch_fairness"]
    assert [row["requests"] for row in rows if row["mode"] == "closed"] == [16, 16, 16, 15]


@pytest.mark.parametrize("most", [1, 7])
def test_batches_of_any_length_give_the_same_rows(most: int) -> None:
    lanes = lanes_of(AS_CAPTURED, SIZE, 10 * SIZE)
    assert gold(EVENTS, lanes, most) == gold(EVENTS, lanes)


@pytest.mark.parametrize("most", [1, 7])
def test_fetches_that_are_left_out_are_counted_and_are_the_same_however_rows_are_split(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = max(row.get("exchange_no", 0) for row in EVENTS) + 1
    monkeypatch.setattr(events, "FETCH_CAP", 10)
    rows = gold(EVENTS, lanes_of(AS_CAPTURED), most)
    assert {row["mode"]: row["left_out"] for row in rows["fetch_consumers"]} == {"closed": captured - 10, "open": 0}
    assert rows == gold(EVENTS, lanes_of(AS_CAPTURED))


@pytest.mark.parametrize("most", [1, 7, 10_000])
def test_a_connection_with_more_batches_than_are_kept_has_no_known_log_whichever_comes_first(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logs come first, in whichever order a shuffle brings them."""
    monkeypatch.setattr(nodes, "BATCH_CAP", BATCHES * (PARTITIONS - 1))
    monkeypatch.setattr(events, "BATCH_CAP", BATCHES * (PARTITIONS - 1))
    rows = reads_of(EVENTS)
    logs = int((rows[READS.exchange_no].to_numpy() < 0).sum())
    backwards = rows.take([*reversed(range(logs)), *range(logs, rows.num_rows)])
    forth, back = (gold_of(ordered, lanes_of(AS_CAPTURED, SIZE), most) for ordered in (rows, backwards))
    assert logs == PARTITIONS
    assert forth == back
    told = [row for row in forth["fidelity"] if row["metric"] == "closed_loop_bytes"]
    assert [row["reasons"] for row in told] == [[("log_content_unknown", 32)]]
    assert [row["checked"] for row in told] == [0]


def test_the_tables_have_the_outcome_of_each_lane() -> None:
    rows = gold(EVENTS, lanes_of(AS_CAPTURED, SIZE, 10 * SIZE))
    closed = {row["scenario"]: row for row in rows["fetch_consumers"] if row["mode"] == "closed"}
    # There is a fetch every 10 ms, answered after 2 ms. A response has 2, 1 or 4 of the 32 batches.
    assert [row["catch_up_ms"] for row in closed.values()] == [152.0, 312.0, 72.0]
    assert all(row["read_all"] for row in closed.values())
    assert [row["requests"] for row in closed.values()] == [16, 32, 9]  # the ninth waits until the end
    assert [row["bytes"] for row in closed.values()] == [PARTITIONS * BATCHES * SIZE] * 3
    fairness = [row for row in rows["fetch_fairness"] if row["mode"] == "closed" and row["scenario"] == "lane 1"]
    assert [row["longest_wait_requests"] for row in fairness] == [3, 3, 3, 4]
    assert {row["backlog_bytes"] for row in fairness} == {BATCHES * SIZE}
    assert [row["bytes_max"] for row in rows["fetch_memory"]] == [200, 100, 400]
    assert [row["memory_bound_bytes"] for row in rows["fetch_memory"]] == [200, 100, 400]
    timeline = rows["fetch_timeline"]
    for lane in closed:
        mine = [row for row in timeline if row["scenario"] == lane]
        assert sum(row["bytes"] for row in mine) == PARTITIONS * BATCHES * SIZE
        lags = [
            sum(row["lag_bytes"] for row in mine if row["bucket"] == b) for b in sorted({r["bucket"] for r in mine})
        ]
        assert lags == sorted(lags, reverse=True)
        assert lags[-1] == 0


def differing(where: Callable[[dict[str, Any]], bool], **differs: Any) -> Rows:
    return [row | differs if where(row) else row for row in EVENTS]


def lacking_a_batch() -> Rows:
    """Each batch is of a response of its own, so that none shows that the batch at 20 is gone."""
    kept = [row for row in EVENTS if (row["kind"], row["position"]) != (LogEvent.BATCH, 20)]
    return [row | {"exchange_no": row["position"]} if row["kind"] == LogEvent.BATCH else row for row in kept]


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (differing(lambda row: row.get("exchange_no") == 3, throttled=True), "throttled"),
        (differing(lambda row: row.get("exchange_no") == 3, refused=True), "response_error"),
        (differing(lambda row: row.get("exchange_no") == 3, redirected=True), "partition_refused"),
        (differing(lambda row: row.get("exchange_no") == 3, redirected=True, sent_to_replica=True), "sent_to_replica"),
        (differing(lambda row: row.get("exchange_no") == 0, readable_known=False), "session_unknown"),
        (lacking_a_batch(), "log_content_unknown"),
        (differing(lambda row: (row.get("exchange_no"), row["partition"]) == (5, 0), fetch_offset=-7),
         "position_moved"),
    ],
)  # fmt: skip
def test_what_the_capture_does_not_show_is_unknown_and_named(events: Rows, reason: str) -> None:
    found = closed_fidelity(events)
    assert found
    for checked, agreed, unknown, reasons in found.values():
        assert (checked, agreed) == (0, 0)
        assert reasons == [(reason, unknown)]


def reasons_of_a_lossy_connection(events: Rows) -> list[tuple[str, int]]:
    """The reasons of the closed loop if the capture lacks bytes of the reader's connection."""
    lanes = replace(lanes_of(AS_CAPTURED), lossy=frozenset({READER["connection_id"]}))
    closed = [row for row in gold(events, lanes)["fidelity"] if row["metric"].startswith("closed_loop_")]
    return [reason for row in closed for reason in row["reasons"]]


def test_where_the_capture_lost_fetches_with_records_the_closed_loop_is_unknown() -> None:
    """If no byte of the connection is missing, the same jump over records is the reader's own seek."""
    rest = [row for row in EVENTS if row.get("exchange_no") not in range(2, 6)]
    assert {word for word, _ in reasons_of_a_lossy_connection(rest)} == {"fetches_lost"}
    assert "fetches_lost" not in {word for _, _, _, of in closed_fidelity(rest).values() for word, _ in of}


def test_records_of_lost_fetches_may_be_in_no_log_that_the_capture_shows() -> None:
    """The reader goes on at offset 500, behind a fetch that got nothing and batches that nobody else read or sent."""
    later = [read_row(fetch, p, p, 50, 0) for fetch in (40, 41) for p in range(PARTITIONS)]
    ahead = [
        row | {"response_bound": 500, "bound_low": 500, "bound_high": 500, "opens_session": False} for row in later
    ]
    waited = [read_row(30, p, p, BATCHES, 0) | {"opens_session": False} for p in range(PARTITIONS)]
    assert {word for word, _ in reasons_of_a_lossy_connection([*EVENTS, *waited, *ahead])} == {"fetches_lost"}


def test_a_silence_of_a_lossy_connection_may_be_lost_fetches() -> None:
    events = [behind(row, 2_000 * MS) if row.get("exchange_no", 0) >= 8 else row for row in EVENTS]
    assert {word for word, _ in reasons_of_a_lossy_connection(events)} == {"fetches_lost"}
    assert {word for _, _, _, of in closed_fidelity(events).values() for word, _ in of} == set()


def test_lost_bytes_that_no_record_was_in_do_not_matter() -> None:
    assert reasons_of_a_lossy_connection(EVENTS) == []


LARGER = differing(lambda row: (row["kind"], row["position"]) == (LogEvent.BATCH, 20), size_bytes=3 * SIZE)
IN_ONE_RESPONSE = {"connection_id": 77, "exchange_no": 1}


@pytest.mark.parametrize(
    "compacted",
    [
        [row | {"is_sparse": True} if row["kind"] == LogEvent.BATCH else row for row in LARGER],
        [
            *LARGER,
            *(row | IN_ONE_RESPONSE for row in LARGER if row["kind"] == LogEvent.BATCH and row["position"] in (0, 30)),
        ],
    ],
    ids=["records are gone", "batches are gone"],
)
def test_where_a_log_was_compacted_a_difference_is_unknown_and_an_agreement_counts(compacted: Rows) -> None:
    before, told = closed_fidelity(LARGER), closed_fidelity(compacted)
    assert any(checked > agreed for checked, agreed, _, _ in before.values())
    for metric, (checked, agreed, unknown, reasons) in told.items():
        assert checked == agreed >= before[metric][1]
        assert reasons == ([("compacted", unknown)] if unknown else [])


def test_where_reads_may_be_remote_a_difference_is_unknown_and_an_agreement_counts() -> None:
    remote = [row | {"may_be_remote": True} if row["kind"] == LogEvent.READ else row for row in LARGER]
    before, told = closed_fidelity(LARGER), closed_fidelity(remote)
    assert any(unknown for _, _, unknown, _ in told.values())
    for metric, (checked, agreed, unknown, reasons) in told.items():
        assert checked == agreed == before[metric][1]
        assert reasons == ([("remote_read", unknown)] if unknown else [])


def without(fetches: range, partition: int) -> Rows:
    return [row for row in EVENTS if not (row.get("exchange_no") in fetches and row["partition"] == partition)]


def restarts(events: Rows) -> tuple[int, int, int, list[tuple[str, int]]]:
    return closed_fidelity(events)["restarts"]


def test_the_closed_loop_follows_a_reader_that_seeks() -> None:
    """Fetch 5 reads partition 0 from its beginning again, and the next one goes on where the reader was."""
    again = differing(lambda row: (row.get("exchange_no"), row["partition"]) == (5, 0), fetch_offset=0)
    assert restarts(again) == (2, 2, 0, [])


def test_the_closed_loop_follows_a_partition_that_is_left_out_and_comes_back() -> None:
    away = without(range(3, 6), 3)
    assert restarts(away)[0] == 1
    fairness = [row for row in gold(away, lanes_of(AS_CAPTURED))["fetch_fairness"] if row["mode"] == "closed"]
    assert [row["requests"] for row in fairness] == [16, 16, 16, 13]


def test_a_partition_that_is_not_asked_for_any_more_is_given_up() -> None:
    rows = gold(without(range(10, 16), 3), lanes_of(AS_CAPTURED, SIZE))["fetch_fairness"]
    mine = [row for row in rows if row["mode"] == "closed" and row["partition"] == 3]
    assert [row["requests"] for row in mine] == [10, 10]
    assert mine[1]["bytes"] < mine[0]["bytes"] < BATCHES * SIZE


def test_a_silence_before_a_change_is_kept_in_every_lane_and_does_not_count_as_pace() -> None:
    """The reader stands still for two seconds before fetch 8, which opens a new session."""
    later = [
        row | {"opens_session": row["opens_session"] or row["exchange_no"] == 8}
        | {name: row[name] + 2_000_000 * (row["exchange_no"] >= 8) for name in ("request_time", "response_time")}
        if row["kind"] == LogEvent.READ else row
        for row in EVENTS
    ]  # fmt: skip
    found = closed_fidelity(later)
    assert found["bytes"] == (32, 32, 0, [])
    closed = [row for row in gold(later, lanes_of(AS_CAPTURED, SIZE))["fetch_consumers"] if row["mode"] == "closed"]
    assert [row["catch_up_ms"] for row in closed] == [2152.0, 2312.0]


def test_a_read_that_ends_below_its_limits_shows_the_end_of_a_segment() -> None:
    """Each read of partition 0 gets one batch, which is the limit or half of it. A lane with a larger limit reads more
    only in the first case.
    """
    lanes = lanes_of(10 * SIZE, 10 * SIZE)
    lanes.consumer["partition_max_bytes"] = [AS_CAPTURED, 4 * SIZE]
    for limit, took in ((SIZE, [72.0, 12.0]), (2 * SIZE, [72.0, 72.0])):
        read = [
            read_row(fetch, 0, 0, fetch, SIZE) | {"max_bytes": 10 * SIZE, "partition_max_bytes": limit}
            for fetch in range(BATCHES)
        ]
        rows = gold([row for row in batch_rows() if row["partition"] == 0] + read, lanes)["fetch_fairness"]
        assert [row["catch_up_ms"] for row in rows if row["mode"] == "closed"] == took


@pytest.mark.parametrize(("broker", "processes"), [("2", 1), ("1", 2)])
def test_a_process_has_one_connection_to_each_broker_and_works_on_the_records_of_all(
    broker: str, processes: int
) -> None:
    """Two connections with one name and address belong to one process if they are to two brokers, otherwise to two."""
    other = {"topic": "u", "topic_key": "u", "connection_id": 6, "broker": broker}
    events = EVENTS + [
        row | (other if row["kind"] == LogEvent.READ else {"topic": "u", "topic_key": "u"}) for row in EVENTS
    ]
    assert all(checked == agreed for checked, agreed, _, _ in closed_fidelity(events).values())
    lanes = lanes_of(AS_CAPTURED, AS_CAPTURED)
    lanes.consumer_client["us_per_record"] = [AS_CAPTURED, 1 * MS]
    closed = [row for row in gold(events, lanes)["fetch_consumers"] if row["mode"] == "closed"]
    # 640 records at 1 ms, by one application or by two.
    assert closed[1]["catch_up_ms"] == pytest.approx(640 / processes, rel=0.25)


@pytest.mark.parametrize("most", [7, 10_000])
def test_two_consumers_of_one_name_each_ask_in_an_order_of_their_own(most: int) -> None:
    """The second consumer assigns itself the same partitions in the opposite order."""
    second = [row | {"connection_id": 6, "partition": PARTITIONS - 1 - row["partition"]} for row in catch_up()]
    fidelity = gold([*EVENTS, *second], lanes_of(AS_CAPTURED), most)["fidelity"]
    (order,) = [row for row in fidelity if row["metric"] == "closed_loop_order"]
    assert (order["checked"], order["agreed"]) == (2 * PARTITIONS * BATCHES, 2 * PARTITIONS * BATCHES)


def test_another_order_than_the_clients_shows_in_fidelity() -> None:
    """The capture of a client that always names its partitions in the same order, and says it has a session."""
    assert closed_fidelity(batch_rows() + catch_up(rotates=False))["order"] == (32, 20, 0, [("other_partition", 12)])


def test_an_additional_turn_makes_one_turn_differ_and_not_all_later_ones() -> None:
    captured, given = [0, 1, 2] * 5, [0, 1, 2, 1, 2] + [0, 1, 2] * 4
    same = follows_same_partition(np.array(captured), np.array(given), np.zeros(3, np.int64))
    assert np.flatnonzero(~same).tolist() == [4]  # the second part of 1 follows 2 in place of 0


ONE_NODE = np.zeros(2, np.int64)


def test_a_turn_that_does_not_come_counts_as_different() -> None:
    assert follows_same_partition(np.array([0, 1, 0, 1]), np.array([0, 1]), ONE_NODE).tolist() == [
        True,
        True,
        False,
        False,
    ]
    assert follows_same_partition(np.array([0, 1]), np.zeros(0, np.int64), ONE_NODE).tolist() == [False, False]
    assert not len(follows_same_partition(np.zeros(0, np.int64), np.array([0]), ONE_NODE))


def test_the_fitted_pace_keeps_the_total_time() -> None:
    amounts, times = np.array([0, 10, 0, 30, 20]), np.array([5, 30, 5, 70, 40])
    base, each = fit_line(amounts, times, 0.0)
    assert (base, base * len(times) + each * amounts.sum()) == (5.0, times.sum())
    assert fit_line(np.array([10, 20]), np.array([7, 5]), 0.0) == (5.0, 2 / 30)
    assert fit_line(np.array([10, 20]), np.array([7, 5]), 0.5) == (5.5, 1 / 30)
    assert fit_line(np.zeros(0, np.int64), np.zeros(0, np.int64), 0.0) == (0.0, 0.0)


def fetches(*nodes: tuple[list[int], list[int], list[int]]) -> PacedFetches:
    """Fetches from the requests, responses and records of each node. Records have ten bytes and were always there."""
    request, response, records = (np.concatenate(columns).astype(np.int64) for columns in zip(*nodes, strict=True))
    none = np.zeros(len(request), np.int64)
    return PacedFetches(
        node=np.repeat(np.arange(len(nodes)), [len(of_node[0]) for of_node in nodes]),
        request=request,
        response=response,
        records=records,
        size=records * 10,
        ready_at=none,
        is_stopped=none.astype(np.bool_),
        max_wait_us=none + 500 * MS,
    )


def test_a_client_is_as_slow_as_in_the_capture_after_as_many_records() -> None:
    """10 records take 40 us and the next 30 take 10 us, in whichever responses they come. The response itself takes the
    time a quarter of the way from the shortest time to the median.
    """
    pace = pace_of(observed_pace(fetches(([0, 50, 70], [10, 60, 80], [10, 30, 0])), 1, is_one_process=True))
    assert pace.gap_us.tolist() == [13.75]
    taken = [time_until(pace.taking.points, records) for records in (0, 5, 10, 40, 80)]
    assert taken == [0.0, 11.25, 22.5, 22.5, 45.0]


def test_the_wait_for_another_brokers_records_is_not_a_responses_own_time() -> None:
    """Both brokers answer at 10 us. The second is asked again after the work on the records of the first and on its
    own. Its own take 20 us. How long a response without records takes is known only from the first broker.
    """
    both = fetches(([0, 30], [10, 40], [10, 0]), ([0, 50], [10, 60], [10, 0]))
    together = pace_of(observed_pace(both, 2, is_one_process=True))
    assert together.gap_us.tolist() == [20.0, 20.0]
    assert time_until(together.taking.points, 20) == 20.0
    assert pace_of(observed_pace(both, 2, is_one_process=False)).gap_us.tolist() == [20.0, 40.0]


def test_the_wait_of_a_fetch_for_records_is_not_part_of_its_answers_time() -> None:
    """The broker had enough for the second fetch at 150, and never for the third, which it answered after 500 ms."""
    waited = fetches(([0, 100, 1000], [30, 180, 1000 + 507 * MS], [10, 10, 10]))._replace(
        ready_at=np.array([0, 150, NEVER])
    )
    pace = pace_of(observed_pace(waited, 1, is_one_process=True))
    assert (pace.answer_us.tolist(), pace.late_us.tolist()) == ([30.0], [7.0 * MS])


def test_if_every_fetch_waited_answers_take_as_long_as_those_after_the_longest_wait() -> None:
    waited = fetches(([0], [502 * MS], [10]))._replace(ready_at=np.array([NEVER]))
    assert pace_of(observed_pace(waited, 1, is_one_process=True)).answer_us.tolist() == [2.0 * MS]


def waiting(took: list[int], gaps: list[int], records: list[int]) -> PacedFetches:
    """Fetches of one node for which the broker had enough 5 us before their responses."""
    request = np.cumsum(np.array([0, *(a + b for a, b in zip(took[:-1], gaps, strict=True))], np.int64))
    response = request + np.array(took, np.int64)
    return fetches((request.tolist(), response.tolist(), records))._replace(ready_at=response - 5)


def test_a_response_without_records_may_take_a_waiting_reader_as_long_as_one_with_records() -> None:
    """It takes 100 us for 10 records and 300 us for 30. Without records it takes half way from the shortest time to the
    mean.
    """
    paced = waiting([900, 900, 900], [100, 300], [10, 30, 10])
    pace = pace_of(observed_pace(paced, 1, is_one_process=True))
    assert (pace.gap_us.tolist(), time_until(pace.taking.points, 40)) == ([150.0], 100.0)
    assert pace_of(observed_pace(paced, 1, is_one_process=False)).gap_us.tolist() == [150.0]


def test_how_much_of_a_waiting_readers_times_does_not_depend_on_records_is_drawn() -> None:
    observed = observed_pace(waiting([900, 900, 900], [100, 300], [10, 30, 10]), 1, is_one_process=True)
    drawn = [
        pace_of_samples(observed, Sample(np.arange(2), share), Sample(np.arange(0), share)) for share in (0.0, 0.5)
    ]
    assert [pace.gap_us.tolist() for pace in drawn] == [[100.0], [200.0]]


def test_no_answer_to_a_waiting_reader_takes_longer_than_its_quick_fetches_with_their_waits() -> None:
    """The last fetch waits in vain and is answered 7 ms after the longest wait."""
    paced = waiting([900, 800, 900, 900, 507 * MS], [100, 100, 100, 100], [10, 10, 10, 10, 0])
    in_vain = np.array([4])
    paced.ready_at[in_vain] = NEVER
    pace = pace_of(observed_pace(paced, 1, is_one_process=True))
    assert (pace.answer_us.tolist(), pace.late_us.tolist()) == ([875.0], [7.0 * MS])


def test_a_pause_in_the_only_answer_that_did_not_wait_is_no_time_of_a_waiting_readers_bytes() -> None:
    """Twenty responses of 100 bytes come within 900 us, waits included. The next was found at once and took 50 ms: at
    that pace the reader would fall behind a log of which it gets 100 bytes a ms. The last fetch waits in vain.
    """
    paced = waiting([900] * 20 + [50 * MS, 507 * MS], [100] * 21, [10] * 21 + [0])
    paced.ready_at[20:] = 0, NEVER
    pace = pace_of(observed_pace(paced, 1, is_one_process=True))
    assert pace.answer_us.tolist() == [900.0]
    assert [time_until(pace.sending.points, size) for size in (0, 100, 1000)] == [0.0, 900.0, 9000.0]


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_whatever_a_capture_says_the_closed_loop_ends_and_its_lanes_add_up(chance: random.Random) -> None:
    """Offsets, sizes and times are such as a broken or hostile peer could send."""
    events = [{**row} for row in EVENTS]
    wild = [-1, 0, 1, 7, 10**6, 2**31 - 1, -(2**31)]
    for row in chance.sample(events, 40):
        names = ["position", "last_offset", "size_bytes"] if row["kind"] == LogEvent.BATCH else LOOSE
        row[chance.choice(names)] = chance.choice(wild)
    rows = gold(events, lanes_of(AS_CAPTURED, SIZE))
    closed = [row for row in rows["fetch_consumers"] if row["mode"] == "closed"]
    for row in closed:
        mine = [
            part for part in rows["fetch_fairness"] if part["mode"] == "closed" and part["scenario"] == row["scenario"]
        ]
        assert sum(part["bytes"] for part in mine) == row["bytes"] >= row["cut_tail_bytes"] >= 0
