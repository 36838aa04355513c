"""The replays there are."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.replays.algorithm import Algorithm
from jobs.replays.batch_split.job import BATCH_SPLIT
from jobs.replays.consumer_memory.job import CONSUMER_MEMORY
from jobs.replays.fetch_max_bytes.job import FETCH_MAX_BYTES
from jobs.replays.partition_limits.job import PARTITION_LIMITS
from jobs.replays.session_cache.job import SESSION_CACHE
from jobs.scenarios.scenario import Scenario

ALGORITHMS: Mapping[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (FETCH_MAX_BYTES, CONSUMER_MEMORY, SESSION_CACHE, BATCH_SPLIT, PARTITION_LIMITS)
}
"""By name, in the order in which they run and are shown."""


def algorithms_to_replay(scenario: Scenario) -> list[Algorithm]:
    """The algorithms that a scenario replays, in the order in which they run."""
    return [algorithm for name, algorithm in ALGORITHMS.items() if name in scenario.algorithms]
