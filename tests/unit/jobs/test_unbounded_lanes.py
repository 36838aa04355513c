"""A lane may lift a bound that was in force, or have one that was not."""

from __future__ import annotations

from jobs.replays.consumer_memory.job import lanes_and_fetch_limits
from jobs.replays.partition_limits.job import lanes_for_limits
from jobs.scenarios.scenario_file import resolve_scenario
from udfs.replay.consumer_memory.settings import UNBOUNDED


def test_requests_queue_without_a_bound_if_a_lane_lifts_it() -> None:
    key = "broker.queued.max.request.bytes"
    scenario = resolve_scenario(None, [f"{key}=none,2000"], [f"{key}=1000"])
    lanes = lanes_and_fetch_limits(scenario)[0]
    assert lanes.broker["size"].tolist() == [1000, 2000, UNBOUNDED]


def test_a_consumers_pool_has_no_bound_unless_a_lane_proposes_one() -> None:
    scenario = resolve_scenario(None, ["consumer.buffer.memory=none,2000"])
    lanes = lanes_and_fetch_limits(scenario)[0]
    assert lanes.consumer["size"].tolist() == [UNBOUNDED, 2000, UNBOUNDED]


def test_a_producer_that_waits_for_memory_for_ever_does_not_give_up_at_once() -> None:
    """max.block.ms may be Java's Long.MAX_VALUE. In microseconds, and with a time added, it would overflow."""
    scenario = resolve_scenario(None, [], ["producer.max.block.ms=9223372036854775807"])
    lanes = lanes_and_fetch_limits(scenario)[0]
    assert 1 << 49 < lanes.producer["max_block_us"][0] < 1 << 62


def test_a_producer_has_the_stated_number_of_threads_or_one() -> None:
    key = "sending.threads"
    scenario = resolve_scenario(None, [f"{key}=1,8"], [f"{key}=16"])
    assert lanes_and_fetch_limits(scenario)[0].producer["threads"].tolist() == [16, 1, 8]
    default = resolve_scenario(None, [])
    assert lanes_and_fetch_limits(default)[0].producer["threads"].tolist() == [1]


def test_a_mutation_quota_may_be_a_fraction_and_may_be_lifted() -> None:
    key = "controller_mutation_rate"
    scenario = resolve_scenario(None, [f"{key}=none,0.5"], [f"{key}=5"])
    settings = lanes_for_limits(scenario, scenario.captured)
    assert settings.names == ("captured", f"{key}=0.5", f"{key}=none")
    assert settings.settings["mutation_rate"].tolist() == [5.0, 0.5, 0.0]


def test_a_broker_has_the_stated_number_of_network_threads_or_kafkas_three_and_a_consumer_has_none() -> None:
    key = "broker.num.network.threads"
    lanes = lanes_and_fetch_limits(resolve_scenario(None, [f"{key}=1"], [f"{key}=8"]))[0]
    assert (lanes.broker["network_threads"].tolist(), lanes.consumer["network_threads"].tolist()) == ([8, 1], [0, 0])
    default = lanes_and_fetch_limits(resolve_scenario(None, []))[0]
    assert default.broker["network_threads"].tolist() == [3]
