"""The replays there are."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.replays.algorithm import Algorithm
from jobs.replays.batch_split import BATCH_SPLITS
from jobs.replays.consumer_memory import CONSUMER_MEMORY_REPLAY
from jobs.replays.fetch_limits import FETCH_LIMITS
from jobs.replays.partition_limits import PARTITION_LIMITS
from jobs.replays.session_cache import SESSION_CACHE_REPLAY
from jobs.scenarios.scenario import Scenario

ALGORITHMS: Mapping[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (FETCH_LIMITS, CONSUMER_MEMORY_REPLAY, SESSION_CACHE_REPLAY, BATCH_SPLITS, PARTITION_LIMITS)
}
"""By name, in the order in which they run and are shown."""


def asked(scenario: Scenario) -> list[Algorithm]:
    """Those that a scenario replays."""
    return [algorithm for name, algorithm in ALGORITHMS.items() if name in scenario.algorithms]
