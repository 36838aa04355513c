"""An answer names a lane by the settings that concern its question, and keeps lanes with other results apart."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Row

from jobs.replays.consumer_memory.answers import lanes as memory_lanes
from jobs.replays.fetch_max_bytes.answers import closed_lanes
from jobs.report_page.consumer_memory.memory_pool import slowed_consumers
from jobs.report_page.consumer_memory.needed_memory import hungry_consumers
from jobs.report_page.lane_labels import Subject, own_labels, own_lanes
from jobs.report_page.question import Findings, Query
from schemas.tables import algorithms
from schemas.tables.gold_memory import CONSUMER_MEMORY
from tests.unit.report.findings import findings, row_of, sentence

POOL = "consumer.buffer.memory=1MiB"
OF_BROKER = "broker.queued.max.request.bytes=64KiB"
OF_PRODUCER = "producer.buffer.memory=32MiB"


def names(*lanes: tuple[str, int], subject: Subject = "consumers", found: Findings | None = None) -> list[str]:
    rows = [Row(scenario=name, outcome=outcome) for name, outcome in lanes]
    return [row.scenario for row in own_lanes(found or findings(), rows, subject)]


def test_lanes_that_differ_only_in_settings_of_others_are_one_lane_of_the_subject() -> None:
    lanes = [("captured", 0), (f"{POOL},{OF_BROKER},{OF_PRODUCER}", 1), (f"{POOL},{OF_PRODUCER}", 1)]
    assert names(*lanes) == ["captured", POOL]
    assert names(("captured", 0), (f"{POOL},{OF_BROKER}", 1), subject="brokers") == ["captured", OF_BROKER]
    assert names(("captured", 0), (f"{POOL},{OF_PRODUCER}", 1), subject="producers") == ["captured", OF_PRODUCER]


def test_a_lane_with_settings_of_others_only_is_the_captured_one() -> None:
    assert names(("captured", 0), ("replica.fetch.max.bytes=1MiB", 0)) == ["captured"]


def test_lanes_with_other_results_keep_the_settings_that_distinguish_them() -> None:
    lanes = [("captured", 0), (f"{POOL},{OF_BROKER}", 1), (f"{POOL},{OF_PRODUCER}", 2)]
    assert names(*lanes) == ["captured", f"{POOL},{OF_BROKER}", f"{POOL},{OF_PRODUCER}"]


def test_a_lane_that_lifts_a_bound_that_did_not_exist_is_not_named_by_it() -> None:
    none = "consumer.buffer.memory=none,consumer.fetch.max.bytes=1MiB"
    assert names(("captured", 0), (none, 1)) == ["captured", "consumer.fetch.max.bytes=1MiB"]
    stated = replace(findings(), captured={"consumer.buffer.memory": 1 << 20})
    assert names(("captured", 0), (none, 1), found=stated) == ["captured", none]


def test_a_plot_of_consumers_names_lanes_by_consumers_settings_if_those_distinguish_them() -> None:
    def labels(*lanes: str) -> list[str]:
        return [*own_labels(findings(), lanes, "consumers").values()]

    assert labels("captured", f"{POOL},{OF_PRODUCER}") == ["captured", POOL]
    only_otherwise = (f"{POOL},producer.buffer.memory=1MiB", f"{POOL},producer.buffer.memory=2MiB")
    assert labels(*only_otherwise) == [*only_otherwise]
    of_unlike_settings = (
        "consumer.fetch.max.bytes=1MiB,consumer.buffer.memory=none",
        f"consumer.fetch.max.bytes=1MiB,{POOL}",
    )
    assert labels(*of_unlike_settings) == [*of_unlike_settings]


def memory_row(of: str, lane: str, waits: int = 0) -> Row:
    usual = {"p99": 1, "most": 200, "smallest": 101, "longest": 1.0, "stuck": 0, "bound": 4096, "why": None}
    return Row(scenario=lane, of=of, waits=waits, **usual)


def test_the_answer_on_pools_names_no_setting_of_brokers_or_producers() -> None:
    lane = f"{POOL},{OF_BROKER},{OF_PRODUCER}"
    slow = row_of(CONSUMER_MEMORY, scenario=lane, client_id="app", wait_ms_max=40.0, throughput_ratio=0.5)
    rows = [memory_row("consumers", "captured"), memory_row("consumers", lane, waits=3)]
    asked: dict[Query, list[Row]] = {
        memory_lanes: rows,
        hungry_consumers: [row_of(CONSUMER_MEMORY)],
        slowed_consumers: [slow],
    }
    found = findings(asked, {algorithms.CONSUMER_MEMORY: ("captured", lane)})
    assert ". With buffer.memory=1 MiB, app is slowed most" in sentence(found, 12)


def test_a_pool_without_bound_is_a_lane_like_any_other() -> None:
    lanes = ("captured", "consumer.buffer.memory=none", POOL)
    rows = [memory_row("consumers", lane) for lane in lanes]
    found = findings(
        {memory_lanes: rows, hungry_consumers: [row_of(CONSUMER_MEMORY)]}, {algorithms.CONSUMER_MEMORY: lanes}
    )
    assert "Nobody would wait in any of the replayed pools, the smallest of which is 1.0 MiB" in sentence(found, 12)


def closed(lane: str, wait: float) -> Row:
    told = Row(
        longest_wait_ms=wait, partition="orders-7", share_of_available=0.4, share_of_bytes=0.1, client_id="billing"
    )
    return Row(
        reader="consumer", scenario=lane, longest=told, waiting=int(wait > 0), took=9.0, never=False, given_up=0,
        requests=9, cut=0, held=500, bound=8 << 20, own_bound=8 << 20,
        catch_up_ms_range=None, longest_wait_ms_range=None, held_bytes_range=None,
    )  # fmt: skip


def test_a_lane_with_limits_of_followers_only_is_no_other_lane_for_consumers() -> None:
    lanes = ("captured", "replica.fetch.max.bytes=16KiB")
    found = findings({closed_lanes: [closed(lane, 105) for lane in lanes]}, {algorithms.FETCH_MAX_BYTES: lanes})
    assert "replica" not in sentence(found, 7)
    assert "before 4.0. --set" in sentence(found, 6)
