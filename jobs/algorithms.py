"""The replays there are."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.algorithm import Algorithm
from jobs.batch_split import BATCH_SPLITS
from jobs.consumer_memory import CONSUMER_MEMORY_REPLAY
from jobs.fetch_limits import FETCH_LIMITS
from jobs.partition_limits import PARTITION_LIMITS
from jobs.scenario import Scenario
from jobs.session_cache import SESSION_CACHE_REPLAY

ALGORITHMS: Mapping[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (FETCH_LIMITS, CONSUMER_MEMORY_REPLAY, SESSION_CACHE_REPLAY, BATCH_SPLITS, PARTITION_LIMITS)
}
"""By name, in the order in which they run and are shown."""


def asked(scenario: Scenario) -> list[Algorithm]:
    """Those that a scenario replays."""
    return [algorithm for name, algorithm in ALGORITHMS.items() if name in scenario.algorithms]
