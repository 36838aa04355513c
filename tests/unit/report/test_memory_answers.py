"""The answers on memory: what each lane costs, and why connections get stuck."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest
from pyspark.sql import Row

from jobs.replays.consumer_memory.answers import CONSUMERS_ALONE, HEAD, TOO_NARROW, lanes, lanes_table
from jobs.replays.consumer_memory.queue_answers import HEAD as QUEUE_HEAD
from jobs.replays.consumer_memory.queue_answers import largest_queues, queues_table
from jobs.report_page.consumer_memory.memory_pool import bounded_memory_answer, slowed_consumers
from jobs.report_page.consumer_memory.needed_memory import hungry_consumers, needed_memory_answer
from jobs.report_page.question import Findings, Query
from jobs.report_page.traffic import fetching_consumers
from schemas.tables import algorithms
from schemas.tables.gold_memory import CONSUMER_MEMORY, LIBRDKAFKA_QUEUE
from tests.unit.report.findings import findings, row_of
from udfs.replay.consumer_memory.settings import MAX_KBYTES

LANES = ("captured", "consumer.buffer.memory=1KiB", "consumer.fetch.max.bytes=1MiB,consumer.buffer.memory=1KiB")


def row(of: str, lane: str, **columns: object) -> Row:
    """A row of the query."""
    usual = {
        "p99": 100, "p99_in_loop": None, "most": 200, "most_in_loop": None, "smallest": 101, "waits": 0,
        "longest": 0.0, "depleted": 0.0, "ratio": 1.0, "stuck": 0,
        "bound": 4096, "starved": 0, "why": None, "reckoned": 200, "taken": True, "left_out": 0,
        "waits_range": None, "wait_ms_max_range": None, "used_bytes_max_range": None, "smallest_pool_bytes_range": None,
        "depleted_share_range": None,
    }  # fmt: skip
    return Row(scenario=lane, of=of, **usual | columns)


def cells(*rows: Row) -> list[dict[str, str]]:
    return [dict(zip(HEAD, found, strict=True)) for found in lanes_table(list(rows), LANES).rows]


def test_the_table_says_why_connections_are_stuck() -> None:
    _, small, other = cells(
        row("consumers", LANES[0]),
        row("consumers", LANES[1], stuck=1, why="response_larger_than_pool"),
        row("consumers", LANES[2], stuck=2, starved=1, why="pinned_responses"),
    )
    assert (small["stuck"], small["remarks"], small["starved"]) == ("1", "larger than the pool", "0")
    assert (other["stuck"], other["remarks"], other["starved"]) == ("2", "pinned by partitions not fetched again", "1")
    assert other["lane"] == "fetch.max.bytes=1MiB  buffer.memory=1KiB"
    assert small["bound"] == "4.0 KiB"
    assert {small["no wait from"], other["no wait from"]} == {"-"}, "a stuck connection asks for no more"


def test_bytes_that_are_held_at_times_of_the_closed_loop_have_columns_of_their_own() -> None:
    captured, bounded, limited = cells(
        row("consumers", LANES[0]), row("consumers", LANES[1], p99=90),
        row("consumers", LANES[2], p99=None, p99_in_loop=80, most=None, most_in_loop=150),
    )  # fmt: skip
    by_times = [(lane["p99"], lane["p99 in loop"]) for lane in (captured, bounded, limited)]
    assert by_times == [("100 B", "-"), ("90 B", "-"), ("-", "80 B")]
    assert [(lane["most"], lane["most in loop"]) for lane in (captured, limited)] == [("200 B", "-"), ("-", "150 B")]


def test_the_bytes_that_a_variant_counts_are_shown_if_they_are_more_than_the_bytes_in_use() -> None:
    remarks = [
        cells(row("producers", LANES[0], reckoned=201, most=most, most_in_loop=in_loop))[0]["remarks"]
        for most, in_loop in ((200, None), (None, 200), (100, 200), (201, 100), (100, 201))
    ]
    assert remarks == ["counts 201 B"] * 3 + ["-"] * 2


def test_what_depends_on_the_pace_of_brokers_is_shown_with_its_range() -> None:
    captured, small = cells(
        row("producers", LANES[0], used_bytes_max_range=Row(p10=90, p90=300)),
        row("producers", LANES[1], waits=7, longest=40.0, waits_range=Row(p10=0, p90=1200),
            wait_ms_max_range=Row(p10=0.0, p90=60.0)),
    )  # fmt: skip
    assert (captured["no wait from"], captured["waits"]) == ("101 B (90 to 300 B)", "0")
    assert (small["waits"], small["longest wait"]) == ("7 (0 to 1,200)", "40 ms (0 to 60 ms)")


@pytest.mark.parametrize("of", ["brokers", "consumers"])
def test_pools_of_brokers_and_consumers_are_shown_with_their_ranges(of: str) -> None:
    captured, small = cells(
        row(of, LANES[0], smallest_pool_bytes_range=Row(p10=90, p90=300), used_bytes_max_range=Row(p10=1, p90=999)),
        row(of, LANES[1], waits=7, longest=40.0, depleted=0.05, waits_range=Row(p10=0, p90=1200),
            wait_ms_max_range=Row(p10=0.0, p90=60.0), depleted_share_range=Row(p10=0.0, p90=0.2)),
    )  # fmt: skip
    assert (captured["no wait from"], captured["waits"], captured["depleted"]) == ("101 B (90 to 300 B)", "0", "0.0 %")
    assert (small["waits"], small["longest wait"]) == ("7 (0 to 1,200)", "40 ms (0 to 60 ms)")
    assert small["depleted"] == "5.0 % (0.0 to 20.0 %)"


def test_a_note_says_how_often_live_brokers_were_in_such_a_range_if_their_waits_have_one() -> None:
    wide, point = Row(p10=0, p90=12), Row(p10=0, p90=0)
    for of, within, is_noted in (
        ("brokers", wide, True), ("brokers", point, False), ("brokers", None, False), ("consumers", wide, False)
    ):  # fmt: skip
        notes = lanes_table([row(of, LANES[0], waits_range=within)], LANES).notes
        assert (TOO_NARROW in notes) == is_noted


def test_messages_that_there_was_no_room_for_are_marked() -> None:
    _, cut = cells(row("consumers", LANES[0]), row("consumers", LANES[1], left_out=1200))
    assert cut["remarks"] == "1,200 not replayed"


def test_a_note_says_that_lanes_with_other_traffic_are_about_consumers() -> None:
    lanes = ["captured", "traffic.speed=2"]
    notes = [lanes_table([row("consumers", lane) for lane in names], names).notes for names in (LANES, lanes)]
    assert [CONSUMERS_ALONE in of for of in notes] == [False, True]


def test_a_pool_with_which_the_prototype_does_not_start_is_marked() -> None:
    _, refused = cells(row("consumers", LANES[0]), row("consumers", LANES[1], taken=False))
    assert refused["remarks"] == "not above fetch.max.bytes"


def test_the_smallest_pool_is_shown_with_the_one_that_the_prototype_requires() -> None:
    asked = {fetching_consumers: [Row(max_bytes=50 << 20)]}
    found: dict[Query, list[Row]] = {
        lanes: [row("consumers", LANES[0])],
        hungry_consumers: [row_of(CONSUMER_MEMORY)],
        **asked,
    }
    told = bounded_memory_answer(findings(found, {algorithms.CONSUMER_MEMORY: LANES}))
    assert told.startswith(
        "101 B of buffer.memory of consumers (KIP-81, a proposal) was enough for everyone. The "
        "proposal's prototype accepts only a pool larger than fetch.max.bytes, here 50.0 MiB. "
    )


def test_if_nobody_would_wait_in_any_pool_the_smallest_one_is_shown() -> None:
    rows = [row("consumers", LANES[0]), row("consumers", LANES[1])]
    found: dict[Query, list[Row]] = {lanes: rows, hungry_consumers: [row_of(CONSUMER_MEMORY)], slowed_consumers: []}
    found[fetching_consumers] = [Row(max_bytes=64)]
    told = bounded_memory_answer(findings(found, {algorithms.CONSUMER_MEMORY: LANES}))
    assert told.endswith(". Nobody would wait in any of the replayed pools, the smallest of which is 1.0 KiB.")


def test_the_table_shows_how_many_bytes_a_variant_counts_as_used() -> None:
    _, rejected = cells(row("consumers", LANES[0]), row("consumers", LANES[1], reckoned=4096, waits=1))
    assert rejected["remarks"] == "counts 4.0 KiB"
    (stuck,) = cells(row("consumers", LANES[1], reckoned=4096, stuck=1, why="buffer_below_fetch_max_bytes"))
    assert stuck["remarks"] == "pool below fetch.max.bytes, counts 4.0 KiB"


def test_a_producer_has_neither_bound_nor_depleted_time() -> None:
    none = {"bound": None, "depleted": None, "ratio": None, "starved": None, "reckoned": None}
    (found,) = cells(row("producers", LANES[0], **none))
    assert {found[name] for name in ("bound", "depleted", "throughput", "starved", "remarks")} == {"-"}


def one_of_client(others: int = 0, **columns: object) -> Row:
    """A row of the query."""
    return Row(**row_of(CONSUMER_MEMORY, **columns).asDict(), others=others)


def test_the_answer_says_what_is_held_and_whether_processes_seem_to_share_a_client_id() -> None:
    def told(**columns: int) -> str:
        return needed_memory_answer(
            findings({lanes: [], hungry_consumers: [one_of_client(**columns)]}, {algorithms.CONSUMER_MEMORY: LANES})
        )

    assert "0 of responses at a time. For 99 % of the time it held nothing" in told()
    assert "For 99 % of the time it held 100 B or less" in told(used_bytes_p99=100)
    assert "several processes" not in told()
    assert "1 response held to the end, as no fetch shows that all was taken" in told(pinned_responses=1)
    assert "to the end" not in told()
    assert "with 1 broker and 2 partitions" in told(brokers=1, partitions=2)
    assert "Several processes seem to share that client.id and address" in told(others=7)


def slowed(lane: str, client: str, **columns: object) -> Row:
    """A row of the query."""
    return row_of(CONSUMER_MEMORY, scenario=lane, client_id=client, **columns)


def answer(
    question: Callable[[Findings], str], *rows: Row, names: tuple[str, ...] = LANES, slow: tuple[Row, ...] = ()
) -> str:
    found: dict[Query, list[Row]] = {
        lanes: list(rows),
        hungry_consumers: [one_of_client(client_id="app")],
        slowed_consumers: list(slow),
    }
    return question(findings(found, {algorithms.CONSUMER_MEMORY: names}))


def test_the_answer_names_a_pool_that_gets_stuck_before_one_that_is_slow() -> None:
    rows = (
        row("consumers", LANES[0]), row("consumers", LANES[1], stuck=1, why="response_larger_than_pool"),
        row("consumers", LANES[2]),
    )  # fmt: skip
    slow = (slowed(LANES[2], "slow", throughput_ratio=0.1),)
    assert " 1 connection gets stuck: a response is larger than the pool." in answer(
        bounded_memory_answer, *rows, slow=slow
    )
    assert "stuck" not in answer(bounded_memory_answer, rows[0], rows[2], slow=slow)


def test_the_cost_of_a_pool_is_shown_for_the_consumer_that_it_slows_most() -> None:
    slow = (
        slowed(LANES[1], "app", wait_ms_max=40.0, depleted_share=0.25, throughput_ratio=0.95),
        slowed(LANES[2], "other", wait_ms_max=90.0, throughput_ratio=None),
    )
    told = answer(
        bounded_memory_answer,
        row("consumers", LANES[0]),
        row("consumers", LANES[1]),
        row("consumers", LANES[2]),
        slow=slow,
    )
    assert told.endswith(
        ". With buffer.memory=1 KiB, app is slowed most: its pool is depleted 25.0 % of the time, and a "
        "response waits up to 40 ms. Throughput is 95.0 % of the captured one."
    )


def test_a_consumer_that_is_slow_only_because_of_its_fetch_limits_does_not_wait_for_memory() -> None:
    """In the closed loop, small limits are slower than the captured ones whatever the pool."""
    slow = (slowed("consumer.fetch.max.bytes=1MiB", "app", throughput_ratio=0.9),)
    told = answer(bounded_memory_answer, row("consumers", LANES[0]), row("consumers", LANES[1]), slow=slow)
    assert told.endswith(". Nobody would wait in any of the replayed pools, the smallest of which is 1.0 KiB.")


def test_the_uncompressed_size_is_shown_or_why_it_is_not_known() -> None:
    def told(decompressed_bytes: int | None = None, unmeasured_batches: int = 0) -> str:
        most = one_of_client(
            record_bytes=100, decompressed_bytes=decompressed_bytes, unmeasured_batches=unmeasured_batches
        )
        return needed_memory_answer(
            findings({lanes: [], hungry_consumers: [most]}, {algorithms.CONSUMER_MEMORY: LANES})
        )

    assert "uncompressed size of 7 compressed batches not measured" in told(
        unmeasured_batches=7, decompressed_bytes=None
    )
    assert "uncompressed 2.5 times as much" in told(decompressed_bytes=250)
    assert "none of it compressed" in told(decompressed_bytes=100)


@pytest.mark.parametrize(("held", "is_more"), [(2000, False), (2001, True)])
def test_if_more_is_held_than_the_bound_of_kip_74_the_answer_says_why(held: int, is_more: bool) -> None:
    most = one_of_client(record_bytes=100, used_bytes_max=held, memory_bound_bytes=2000)
    told = needed_memory_answer(findings({lanes: [], hungry_consumers: [most]}, {algorithms.CONSUMER_MEMORY: LANES}))
    assert ("A first batch that is larger comes whole, so more was held" in told) == is_more


def test_bytes_held_under_other_fetch_limits_are_shown_without_a_replay_of_fetch_max_bytes() -> None:
    limited = ("captured", "consumer.fetch.max.bytes=1MiB")
    told = answer(
        needed_memory_answer, row("consumers", limited[0]), row("consumers", limited[1], most=4096), names=limited
    )
    assert "holds at most 4.0 KiB of responses with fetch.max.bytes=1 MiB. It holds 200 B" in told


QUEUE_LANES = ("captured", "consumer.queued.max.messages.kbytes=4096")


def queue(lane: str, bound: int | None, **columns: object) -> Row:
    """A row of the query `largest_queues`."""
    usual: dict[str, object] = {
        "client_id": "rd", "brokers": 3, "max_queued_bytes": 65_536_000, "min_queued_messages": 100_000,
        "threshold_bytes": 65_536_000, "bound_bytes": bound, "memory_bound_bytes": 98 << 20, "queued_bytes_max": None,
        "queued_bytes_at_most": None, "full_share": None, "idle_ms": None, "unknown_for": None,
    }  # fmt: skip
    return Row(**row_of(LIBRDKAFKA_QUEUE, scenario=lane).asDict() | usual | columns, clients=2)


def told_of(*rows: Row, asked: int | None = None, assumed: Collection[str] = (MAX_KBYTES,)) -> str:
    """The answer. asked: the most bytes that the client's fetches ask for. assumed: settings that nobody stated."""
    found: dict[Query, list[Row]] = {
        lanes: [], hungry_consumers: [one_of_client()], largest_queues: list(rows),
        fetching_consumers: [Row(client_id="rd", max_bytes=asked)],
    }  # fmt: skip
    shown = findings(found, {algorithms.CONSUMER_MEMORY: QUEUE_LANES})
    return needed_memory_answer(replace(shown, assumed=frozenset(assumed)))


def test_the_queue_of_a_librdkafka_consumer_is_shown_with_the_setting_that_lowers_it() -> None:
    told = told_of(queue("captured", 69 << 20), queue(QUEUE_LANES[1], 10 << 20))
    assert told.endswith(
        " rd uses librdkafka, which fetches ahead: its queue can hold 69.0 MiB. That takes 98.0 MiB of memory, by "
        "queued.max.messages.kbytes=65536 and a response of each of 3 brokers on top. It can hold 10.0 MiB with "
        "queued.max.messages.kbytes=4096."
    )


def test_a_client_whose_fetches_ask_for_less_than_by_default_may_have_a_smaller_queue() -> None:
    asks = "Its fetches ask for at most 976.6 KiB, so queued.max.messages.kbytes may be lower: if it is, state it with"
    assert asks in told_of(queue("captured", 69 << 20), asked=1_000_000)
    for asked, assumed in ((50 << 20, [MAX_KBYTES]), (None, [MAX_KBYTES]), (1_000_000, [])):
        assert "may be lower" not in told_of(queue("captured", 69 << 20), asked=asked, assumed=assumed)


def test_if_the_number_of_messages_bounds_a_queue_that_setting_is_named() -> None:
    assert "by queued.min.messages=100,000 and" in told_of(queue("captured", 1 << 20, threshold_bytes=1 << 20))


def test_queues_whose_bound_is_not_known_are_left_out() -> None:
    assert "librdkafka" not in told_of(queue("captured", None))
    assert "librdkafka" not in told_of()


def test_a_queue_whose_pace_is_not_known_shows_the_most_that_the_capture_allows_for() -> None:
    rows = [
        queue("captured", 1 << 20, queued_bytes_at_most=3 << 10, unknown_for="never_full"),
        queue(QUEUE_LANES[1], 1 << 19, queued_bytes_max=2 << 10, full_share=0.5, idle_ms=1500.0),
    ]
    captured, small = (dict(zip(QUEUE_HEAD, cells, strict=True)) for cells in queues_table(rows, QUEUE_LANES).rows)
    assert (captured["most"], captured["full"], captured["remarks"]) == ("3.0 KiB", "-", "pace unknown: never full")
    assert (small["most"], small["full"], small["idle"], small["remarks"]) == ("2.0 KiB", "50.0 %", "1.5 s", "-")
    assert small["lane"] == "queued.max.messages.kbytes=4096"


def test_lanes_that_change_nothing_for_queues_are_in_the_row_of_the_captured_one() -> None:
    rows = [Row(**queue(lane, 69 << 20).asDict() | {"unknown_for": "never_full"}) for lane in QUEUE_LANES]
    rows[0] = Row(**rows[0].asDict() | {"queued_bytes_at_most": 5 << 20})
    (cells,) = queues_table(rows, QUEUE_LANES).rows
    assert dict(zip(QUEUE_HEAD, cells, strict=True))["most"] == "5.0 MiB"
