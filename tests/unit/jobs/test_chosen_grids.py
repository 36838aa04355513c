"""Grids if nobody says what to replay: a few values around what a capture shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.scenarios.chosen_grids import (
    BROKER_PARTITIONS,
    CONSUMER_BUFFER,
    OF_CONSUMERS,
    OF_FOLLOWERS,
    PRODUCER_BUFFER,
    Amounts,
    FetchAmounts,
    choose_grids,
)
from jobs.scenarios.scenario import CAPTURED_LANE, with_grids
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.scenarios.scenario_text import scenario_file_text
from udfs.replay.batch_split.settings import BATCH_SIZE
from udfs.replay.session_cache.settings import SLOTS

KIB, MIB = 1 << 10, 1 << 20
DEFAULTS = FetchAmounts(max_bytes=50 * MIB, partition_max_bytes=MIB, response=750_000, partition=400_000, held=900_000)
EVERYTHING = Amounts(
    consumers=DEFAULTS, followers=DEFAULTS, batch=40_000, readers=14, produced=17_000, sent=30_000, replicas=43
)


def test_every_replay_has_a_few_lanes_besides_the_captured_one() -> None:
    scenario = with_grids(resolve_scenario(None), choose_grids(EVERYTHING, {}))
    lanes = {name: scenario.lanes(name) for name in scenario.replay}
    assert {*lanes} == {"fetch_max_bytes", "consumer_memory", "session_cache", "batch_split", "partition_limits"}
    assert all(of[0].name == CAPTURED_LANE and 3 <= len(of) - 1 <= 12 for of in lanes.values())


def test_fetch_limits_go_from_the_largest_batch_to_what_requests_ask_for() -> None:
    grid = choose_grids(EVERYTHING, {})["fetch_max_bytes"]
    assert grid[OF_CONSUMERS.response] == (64 * KIB, 256 * KIB, MIB, 50 * MIB)
    assert grid[OF_CONSUMERS.partition] == (64 * KIB, 256 * KIB, MIB)


def test_fetch_limits_go_beyond_what_requests_ask_for_if_responses_fill_it() -> None:
    small = FetchAmounts(
        max_bytes=200_000, partition_max_bytes=60_000, response=199_000, partition=59_000, held=199_000
    )
    grid = choose_grids(replace(EVERYTHING, consumers=small), {})["fetch_max_bytes"]
    assert grid[OF_CONSUMERS.response] == (64 * KIB, 200_000, 256 * KIB, MIB)
    assert grid[OF_CONSUMERS.partition] == (64 * KIB, 128 * KIB, 256 * KIB)


def test_limits_of_followers_are_chosen_if_nobody_consumes() -> None:
    grids = choose_grids(replace(EVERYTHING, consumers=None), {})
    assert {*grids["fetch_max_bytes"]} == {*OF_FOLLOWERS}
    assert grids["consumer_memory"] == {PRODUCER_BUFFER: (32 * KIB, 128 * KIB, 512 * KIB)}


def test_pools_of_consumers_are_at_most_what_one_may_hold_and_buffers_of_producers_around_what_they_send() -> None:
    of_consumers = {CONSUMER_BUFFER: (64 * KIB, 256 * KIB, MIB)}
    of_producers = {PRODUCER_BUFFER: (32 * KIB, 128 * KIB, 512 * KIB)}
    assert choose_grids(EVERYTHING, {})["consumer_memory"] == of_consumers | of_producers
    assert choose_grids(replace(EVERYTHING, sent=None), {})["consumer_memory"] == of_consumers


@pytest.mark.parametrize(("readers", "slots"), [(1, (8, 16)), (14, (8, 16, 32)), (1000, (496, 1000, 2000))])
def test_slots_are_whole_shards_around_the_readers_of_a_broker(readers: int, slots: tuple[int, ...]) -> None:
    assert choose_grids(Amounts(readers=readers), {})["session_cache"] == {SLOTS: slots}


def test_batch_sizes_are_around_the_stated_one_or_else_around_what_batches_show() -> None:
    def base(produced: int, **stated: int) -> object:
        return choose_grids(Amounts(produced=produced), stated)["batch_split"][BATCH_SIZE][2]

    assert base(1_000) == 16 * KIB, "Kafka's default, of producers that send little at a time"
    assert base(130_000) == 128 * KIB
    assert base(130_000, **{BATCH_SIZE: 38_000}) == 38_000


def test_limits_on_partitions_are_around_what_the_fullest_broker_has() -> None:
    assert choose_grids(Amounts(replicas=43), {})["partition_limits"] == {BROKER_PARTITIONS: ("32", "43", "54", "86")}


def test_if_a_capture_shows_nothing_there_is_only_the_captured_lane_and_no_batch_is_replayed() -> None:
    grids = choose_grids(Amounts(), {})
    assert {*grids} == {"fetch_max_bytes", "consumer_memory", "session_cache", "partition_limits"}
    assert not any(grids.values())


def test_limits_stay_within_kafkas_bounds() -> None:
    most = 2**31 - 1
    no_bound = FetchAmounts(max_bytes=most, partition_max_bytes=most, response=most, partition=most, held=most)
    grid = choose_grids(Amounts(consumers=no_bound, batch=2_000), {})["fetch_max_bytes"]
    assert (grid[OF_CONSUMERS.response][-1], grid[OF_CONSUMERS.partition][-1]) == (most, most)


def test_chosen_grids_can_be_stated_as_a_scenario(tmp_path: Path) -> None:
    named = resolve_scenario(None, [], ["batch.size=38000", "topic.orders.max.message.bytes=40000"])
    assert not named.names_replays
    chosen = with_grids(named, choose_grids(EVERYTHING, named.stated))
    (tmp_path / "chosen.yaml").write_text(scenario_file_text(chosen, ["/captures/one.pcap"]))
    stated = resolve_scenario(str(tmp_path / "chosen.yaml"))
    assert (stated, stated.assumed) == (chosen, chosen.assumed)
    assert stated.names_replays
    assert stated.captures == ("/captures/one.pcap",)


@pytest.mark.parametrize("sets", [["slots=8"], ["producer.batch.size=16KiB"]])
def test_whoever_names_a_setting_says_what_to_replay(sets: list[str]) -> None:
    assert resolve_scenario(None, sets).names_replays
