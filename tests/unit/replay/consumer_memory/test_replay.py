"""Rows of events become rows of the gold tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_memory import (
    BROKER_MEMORY,
    BROKER_MEMORY_RANGES,
    CONSUMER_MEMORY,
    CONSUMER_MEMORY_EXCEEDANCE,
    CONSUMER_MEMORY_RANGES,
    CONSUMER_MEMORY_TIMELINE,
    LIBRDKAFKA_QUEUE,
    PRODUCER_MEMORY,
)
from schemas.tables.table import Table
from tests.packed import unpack
from tests.unit.replay.consumer_memory.events import PRODUCE, Row, batches, fetch, row
from tests.unit.replay.consumer_memory.traces import pools_of
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.replay.consumer_memory import units
from udfs.replay.consumer_memory.given_up import LEAVE_GROUP, SYNC_GROUP
from udfs.replay.consumer_memory.replay import replay_memory
from udfs.replay.consumer_memory.settings import (
    BUFFER_SETTINGS,
    FETCH_LIMITS,
    IN_FLIGHT_ESTIMATE,
    QUEUE_SETTINGS,
    UNBOUNDED,
    MemoryLanes,
)
from udfs.replay.consumer_memory.takeovers import JOIN_GROUP
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.replay.shared.replications import FEWEST, REPLICATIONS

LANES = MemoryLanes(
    names=("captured", "small"),
    consumer=pools_of(UNBOUNDED, 150),
    broker=pools_of(UNBOUNDED, 15),
    producer=new_records(BUFFER_SETTINGS, 2, buffer_memory=[1 << 20, 30], batch_size=10, max_block_us=1000, threads=1),
    queue=new_records(
        QUEUE_SETTINGS, 2, max_kbytes=[AS_CAPTURED, 1], min_messages=100_000, backoff_us=1000, us_per_record=AS_CAPTURED
    ),
    fetch_limits=new_records(
        FETCH_LIMITS,
        1,
        max_bytes=AS_CAPTURED,
        partition_max_bytes=AS_CAPTURED,
        broker_max_bytes=1 << 30,
        consumers=1,
        speed=1.0,
    ),
    fetch_number=np.zeros(2, np.int64),
    default_kbytes=64,
    older_kbytes=((1005, 1024),),
)
# Two brokers answer with 100 and 90 bytes at the same time; both responses are drained 100 ms later.
TWO_BROKERS = [
    *fetch(0, 10_000, 100, [(1, 0, 3)], connection=1),
    *fetch(1, 20_000, 90, [(2, 0, 2)], connection=2),
    *fetch(110_000, 120_000, 10, [(1, 3, 0)], connection=1),
    *fetch(120_001, 130_000, 10, [(2, 2, 0)], connection=2),
]


def broker_row(time: int, connection: int) -> Row:
    key = {"time": time, "came": time, "connection_id": connection, "exchange_no": time}
    return row("broker", "1", **key, held=50, api_key=PRODUCE, size=10)


EVENTS = [
    *(broker_row(time, connection) for time, connection in ((0, 1), (10, 2), (20, 3), (30, 4))),
    *TWO_BROKERS,
    row("consumer", "no fetches", time=5, came=6, size=10, api_key=18),
    *(
        row("producer", "p", exchange_no=time, time=time, started=time, came=time + 100, size=15, kind=2)
        for time in (0, 10, 20)
    ),
]


def tables(events: list[Row], cut: int, lanes: MemoryLanes = LANES) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for packed in replay_memory(batches(events, cut), lanes, "run"):
        for name, rows in zip(packed["table"].to_pylist(), packed["rows"], strict=True):
            one = pa.RecordBatch.from_arrays([pa.array([rows.as_py()], pa.binary())], names=["rows"])
            found.setdefault(str(name), []).extend(row for batch in unpack([one]) for row in batch.to_pylist())
    return found


def rows_of(table: Table) -> list[dict[str, Any]]:
    return tables(EVENTS, 10_000)[table.name]


@pytest.mark.parametrize("cut", [1, 7])
def test_the_tables_are_the_same_however_rows_are_split_into_batches(cut: int) -> None:
    assert tables(EVENTS, cut) == tables(EVENTS, 10_000)


@pytest.mark.parametrize("cut", [1, 7])
def test_who_gets_memory_first_does_not_depend_on_how_rows_are_split_into_batches(cut: int) -> None:
    """Connections 9, 5 and 2 come in this order and wait for connection 7. They race in the order of their ids."""
    held = [fetch(t, 10 + t, 100 + 10 * t, [(c, 0, 1)], connection=c) for t, c in enumerate((7, 9, 5, 2))]
    again = [fetch(900 + c, 950 + c, 10, [(c, 1, 0)], connection=c) for c in (2, 5, 7, 9)]
    rows = [row for part in (*held, *again) for row in part]
    lanes = replace(LANES, consumer=pools_of(UNBOUNDED, 140, is_strict=True))
    found = tables(rows, 10_000, lanes)
    assert found[CONSUMER_MEMORY.name][1][CONSUMER_MEMORY.waits] >= 3
    assert tables(rows, cut, lanes) == found


def consumer_of_group(unit: str, later: int) -> list[Row]:
    """A consumer that loses a partition to another member, gives one up and leaves its group. All such consumers have
    the same numbers of partitions and connections.
    """
    joins = row("consumer", unit, time=2, came=4, connection_id=8, api_key=JOIN_GROUP, size=10)
    lost = row("consumer", unit, time=60, connection_id=9, kind=4, partition_key=1, started=3, came=5)
    syncs, leaves = (
        row("consumer", unit, time=time, came=time + 5, connection_id=8, api_key=api_key, size=10)
        for time, api_key in ((65, SYNC_GROUP), (900_000, LEAVE_GROUP))
    )
    fetches = [
        fetch(6, 10, 100 + later, [(1, 0, 3), (2, 0, 2)], unit=unit),
        fetch(50, 55, 80, [(2, 2, 1), (3, 0, 4)], unit=unit),
        fetch(70 + later, 90 + later, 30, [(3, 4, 1)], unit=unit),
        fetch(400_000, 400_010 + later, 20, [(3, 5, 0), (4, 0, 1)], connection=1, unit=unit),
    ]
    rows = [joins, lost, syncs, leaves, *(each for part in fetches for each in part)]
    return sorted(rows, key=lambda of: (of["time"], of["connection_id"], of["kind"]))


def producer_row(unit: str, time: int, **columns: Any) -> Row:
    at = {"exchange_no": time, "time": time, "started": time, "came": time + 100}
    return row("producer", unit, **at, size=15, kind=2, **columns)


MANY = [
    *(
        broker_row(time, connection) | {"unit": unit}
        for unit in "12"
        for time, connection in ((0, 1), (10, 2), (20, 1))
    ),
    *(each for unit, later in (("a", 0), ("b", 11), ("c", 3)) for each in consumer_of_group(unit, later)),
    *(producer_row(unit, time, is_java=unit != "q") for unit in "pqr" for time in (0, 10, 20 + ord(unit))),
]


@pytest.mark.parametrize("cut", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("most_rows", "most_outcomes"), [(1, 1 << 12), (12, 1 << 12), (1 << 14, 2), (1 << 14, 1 << 12)]
)
def test_units_that_are_replayed_together_have_the_same_rows_as_each_alone(
    most_rows: int, most_outcomes: int, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [
        tables([event for event in MANY if (event["side"], event["unit"]) == unit], 10_000)
        for unit in dict.fromkeys((event["side"], event["unit"]) for event in MANY)
    ]
    monkeypatch.setattr(units, "ROWS_TOGETHER", most_rows)
    monkeypatch.setattr(units, "OUTCOMES_TOGETHER", most_outcomes)
    found = tables(MANY, cut)
    assert set(found) == {name for of_unit in alone for name in of_unit}
    for name, rows in found.items():
        assert rows == [each for of_unit in alone for each in of_unit.get(name, [])]


def test_the_connections_of_a_consumer_process_share_one_pool() -> None:
    c = CONSUMER_MEMORY
    captured, small = rows_of(c)
    assert (captured[c.used_bytes_max], captured[c.connections], captured[c.brokers]) == (190, 2, 2)
    assert (captured[c.pool_bytes], captured[c.waits], captured[c.deadlock]) == (None, 0, None)
    assert (captured[c.smallest_pool_bytes], small[c.pool_bytes], small[c.waits]) == (101, 150, 0)
    assert captured[c.memory_bound_bytes] == min(2 * 1000, 2 * 500)
    assert captured[c.decompressed_bytes] == captured[c.record_bytes] == 50
    assert (captured[c.config_refused], small[c.config_refused]) == (False, True)


@pytest.mark.parametrize(
    ("sizes", "decompressed", "unmeasured"),
    [((None, None), None, 2), ((75, None), None, 1), ((75, 40), 75 + 40, 0)],
)
def test_decompressed_bytes_are_known_if_every_compressed_batch_was_measured(
    sizes: tuple[int | None, ...], decompressed: int | None, unmeasured: int
) -> None:
    found, c = iter(sizes), CONSUMER_MEMORY
    events = [
        event | {"compressed": True, "uncompressed": next(found)}
        if (event["side"], event["kind"]) == ("consumer", 2)
        else event
        for event in EVENTS
    ]
    for lane in tables(events, 10_000)[c.name]:
        told = (lane[c.record_bytes], lane[c.decompressed_bytes], lane[c.unmeasured_batches])
        assert told == (50, decompressed, unmeasured)


def test_a_pool_below_the_smallest_that_suffices_makes_somebody_wait() -> None:
    c = CONSUMER_MEMORY
    _, small = tables(EVENTS, 10_000, replace(LANES, consumer=pools_of(UNBOUNDED, 100)))[c.name]
    # The second response waits from 20 ms until the first is given back at 110 ms; all later ones are as late.
    assert (small[c.waits], small[c.wait_ms_max]) == (1, 90.0)
    assert small[c.span_ms] == 220.0
    assert small[c.throughput_ratio] == pytest.approx(130 / 220)
    assert small[c.depleted_share] == pytest.approx(90 / 220)


def test_the_timeline_and_the_curve_show_when_and_for_how_long_memory_is_in_use() -> None:
    t, e = CONSUMER_MEMORY_TIMELINE, CONSUMER_MEMORY_EXCEEDANCE
    slots = [(slot[t.slot_ms], slot[t.used_bytes_max]) for slot in rows_of(t) if slot[t.scenario] == "captured"]
    assert slots == [(100.0, 190), (100.0, 190)]
    curve = {step[e.bytes]: step[e.time_above_ms] for step in rows_of(e) if step[e.scenario] == "captured"}
    # Nothing until 10 ms, 100 bytes until 20, 190 until 110, 90 until 120.001, then nothing.
    assert curve == pytest.approx({0: 110.001, 90: 100.0, 100: 90.0, 190: 0.0})


def test_the_curve_ends_with_the_most_in_use_to_the_byte() -> None:
    e, c = CONSUMER_MEMORY_EXCEEDANCE, CONSUMER_MEMORY
    events = [event | {"size": 100_003} if event["size"] == 100 else event for event in TWO_BROKERS]
    found = tables(events, 10_000)
    steps = {step[e.bytes]: step[e.time_above_ms] for step in found[e.name] if step[e.scenario] == "captured"}
    # 100,003 and 100,093 are within 1 %, so they share one step: at no time is more in use.
    assert steps == pytest.approx({0: 110.001, 90: 100.0, 100_093: 0.0})
    assert found[c.name][0][c.used_bytes_max] == 100_093


def test_a_brokers_requests_share_one_pool() -> None:
    b = BROKER_MEMORY
    captured, small = rows_of(b)
    assert (captured[b.used_bytes_max], captured[b.requests], captured[b.waits]) == (40, 4, 0)
    assert (small[b.used_bytes_max], small[b.pool_bytes], small[b.waits]) == (20, 15, 2)


def test_a_request_that_waits_is_read_when_a_response_wakes_its_network_thread() -> None:
    """Memory comes back after 50 us, with the response to the first request. The next response is sent after 60 us."""
    b, pools = BROKER_MEMORY, pools_of(UNBOUNDED, 15)
    pools["network_threads"] = 1
    requests = [broker_row(time, connection) for time, connection in ((0, 1), (10, 2), (20, 3))]
    longest = [
        tables(requests, 10_000, replace(LANES, broker=broker))[b.name][1][b.wait_ms_max]
        for broker in (LANES.broker, pools)
    ]
    assert longest == [0.03, 0.04]


@pytest.mark.parametrize(
    ("table", "ranges"), [(CONSUMER_MEMORY, CONSUMER_MEMORY_RANGES), (BROKER_MEMORY, BROKER_MEMORY_RANGES)]
)
def test_each_figure_that_has_a_range_is_that_of_the_same_lane_and_unit(table: Table, ranges: Table) -> None:
    """The lane `small` has waits, and is replayed more often."""
    of_lanes = tables(EVENTS, 10_000, replace(LANES, consumer=pools_of(UNBOUNDED, 100)))
    rows, found = of_lanes[table.name], of_lanes[ranges.name]
    figures = ("used_bytes_max", "smallest_pool_bytes", "waits", "wait_ms_max", "depleted_share")
    assert [(of["scenario"], of["metric"], of["value"]) for of in found] == [
        (of["scenario"], figure, of[figure]) for of in rows for figure in figures
    ]
    assert [of["replications"] for of in found] == [FEWEST] * len(figures) + [REPLICATIONS] * len(figures)
    assert all(of["p10"] <= of["p50"] <= of["p90"] for of in found)
    assert all(of["is_exact"] == (of["p10"] == of["p90"]) for of in found)
    longest = {of["scenario"]: of for of in found if of["metric"] == "wait_ms_max"}
    assert not longest["small"]["is_exact"]
    assert (longest["captured"]["p90"], longest["captured"]["is_exact"]) == (0.0, True)


def test_a_producers_batches_share_its_buffer() -> None:
    p = PRODUCER_MEMORY
    captured, small = rows_of(p)
    assert (captured[p.used_bytes_max], captured[p.waits], captured[p.batch_bytes]) == (45, 0, 45)
    assert (small[p.used_bytes_max], small[p.waits], small[p.exhausted]) == (30, 1, 0)


def test_a_producer_that_is_no_java_client_has_no_buffer_to_replay() -> None:
    f, producer = FIDELITY, [event for event in EVENTS if event["side"] == "producer"]
    found = tables([producer[0] | {"is_java": True}, *(event | {"is_java": False} for event in producer[1:])], 1)
    assert PRODUCER_MEMORY.name not in found
    assert [(r[f.metric], r[f.checked], r[f.unknown], dict(r[f.reasons])) for r in found[f.name]] == [
        ("batches_without_wait", 0, 3, {"not_a_java_client": 3})
    ]


def test_producers_that_are_not_told_apart_are_not_replayed_as_one() -> None:
    f, producer = FIDELITY, [event for event in EVENTS if event["side"] == "producer"]
    found = tables([producer[0], *(event | {"is_told_apart": False} for event in producer[1:])], 1)
    assert PRODUCER_MEMORY.name not in found
    assert [(r[f.metric], r[f.checked], r[f.unknown], dict(r[f.reasons])) for r in found[f.name]] == [
        ("batches_without_wait", 0, 3, {"several_processes": 3})
    ]


def not_told_apart(events: list[Row]) -> list[Row]:
    """The events, with one partition of which it is not known who fetched it."""
    first = next(event for event in events if event["kind"] == MemoryEvent.PARTITION)
    return [event | ({"is_told_apart": False} if event is first else {}) for event in events]


def test_what_consumers_held_that_are_not_told_apart_is_unknown() -> None:
    """Their memory is still shown, as that of one."""
    f = FIDELITY
    consumer = [event for event in EVENTS if event["side"] == "consumer"]
    plain, mixed = (tables(events, 1) for events in (consumer, not_told_apart(consumer)))
    assert mixed[CONSUMER_MEMORY.name] == plain[CONSUMER_MEMORY.name]
    assert [(r[f.metric], r[f.checked], r[f.unknown], dict(r[f.reasons])) for r in mixed[f.name]] == [
        ("drained_partitions", 0, 2, {"several_processes": 2})
    ]


def test_the_queue_of_consumers_that_are_not_told_apart_has_only_a_bound() -> None:
    t, f = LIBRDKAFKA_QUEUE, FIDELITY
    plain, mixed = (queues_of(events)[0] for events in (of_librdkafka(2016), not_told_apart(of_librdkafka(2016))))
    assert (mixed[t.unknown_for], mixed[t.queued_bytes_at_most], mixed[t.queued_bytes_max]) == (
        "several_processes", None, None,
    )  # fmt: skip
    assert (mixed[t.bound_bytes], plain[t.queued_bytes_at_most]) == (plain[t.bound_bytes], 20_000)
    found = {row[f.metric]: row for row in tables(not_told_apart(of_librdkafka(2016)), 100)[f.name]}
    assert dict(found["queue_decisions"][f.reasons]) == {"several_processes": found["queue_decisions"][f.unknown]}
    assert found["queue_decisions"][f.unknown] > 0


def test_fidelity_says_of_each_client_what_was_checked() -> None:
    f = FIDELITY
    found = {row[f.metric]: row for row in rows_of(f)}
    drained, produced = found["drained_partitions"], found["batches_without_wait"]
    assert (drained[f.checked], drained[f.agreed], drained[f.unknown]) == (2, 2, 0)
    assert (produced[f.checked], produced[f.agreed], produced[f.reader]) == (3, 3, "producer")


def consumer_in(settings: Records, events: list[Row] | None = None) -> dict[str, Any]:
    """The consumer's row of the first lane under these settings."""
    lanes = replace(LANES, consumer=settings)
    return tables(events or EVENTS, 10_000, lanes)[CONSUMER_MEMORY.name][0]


def test_a_response_larger_than_the_pool_is_named_as_what_stops_its_connection() -> None:
    """SimpleMemoryPool throws, and the Selector closes the connection: 100 bytes do not go into 95, 90 do."""
    c, found = CONSUMER_MEMORY, consumer_in(pools_of(95, 95))
    assert (found[c.deadlock], found[c.larger_than_pool], found[c.stuck_connections]) == (
        "response_larger_than_pool", 1, 0,
    )  # fmt: skip
    assert found[c.smallest_pool_bytes] == 100, "a smaller pool closes its connection"
    assert (found[c.responses], found[c.config_refused]) == (2, True)


def test_a_buffer_below_fetch_max_bytes_is_named_as_the_reason_why_no_fetch_goes_out() -> None:
    c, found = CONSUMER_MEMORY, consumer_in(pools_of(999, 999, variant=IN_FLIGHT_ESTIMATE))
    assert (found[c.deadlock], found[c.stuck_connections], found[c.responses]) == ("buffer_below_fetch_max_bytes", 2, 0)


def test_responses_of_paused_partitions_are_named_if_they_use_up_the_pool() -> None:
    """Partition 1 is fetched once and never again: its 100 bytes stay, and the other broker's response never comes."""
    c, paused = CONSUMER_MEMORY, [row for row in TWO_BROKERS if row["time"] != 110_000]
    found = consumer_in(pools_of(100, 100), paused)
    assert (found[c.deadlock], found[c.pinned_responses], found[c.stuck_connections]) == ("pinned_responses", 1, 1)
    assert consumer_in(pools_of(101, 101), paused)[c.deadlock] is None


def test_a_connection_that_is_passed_over_again_and_again_is_starved() -> None:
    """One of three gets nothing while the other two take turns, each as soon as the other gives back."""
    c = CONSUMER_MEMORY
    turns = [fetch(t * 100, t * 100 + 10, 100, [(t % 2, t, 1)], connection=t % 2) for t in range(10)]
    last = [fetch(5, 15, 100, [(7, 0, 1)], connection=2), fetch(2000, 2010, 100, [(7, 1, 0)], connection=2)]
    ends = [fetch(2000 + c, 2010 + c, 10, [(c, 10, 0)], connection=c) for c in (0, 1)]
    rows = sorted((row for part in (*turns, *last, *ends) for row in part), key=lambda row: (row["time"], row["kind"]))
    found = {size: consumer_in(pools_of(size, size), rows) for size in (100, 10_000)}
    assert found[10_000][c.starved_connections] == 0
    assert (found[100][c.starved_connections], found[100][c.stuck_connections]) == (1, 0)


def test_a_lane_in_which_a_producer_waits_is_replayed_in_closed_loop() -> None:
    """The third batch waits until the first is answered, 80 us after it came; the captured lane is as captured."""
    p, f = PRODUCER_MEMORY, FIDELITY
    captured, small = rows_of(p)
    assert [row[p.times_of] for row in (captured, small)] == ["capture", "closed_loop"]
    assert (small[p.wait_ms_total], small[p.late_ms_max], small[p.batches_begun]) == (0.08, 0.08, 3)
    assert (captured[p.wait_ms_total], captured[p.late_ms_max]) == (0, None)
    (loop,) = (row for row in rows_of(f) if row[f.metric] == "closed_loop_sends")
    assert (loop[f.checked], loop[f.agreed]) == (3, 3)


def test_a_lane_of_a_producer_that_is_not_busy_is_replayed_by_captured_times() -> None:
    """Each of its requests is on a connection of its own, so none waits for another."""
    p = PRODUCER_MEMORY
    alone = [{**row, "connection_id": row["time"]} for row in EVENTS if row["side"] == "producer"]
    captured, small = tables(alone, 10_000)[p.name]
    assert [row[p.times_of] for row in (captured, small)] == ["capture", "capture"]
    assert (small[p.waits], small[p.share_behind]) == (1, 0)


def of_librdkafka(release: int, *, is_compressed: bool = False) -> list[Row]:
    """A consumer that gets ten responses one after the other, each with ten messages and 2,000 bytes of values."""
    rows: list[Row] = []
    for number in range(10):
        at = {"time": 100 * number, "exchange_no": number, "connection_id": 1}
        size = 2000 + 61 + 7 * 10
        rows += [
            row("consumer", "rd", **at, came=100 * number + 50, size=3000, max_bytes=5000, api_key=1,
                librdkafka=release),
            row("consumer", "rd", **at, kind=1, partition_key=1, broker_key=1, partition_max_bytes=4000,
                fetch_offset=10 * number, returned_bytes=size),
            row("consumer", "rd", **at, kind=2, partition_key=1, end_offset=10 * number + 10, records=10, size=size,
                compressed=is_compressed),
        ]  # fmt: skip
    return rows


def test_a_lane_with_other_traffic_says_nothing_about_brokers_producers_and_queues() -> None:
    """Such a lane is about what consumers get."""
    twice = np.concatenate([LANES.fetch_limits] * 3)
    twice["speed"], twice["consumers"] = [1.0, 2.0, 1.0], [1, 1, 2]
    pools, buffers, queues = (np.concatenate([of, of[:1]]) for of in (LANES.consumer, LANES.producer, LANES.queue))
    lanes = replace(
        LANES, names=("captured", "faster", "more"), consumer=pools, broker=pools, producer=buffers, queue=queues,
        fetch_limits=twice, fetch_number=np.arange(3),
    )  # fmt: skip
    found = tables([*EVENTS, *of_librdkafka(2016)], 100, lanes)
    for table in (BROKER_MEMORY, PRODUCER_MEMORY, LIBRDKAFKA_QUEUE):
        assert {row["scenario"] for row in found[table.name]} == {"captured"}
    assert {row["scenario"] for row in found[CONSUMER_MEMORY.name]} == {"captured", "faster", "more"}


def queues_of(rows: list[Row], cut: int = 10_000, lanes: MemoryLanes = LANES) -> list[dict[str, Any]]:
    return tables(rows, cut, lanes).get(LIBRDKAFKA_QUEUE.name, [])


def test_a_librdkafka_consumer_s_queue_is_bounded_by_its_threshold_and_a_response_of_its_broker() -> None:
    """It asks for 4,000 bytes of its partition, and 2,000 of every 2,131 bytes are values."""
    captured, small = queues_of(of_librdkafka(2016))
    t, on_top = LIBRDKAFKA_QUEUE, 4000 * 20_000 // 21_310
    shown = (t.threshold_bytes, t.overshoot_bytes, t.bound_bytes, t.librdkafka, t.value_bytes, t.queued_bytes_at_most)
    assert [captured[name] for name in shown] == [64_000, on_top, 64_000 + on_top, "2.16", 20_000, 20_000]
    assert [small[name] for name in shown[:3]] == [1000, on_top, 1000 + on_top]
    assert small[t.queued_bytes_at_most] is None


def test_a_release_before_1_5_has_a_larger_queue_unless_a_lane_says_otherwise() -> None:
    thresholds = [row[LIBRDKAFKA_QUEUE.max_queued_bytes] for row in queues_of(of_librdkafka(1004))]
    assert thresholds == [1_024_000, 1000]


def test_a_queue_that_was_never_full_is_replayed_only_at_a_stated_pace() -> None:
    t, stated = LIBRDKAFKA_QUEUE, LANES.queue.copy()
    stated["us_per_record"] = [AS_CAPTURED, 1000]
    unknown, replayed = queues_of(of_librdkafka(2016), lanes=replace(LANES, queue=stated))
    assert (unknown[t.queued_bytes_max], unknown[t.unknown_for]) == (None, "never_full")
    assert (replayed[t.pace_of], replayed[t.unknown_for]) == ("stated", None)
    assert 1000 < replayed[t.queued_bytes_max] <= 3000
    assert replayed[t.held_back] > 0


def test_without_the_sizes_of_compressed_batches_a_queue_has_no_known_bound() -> None:
    t = LIBRDKAFKA_QUEUE
    captured, _ = queues_of(of_librdkafka(2016, is_compressed=True))
    assert (captured[t.bound_bytes], captured[t.unknown_for]) == (None, "sizes_not_measured")
    assert captured[t.unmeasured_batches] == 10


def test_a_consumer_that_is_not_librdkafka_has_no_queue() -> None:
    assert queues_of(TWO_BROKERS) == []


@pytest.mark.parametrize("cut", [1, 7])
def test_queues_are_the_same_however_rows_are_split_into_batches(cut: int) -> None:
    assert queues_of(of_librdkafka(0), cut) == queues_of(of_librdkafka(0))
