"""Which lanes of memory take their responses from the closed loop, and which of them share it."""

from __future__ import annotations

from jobs.replays.consumer_memory.fetch_limits import distinct_fetch_limits
from jobs.scenarios.scenario_file import resolve_scenario
from udfs.replay.shared.lanes import AS_CAPTURED

MIB = 1 << 20


def limits(*sets: str) -> tuple[list[int], list[int], list[int], list[int]]:
    """(the number of each lane; for each number fetch.max.bytes, max.poll.records and the time for a record)."""
    scenario = resolve_scenario(None, sets)
    numbers, found = distinct_fetch_limits(scenario.lanes("consumer_memory"), scenario.captured)
    clients = found.consumer_client
    of = (found.consumer["max_bytes"], clients["max_poll_records"], clients["us_per_record"])
    max_bytes, most_records, us_per_record = (values.tolist() for values in of)
    return numbers.tolist(), max_bytes, most_records, us_per_record


def test_lanes_that_do_not_change_fetches_take_the_captured_responses() -> None:
    numbers, max_bytes, _, _ = limits("consumer.buffer.memory=1MiB,2MiB", "memory.pool=strict", "batch.size=1,2")
    assert (set(numbers), max_bytes) == ({0}, [AS_CAPTURED])


def test_a_grid_of_pools_and_fetch_limits_is_one_closed_loop_for_each_limit() -> None:
    numbers, max_bytes, polls, _ = limits("consumer.buffer.memory=8MiB,9MiB", "consumer.fetch.max.bytes=1MiB,2MiB")
    assert max_bytes == [AS_CAPTURED, MIB, 2 * MIB]
    assert numbers == [0, 1, 1, 2, 2]
    assert polls == [500, 500, 500]


def test_a_pace_needs_the_closed_loop_only_if_another_setting_changes_fetches() -> None:
    assert limits("processing.us.per.record=7")[0] == [0, 0]
    numbers, _, polls, pace = limits("processing.us.per.record=7", "max.poll.records=10")
    assert (numbers, polls, pace) == ([0, 1], [500, 10], [AS_CAPTURED, 7])
