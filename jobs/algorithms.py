"""The replays there are."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.algorithm import Algorithm
from jobs.batch_split import BATCH_SPLITS
from jobs.fetch_limits import FETCH_LIMITS
from jobs.scenario import Scenario

ALGORITHMS: Mapping[str, Algorithm] = {algorithm.name: algorithm for algorithm in (FETCH_LIMITS, BATCH_SPLITS)}
"""By name, in the order in which they run and are shown."""


def asked(scenario: Scenario) -> list[Algorithm]:
    """Those that a scenario replays."""
    return [algorithm for name, algorithm in ALGORITHMS.items() if name in scenario.algorithms]
