"""What is advised, client by client: the rules of docs/advice.md on plain rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import Row

from jobs.replays.batch_split.answers import lanes as split_lanes
from jobs.replays.consumer_memory.answers import lanes as memory_lanes
from jobs.replays.session_cache.answers import lanes as session_lanes
from jobs.replays.session_cache.answers import slot_needs
from jobs.report_page.advice.batch_sizes import split_producers
from jobs.report_page.advice.fetch_limits import consumer_lanes
from jobs.report_page.advice.floors import low_fidelity, metrics_below_floor
from jobs.report_page.advice.memory_pools import BROKER_BUFFER, broker_pool_advice, producer_lanes
from jobs.report_page.advice.recommendation import Recommendation, recommendation_from_row, recommendation_rows
from jobs.report_page.advice.recommendations import make_recommendations
from jobs.report_page.capture_contents import quality_row
from jobs.report_page.fetch_max_bytes.throttles import throttled_clients
from jobs.report_page.question import Findings, Query
from jobs.report_page.refusals import gate_refusals
from jobs.report_page.summary_json import effect_part
from jobs.report_page.traffic import produced_codecs
from jobs.report_page.trust import fidelity_by_reason
from schemas.tables import algorithms
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_SLOTS
from schemas.tables.silver_quality import CAPTURE_QUALITY
from tests.unit.report.findings import agreement, findings, row_of
from udfs.replay.session_cache.settings import SLOTS

SMALL, LARGE = "consumer.fetch.max.bytes=1MiB", "consumer.fetch.max.bytes=50MiB"
BOTH = "consumer.fetch.max.bytes=1MiB,consumer.max.partition.fetch.bytes=512KiB"


def consumer(lane: str, client: str = "app", **told: Any) -> Row:
    """A row of the query: nobody waits, and the backlog is read in 300 ms, unless said otherwise."""
    usual = {
        "requests": 100, "cut_tail_bytes": 0, "catch_up_ms": 300.0, "never": False, "bound": 8 << 20, "bytes_max": 1000,
        "longest_wait_ms": 0.0, "waiting": 0, "catch_up_ms_range": None, "longest_wait_ms_range": None,
        "max_bytes": [200_000], "partition_max_bytes": [1 << 20], "min_bytes": [1],
        "max_wait_ms": [500], "checked": 50, "agreed": 49, "unknown": 2,
    }  # fmt: skip
    return Row(client_id=client, scenario=lane, **usual | told)


def limits(*rows: Row) -> Findings:
    lanes = tuple(dict.fromkeys(row.scenario for row in rows))
    return findings({consumer_lanes: list(rows)}, {algorithms.FETCH_MAX_BYTES: lanes})


def told(found: Findings) -> list[tuple[str, str, str, str | None]]:
    return [(one.verdict, one.scope.name, one.name, one.recommended) for one in make_recommendations(found)]


WAITS: Mapping[str, Any] = {"longest_wait_ms": 224.0, "waiting": 5}


def test_a_lane_in_which_nobody_waits_is_advised_with_gain_cost_and_how_sure_that_is() -> None:
    (one,) = make_recommendations(limits(consumer("captured", **WAITS), consumer(SMALL, bytes_max=3000)))
    assert (one.verdict, one.scope.name, one.setting) == ("change", "app", "consumer.fetch.max.bytes")
    assert (one.now.value, one.now.source, one.recommended) == ("200000", "captured", str(1 << 20))
    assert one.gain.text == "5 partitions wait up to 224 ms -> none"
    assert (one.gain.metric, one.gain.before, one.gain.after) == ("longest_wait_ms", 224.0, 0.0)
    assert one.cost.text == "memory 1,000 B -> 2.9 KiB; catch-up 300 ms, unchanged"
    assert (one.sure.checked, one.sure.agreed, one.sure.unknown) == (50, 49, 2)


def test_a_shorter_catch_up_is_a_gain_and_no_cost() -> None:
    (one,) = make_recommendations(limits(consumer("captured", **WAITS), consumer(SMALL, catch_up_ms=40.0)))
    assert one.gain.text == "5 partitions wait up to 224 ms -> none; catch-up 300 ms -> 40 ms"
    assert one.cost.text == "memory as before"


def test_a_lane_that_is_not_better_is_not_advised() -> None:
    alike = consumer(SMALL, catch_up_ms=295.0)
    assert told(limits(consumer("captured"), alike)) == [("keep", "app", "fetch.max.bytes", "200000")]


@pytest.mark.parametrize("quota", ["consumer_byte_rate", "user.producer_byte_rate"])
def test_a_lane_with_a_quota_advises_no_limits(quota: str) -> None:
    assert told(limits(consumer("captured", **WAITS), consumer(f"{SMALL},{quota}=1MiB"))) == []


def within(low: float, high: float | None) -> Row:
    """The range of a time when pace is drawn anew."""
    return Row(value=low, p10=low, p90=high)


@pytest.mark.parametrize(
    ("other", "verdict"), [((150, 249), "change"), ((150, 251), "keep"), ((150, None), "keep"), ((291, 295), "keep")]
)
def test_a_time_is_shorter_only_if_its_range_ends_before_the_other_begins(
    other: tuple[float, float | None], verdict: str
) -> None:
    captured = consumer("captured", catch_up_ms=300.0, catch_up_ms_range=within(250, 500))
    lane = consumer(SMALL, catch_up_ms=float(other[0]), catch_up_ms_range=within(*other))
    (one,) = make_recommendations(limits(captured, lane))
    assert one.verdict == verdict


def test_screen_tables_and_json_have_the_ranges_of_a_gain() -> None:
    captured = consumer("captured", catch_up_ms=300.0, catch_up_ms_range=within(250, None))
    (one,) = make_recommendations(
        limits(captured, consumer(SMALL, catch_up_ms=100.0, catch_up_ms_range=within(80, 130)))
    )
    assert one.gain.text == "catch-up 300 ms (250 ms to not all) -> 100 ms (80 to 130 ms)"
    assert (one.gain.before_range, one.gain.after_range) == ((250.0, None), (80.0, 130.0))
    (row,) = recommendation_rows("run", [one]).to_pylist()
    assert recommendation_from_row(Row(**row)).gain == one.gain
    assert effect_part(one.gain).after_range == (80.0, 130.0)


def test_a_lane_in_which_somebody_waits_at_another_pace_says_so() -> None:
    captured = consumer("captured", **WAITS, longest_wait_ms_range=within(150, 300))
    (one,) = make_recommendations(limits(captured, consumer(SMALL, longest_wait_ms_range=within(0, 40))))
    assert one.gain.text == "5 partitions wait up to 224 ms (150 to 300 ms) -> none, at another pace up to 40 ms"
    never = consumer(LARGE, longest_wait_ms_range=within(0, 0))
    assert told(limits(captured, consumer(SMALL, longest_wait_ms_range=within(0, 40)), never))[0][3] == str(50 << 20)


def test_a_shorter_wait_is_not_bought_with_a_longer_catch_up_or_many_more_fetches() -> None:
    worse_ones: list[dict[str, Any]] = [{"catch_up_ms": 500.0}, {"requests": 201}, {"never": True, "catch_up_ms": None}]
    for worse in worse_ones:
        assert {one[0] for one in told(limits(consumer("captured", **WAITS), consumer(SMALL, **worse)))} == {"keep"}


def test_of_equally_good_lanes_the_one_with_fewest_changes_and_then_the_lowest_bound_is_advised() -> None:
    rows = [
        consumer("captured", **WAITS),
        consumer(BOTH, bound=1 << 20),
        consumer(LARGE),
        consumer(SMALL, bound=2 << 20),
    ]
    assert told(limits(*rows)) == [("change", "app", "fetch.max.bytes", str(1 << 20))]


def test_a_backlog_that_other_limits_read_to_its_end_is_a_gain() -> None:
    captured = consumer("captured", never=True, catch_up_ms=None)
    (one,) = make_recommendations(limits(captured, consumer(SMALL)))
    assert one.gain.text == "catch-up not read to its end -> 300 ms"


def test_clients_come_in_the_order_of_what_they_gain() -> None:
    rows = [
        consumer("captured", "slow", catch_up_ms=400.0), consumer(SMALL, "slow", catch_up_ms=300.0),
        consumer("captured", "starved", **WAITS), consumer(SMALL, "starved"),
    ]  # fmt: skip
    assert [one[1] for one in told(limits(*rows))] == ["starved", "slow"]


def test_a_change_that_nobody_can_make_is_not_advised() -> None:
    assert told(limits(consumer("captured", **WAITS), consumer("order=shuffle"))) == []


def test_a_change_of_which_nothing_could_be_checked_is_withheld() -> None:
    unchecked: dict[str, Any] = {"checked": 0, "agreed": 0}
    (one,) = make_recommendations(limits(consumer("captured", **WAITS, **unchecked), consumer(SMALL, **unchecked)))
    assert one.verdict == "withheld"
    assert one.reason == "Nothing of the replay behind it could be checked against the capture."


def test_other_limits_are_withheld_from_a_client_that_a_quota_held_back_unless_the_quota_is_stated() -> None:
    rows = [of for client in ("app", "free") for of in (consumer("captured", client, **WAITS), consumer(SMALL, client))]
    throttled = Row(client_id="app", api_name="FETCH", connections=1, total=5_000, long=0, in_all=1)
    found = limits(*rows)
    held_back = replace(found, rows={**found.rows, throttled_clients: [throttled]})
    stated = replace(held_back, captured={**found.captured, "consumer_byte_rate": 1000})
    verdicts = [{one.scope.name: one.verdict for one in make_recommendations(of)} for of in (held_back, stated)]
    assert verdicts == [{"app": "withheld", "free": "change"}, {"app": "change", "free": "change"}]


def test_advice_from_a_replay_below_its_floor_is_withheld_with_the_floor() -> None:
    found = limits(consumer("captured", **WAITS), consumer(SMALL))
    low = Row(
        algorithm="fetch_max_bytes", metric="empty_fetches", reader="consumer", checked=100, agreed=40, floor=0.99
    )
    (one,) = make_recommendations(replace(found, rows={**found.rows, metrics_below_floor: [low]}))
    assert one.verdict == "withheld"
    assert one.reason == "Empty fetches of consumers equal the capture in 40.00 % of 100, below 99.0 %."
    other = Row(**(low.asDict() | {"algorithm": "session_cache"}))
    (one,) = make_recommendations(replace(found, rows={**found.rows, metrics_below_floor: [other]}))
    assert one.verdict == "change"


def test_a_low_fidelity_that_a_gate_refuses_is_named_before_one_of_closed_loop_that_is_lower() -> None:
    found = limits(consumer("captured", **WAITS), consumer(SMALL))
    of_fetches = {"algorithm": "fetch_max_bytes", "reader": "consumer", "checked": 100}
    lows = [
        Row(**of_fetches, metric="closed_loop_bytes", agreed=50, floor=0.9),
        Row(**of_fetches, metric="fetches_with_records", agreed=64, floor=0.99),
    ]
    (one,) = make_recommendations(replace(found, rows={**found.rows, metrics_below_floor: lows}))
    assert one.reason == "Fetches with records of consumers equal the capture in 64.00 % of 100, below 99.0 %."


def test_advice_on_consumers_is_not_withheld_because_the_replay_of_followers_is_below_its_floor() -> None:
    found = limits(consumer("captured", **WAITS), consumer(SMALL))
    low = Row(
        algorithm="fetch_max_bytes", metric="closed_loop_bytes", reader="follower", checked=64, agreed=52, floor=0.9
    )
    (one,) = make_recommendations(replace(found, rows={**found.rows, metrics_below_floor: [low]}))
    assert one.verdict == "change"
    of_all = Row(**(low.asDict() | {"reader": None}))
    (one,) = make_recommendations(replace(found, rows={**found.rows, metrics_below_floor: [of_all]}))
    assert one.verdict == "withheld"


def test_what_consumers_hold_says_nothing_of_the_pool_for_requests() -> None:
    low = Row(
        algorithm="consumer_memory", metric="drained_partitions", reader="consumer", checked=9, agreed=4, floor=0.9
    )
    of_all, found = Row(**(low.asDict() | {"reader": None})), findings({metrics_below_floor: [low]})
    assert low_fidelity(found, "consumer_memory", BROKER_BUFFER) == []
    assert low_fidelity(found, "consumer_memory", "consumer.buffer.memory") == [low]
    assert low_fidelity(findings({metrics_below_floor: [of_all]}), "consumer_memory", BROKER_BUFFER) == [of_all]


def test_advice_from_tables_that_a_gate_refused_is_withheld() -> None:
    found = limits(consumer("captured", **WAITS), consumer(SMALL))
    refused = row_of(GATE_RESULTS, gate="gold", rule="reader_totals_add_up", table_name="fetch_consumers")
    (one,) = make_recommendations(replace(found, rows={**found.rows, gate_refusals: [refused]}))
    assert (one.verdict, one.reason) == ("withheld", "The gold gate refused it: reader_totals_add_up.")


def test_advice_is_withheld_where_the_brokers_have_other_rules_than_the_replay() -> None:
    found = limits(consumer("captured", **WAITS), consumer(SMALL))
    (one,) = make_recommendations(beside_brokers(found, ["1: automq"]))
    assert one.verdict == "withheld"
    assert one.reason.startswith("AutoMQ reads partitions side by side, so a response can exceed max_bytes")
    for others in (["1: confluent"], ["1: other"], [], None):
        (one,) = make_recommendations(beside_brokers(found, others))
        assert one.verdict == "change"


def beside_brokers(found: Findings, others: list[str] | None) -> Findings:
    """The same findings in a capture set with these brokers that are not Apache Kafka's."""
    row = row_of(CAPTURE_QUALITY, other_brokers=others)
    return replace(found, rows={**found.rows, quality_row: [row]})


def sessions(enough: int, taken: int, at_most: int | None = None, stated: int | None = None) -> Findings:
    c = SESSION_CACHE
    own = {c.fetches: 100, c.captured_created: 10, c.captured_refused: 30, "live": 8, "cached": 40}
    need = row_of(
        SESSION_SLOTS, shards=8, enough_slots=enough, zero_harm_slots=2 * enough, slots=taken, slots_at_most=at_most
    )
    lane = Row(**row_of(c, scenario="captured").asDict() | own)
    rows: dict[Query, list[Row]] = {
        session_lanes: [lane],
        slot_needs: [need],
        fidelity_by_reason: [agreement("session_cache", "consumer", "session_grants", 9, 9)],
    }
    found = findings(rows, {algorithms.SESSION_CACHE: ("captured",)})
    in_force = {SLOTS: taken if stated is None else stated}
    return replace(found, captured=in_force, assumed=() if stated else tuple(in_force))


def test_slots_are_kept_where_they_are_enough() -> None:
    (one,) = make_recommendations(sessions(enough=16, taken=1000))
    assert (one.verdict, one.now.value, one.now.source, one.enough) == ("keep", "1000", "default", "16")


def test_too_few_slots_are_raised_to_the_number_that_harms_nobody() -> None:
    (one,) = make_recommendations(sessions(enough=16, taken=8, stated=8))
    found = (one.verdict, one.now.source, one.recommended, one.gain.text)
    assert found == ("change", "stated", "16", "75.0 % of fetches that want a session refused -> none")


def test_the_fewest_slots_that_are_stated_for_a_broker_are_the_ones_in_force() -> None:
    """The advice is for all brokers."""
    found = sessions(enough=16, taken=8)
    own = {"broker.2.max.incremental.fetch.session.cache.slots": 8, "broker.3.fetch.max.bytes": 60_000}
    (one,) = make_recommendations(replace(found, captured={SLOTS: 1000, **own}, assumed=(SLOTS,)))
    assert (one.verdict, one.now.value, one.now.source, one.recommended) == ("change", "8", "stated", "16")


def test_stated_slots_are_shown_as_stated_with_how_shards_share_them() -> None:
    (one,) = make_recommendations(sessions(enough=8, taken=8, stated=12))
    assert one.now.value == "12"
    assert one.reason.endswith("The 12 stated are 8: 8 shards have the same number each, rounded down.")


def test_slots_that_the_capture_contradicts_are_to_be_stated() -> None:
    (one,) = make_recommendations(sessions(enough=8, taken=1000, at_most=15))
    assert (one.verdict, one.now.value) == ("withheld", None)
    assert one.reason == "The capture shows 0 to 15 slots, and not 1,000: state how many there are."


def test_slots_are_not_kept_where_fetches_were_refused_and_nothing_could_be_checked() -> None:
    """A broker with fewer slots than shards grants no session, so no session id shows which shard is next."""
    found = sessions(enough=8, taken=1000)
    unchecked = [agreement("session_cache", "consumer", "session_grants", 0, 0, unknown=40)]
    (one,) = make_recommendations(replace(found, rows={**found.rows, fidelity_by_reason: unchecked}))
    assert (one.verdict, one.now.value) == ("withheld", None)
    assert one.reason == (
        "75.0 % of fetches that want a session were refused, although 1,000 slots, which nobody stated, would be "
        "enough: state how many there are."
    )


def producer(lane: str, waits: int = 0, buffer: int = 32 << 20, **ranges: Row) -> Row:
    """A row of the query. ranges: none unless said otherwise."""
    without = {"waits_range": None, "wait_ms_max_range": None, "used_bytes_max_range": None}
    return Row(
        client_id="app", scenario=lane, waits=waits, failed=0, wait_ms_max=40.0 * bool(waits),
        used_bytes_max=1 << 18,
        buffer_bytes=buffer, batch_size=16 << 10, checked=9, agreed=9, unknown=0, **without | ranges,
    )  # fmt: skip


def memory(*rows: Row, pools: tuple[Row, ...] = ()) -> Findings:
    lanes = tuple(row.scenario for row in rows) or ("captured",)
    return findings({producer_lanes: list(rows), memory_lanes: list(pools)}, {algorithms.CONSUMER_MEMORY: lanes})


def test_buffers_in_which_nothing_waits_are_kept_and_others_become_the_smallest_replayed_that_is_enough() -> None:
    (one,) = make_recommendations(memory(producer("captured")))
    assert (one.verdict, one.reason) == (
        "keep",
        "256 KiB is enough: nothing in the capture waits for memory with 32 MiB.",
    )
    larger = [producer(f"producer.buffer.memory={mib}MiB", buffer=mib << 20) for mib in (128, 64)]
    (one,) = make_recommendations(memory(producer("captured", waits=3), *larger))
    assert (one.verdict, one.recommended) == ("change", str(64 << 20))
    (one,) = make_recommendations(memory(producer("captured", waits=3)))
    assert (one.verdict, one.recommended) == ("withheld", None)


def test_a_buffer_that_is_enough_only_at_the_captured_pace_is_said_to_be_hardly_enough() -> None:
    captured = producer("captured", waits_range=Row(p10=0, p90=12), wait_ms_max_range=Row(p10=0.0, p90=80.0))
    (one,) = make_recommendations(memory(captured))
    assert (one.verdict, one.reason) == (
        "keep",
        "Nothing in the capture waits for memory with 32 MiB, but that is hardly enough: with slower brokers 12 "
        "batches wait up to 80 ms.",
    )


def test_the_smallest_buffer_in_which_nothing_waits_at_any_pace_is_advised() -> None:
    hardly = producer("producer.buffer.memory=64MiB", buffer=64 << 20, waits_range=Row(p10=0, p90=1))
    enough = producer("producer.buffer.memory=128MiB", buffer=128 << 20)
    (one,) = make_recommendations(memory(producer("captured", waits=3), hardly, enough))
    assert (one.verdict, one.recommended) == ("change", str(128 << 20))


def test_as_much_memory_is_enough_as_a_producer_uses_at_any_pace() -> None:
    (one,) = make_recommendations(memory(producer("captured", used_bytes_max_range=Row(p10=1 << 10, p90=512 << 10))))
    assert (one.verdict, one.reason) == (
        "keep",
        "512 KiB is enough: nothing in the capture waits for memory with 32 MiB.",
    )


def test_no_smaller_buffer_is_advised_to_end_waits_for_memory() -> None:
    smaller, same = (producer(f"producer.buffer.memory={mib}MiB", buffer=mib << 20) for mib in (8, 32))
    (one,) = make_recommendations(memory(producer("captured", waits=3), smaller, same))
    assert (one.verdict, one.recommended) == ("withheld", None)
    larger = producer("producer.buffer.memory=64MiB", buffer=64 << 20)
    (one,) = make_recommendations(memory(producer("captured", waits=3), smaller, same, larger))
    assert (one.verdict, one.recommended) == ("change", str(64 << 20))


@pytest.mark.parametrize(
    ("captured", "doubt"),
    [
        ({"batch_size": 4 << 10}, "its batches show 4 KiB"),
        ({"checked": 3000, "agreed": 9}, "only 9 of its 3,000 batches fit that"),
        ({}, None),
        ({"batch_size": 4 << 10, "client_id": "another"}, None),
        ({"batch_size": 4 << 10, "is_batch_size_told": False}, None),
    ],
)
def test_no_buffer_is_advised_with_a_batch_size_that_the_batches_contradict(
    captured: dict[str, Any], doubt: str | None
) -> None:
    found = memory(producer("captured", waits=3), producer("producer.buffer.memory=64MiB", buffer=64 << 20))
    split = Row(**(batches("captured", 0.0, 16 << 10).asDict() | captured))
    (one,) = make_recommendations(replace(found, rows={**found.rows, split_producers: [split]}))
    if doubt is None:
        assert one.verdict == "change"
    else:
        assert one.verdict == "withheld"
        waits = "3 batches wait up to 40 ms if batch.size is 16 KiB"
        assert one.reason == f"{waits}, but {doubt}: state the value that it has."


def test_no_buffer_is_called_enough_with_a_batch_size_that_the_batches_contradict() -> None:
    """A batch takes at least batch.size bytes, and a producer cannot send if its buffer is smaller than that."""
    found = memory(producer("captured"))
    split = Row(**(batches("captured", 0.0, 16 << 10).asDict() | {"batch_size": 100_000}))
    (one,) = make_recommendations(replace(found, rows={**found.rows, split_producers: [split]}))
    assert (one.verdict, one.recommended, one.enough) == ("keep", str(32 << 20), None)
    assert one.reason == (
        "Nothing in the capture waits for memory with 32 MiB. 256 KiB is enough if batch.size is 16 KiB, but its "
        "batches show 97.7 KiB: state the value that it has."
    )


def test_a_buffer_is_advised_from_a_lane_that_also_sets_consumers_but_nothing_else_of_producers() -> None:
    consumers = "consumer.buffer.memory=1MiB,producer.buffer.memory=64MiB"
    also_batches = "producer.batch.size=4KiB,producer.buffer.memory=48MiB"
    lanes = [producer(consumers, buffer=64 << 20), producer(also_batches, buffer=48 << 20)]
    (one,) = make_recommendations(memory(producer("captured", waits=3), *lanes))
    assert (one.verdict, one.recommended) == ("change", str(64 << 20))


def pool(of: str, **told: Any) -> Row:
    usual = {"most": 200, "smallest": 101, "waits": 0, "stuck": 0, "longest": 0.0}
    without = dict.fromkeys(("waits_range", "wait_ms_max_range", "smallest_pool_bytes_range"))
    return Row(of=of, scenario="captured", **usual | without | told)


def test_no_pool_of_a_broker_is_advised_that_kafka_does_not_accept() -> None:
    """queued.max.request.bytes must not be below socket.request.max.bytes, 100 MiB unless stated (KafkaConfig)."""
    (one,) = make_recommendations(memory(pools=(pool("brokers"),)))
    assert (one.verdict, one.now.value, one.enough) == ("keep", "none", str(100 << 20))


def test_a_pool_of_a_broker_is_enough_if_it_is_so_at_other_paces() -> None:
    smallest = Row(p10=101.0, p90=float(300 << 20))
    (one,) = make_recommendations(memory(pools=(pool("brokers", smallest_pool_bytes_range=smallest),)))
    assert (one.verdict, one.enough) == ("keep", str(300 << 20))
    assert one.reason == "300 MiB is enough for all captured requests."
    ranges = {"waits_range": Row(p10=0.0, p90=12.0), "wait_ms_max_range": Row(p10=0.0, p90=80.0)}
    (one,) = make_recommendations(memory(pools=(pool("brokers", smallest_pool_bytes_range=smallest, **ranges),)))
    assert one.reason == "300 MiB is enough for all captured requests. At a slower pace 12 requests wait up to 80 ms."


def test_a_pool_of_a_broker_in_which_requests_wait_is_raised_with_the_range_of_the_longest_wait() -> None:
    waiting = pool("brokers", smallest=200 << 20, waits=3, longest=40.0, wait_ms_max_range=Row(p10=0.0, p90=80.0))
    one = broker_pool_advice(memory(pools=(waiting,)), waiting)
    assert (one.verdict, one.recommended) == ("change", str(200 << 20))
    assert one.gain.text == "3 requests wait up to 40 ms -> nothing waits"
    assert (one.gain.before_range, one.gain.after_range) == ((0.0, 80.0), (0.0, 0.0))


def test_a_pool_that_no_release_has_is_a_proposal() -> None:
    (one,) = make_recommendations(memory(pools=(pool("consumers"),)))
    assert (one.is_proposal, one.reason) == (True, "101 B was enough for everyone.")
    ranged = pool("consumers", smallest_pool_bytes_range=Row(p10=90.0, p90=300.0))
    (one,) = make_recommendations(memory(pools=(ranged,)))
    assert (one.enough, one.reason) == ("300", "300 B was enough for everyone.")


def batches(lane: str, rate: float, size: int, failed: int = 0, ends: tuple[float, float] | None = None) -> Row:
    low, high = ends or (rate, rate)
    return Row(
        client_id="app", scenario=lane, rate=rate, batches=100, failed=failed, batch_size=size, is_batch_size_told=True,
        checked=9, agreed=9, unknown=0, split_rate_range=Row(p10=low, p90=high),
    )  # fmt: skip


def split(*rows: Row) -> Findings:
    return findings({split_producers: list(rows)}, {algorithms.BATCH_SPLIT: tuple(row.scenario for row in rows)})


def sized(kib: int, rate: float, failed: int = 0) -> Row:
    return batches(f"producer.batch.size={kib}KiB", rate, kib << 10, failed)


def test_the_largest_batch_size_with_few_splits_is_advised_where_many_are_split() -> None:
    captured = batches("captured", 0.085, 37_000)
    (one,) = make_recommendations(
        split(captured, sized(8, 0.0), sized(16, 0.009), sized(64, 0.8), sized(32, 0.0, failed=1))
    )
    assert (one.verdict, one.now.source, one.recommended) == ("change", "inferred", str(16 << 10))
    assert one.gain.text == "8.5 % of batches split -> 0.90 %"
    (one,) = make_recommendations(split(batches("captured", 0.01, 37_000), sized(8, 0.0)))
    assert one.verdict == "keep"
    (one,) = make_recommendations(split(captured, sized(64, 0.8)))
    assert (one.verdict, one.recommended) == ("withheld", None)


def test_a_batch_size_is_advised_only_if_it_splits_few_batches_and_fewer_than_now_at_whatever_pace() -> None:
    """It is withheld if it may split 3 % at another pace, or if its range overlaps with that of the captured size."""
    small = "producer.batch.size=8KiB"
    captured = batches("captured", 0.085, 37_000, ends=(0.04, 0.12))
    (one,) = make_recommendations(split(captured, batches(small, 0.002, 8 << 10, ends=(0.0, 0.009))))
    assert (one.verdict, one.gain.text) == ("change", "8.5 % (4.0 to 12.0 %) of batches split -> 0.20 % (0 to 0.90 %)")
    assert (one.gain.before_range, one.gain.after_range) == ((0.04, 0.12), (0.0, 0.009))
    (one,) = make_recommendations(split(captured, batches(small, 0.002, 8 << 10, ends=(0.0, 0.03))))
    assert (one.verdict, one.recommended) == ("withheld", None)
    (one,) = make_recommendations(
        split(batches("captured", 0.085, 37_000, ends=(0.005, 0.12)), batches(small, 0.002, 8 << 10, ends=(0.0, 0.009)))
    )
    assert one.verdict == "withheld"
    assert one.reason.endswith("no difference that this capture can tell.")


def test_no_batch_size_is_advised_where_the_replay_lacks_the_refused_batches() -> None:
    found = split(batches("captured", 0.5, 37_000), sized(8, 0.0))
    unlike = {produced_codecs: [Row(refused=40)]}
    calm = Row(splits=0, failed=0, scenario="captured")
    (one,) = make_recommendations(replace(found, rows={**found.rows, **unlike, split_lanes: [calm]}))
    assert one.verdict == "withheld"
    assert "state the batch.size, linger.ms and max.message.bytes" in one.reason


def test_a_recommendation_comes_back_from_its_row_as_it_was() -> None:
    made: list[Recommendation] = make_recommendations(limits(consumer("captured", **WAITS), consumer(SMALL)))
    rows = recommendation_rows("run", made).to_pylist()
    assert [recommendation_from_row(Row(**row)) for row in rows] == made
    assert [row["place"] for row in rows] == [1]
