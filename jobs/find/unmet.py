"""The aim that is looked for unasked, where the captured settings do harm and no lane that was asked for ends that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from jobs.find.judgement import meets_constraints
from jobs.find.lane_outcomes import outcomes_of_lanes
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.batch_split.answers import MOST_SPLIT_RATE
from jobs.scenarios.aims import Aim, Constraint, Span
from jobs.scenarios.settings import setting_of
from schemas.tables import algorithms
from udfs.replay.batch_split.settings import BATCH_SIZE

BUFFER_MEMORY = "producer.buffer.memory"
ROUNDS = 2
"""One round for a grid, and one for lanes between the best lane and its neighbours. That finds a value to within a few
percent, which is enough for an aim that nobody asked for."""
FEW_SPLITS = (Constraint("split_rate", "<=", MOST_SPLIT_RATE), Constraint("failed", "=", 0))
NO_WAITS = (Constraint("producer_waits", "=", 0), Constraint("producer_failed", "=", 0))


def unmet_aim(source: Source, algorithm: Algorithm, packed: DataFrame) -> Aim | None:
    """The usual aim of the replay, if the scenario's grid varies its setting and no lane meets it, the captured one
    included; else None. None also where a search for an aim has made the lanes already.

    packed: the rows of a replay of the scenario's lanes.
    """
    scenario = source.run.scenario
    if algorithm.name in scenario.listed or algorithm.name not in USUAL_AIMS:
        return None
    lanes = scenario.lanes(algorithm.name)
    key, aim_over = USUAL_AIMS[algorithm.name]
    values = [int(lane.settings[key]) for lane in lanes if key in lane.settings]
    if not values:
        return None
    aim = aim_over(values)
    is_met = any(meets_constraints(aim.where, outcomes) for outcomes in outcomes_of_lanes(packed, aim, lanes))
    return None if is_met else aim


def aim_for_batch_size(replayed: Sequence[int]) -> Aim:
    """The largest batch.size with few splits, from the least that is usual to the largest that was replayed."""
    least, _ = setting_of(BATCH_SIZE).searched_span
    over = {BATCH_SIZE: Span(min(least, *replayed), max(replayed))}
    return Aim(algorithms.BATCH_SPLIT, BATCH_SIZE, is_least=False, where=FEW_SPLITS, over=over, rounds=ROUNDS)


def aim_for_memory(replayed: Sequence[int]) -> Aim:
    """The least buffer.memory without waits, from the least that was replayed to the most that is usual."""
    _, most = setting_of(BUFFER_MEMORY).searched_span
    over = {BUFFER_MEMORY: Span(min(replayed), max(most, *replayed))}
    return Aim(algorithms.CONSUMER_MEMORY, BUFFER_MEMORY, is_least=True, where=NO_WAITS, over=over, rounds=ROUNDS)


USUAL_AIMS: Mapping[str, tuple[str, Callable[[Sequence[int]], Aim]]] = {
    algorithms.BATCH_SPLIT: (BATCH_SIZE, aim_for_batch_size),
    algorithms.CONSUMER_MEMORY: (BUFFER_MEMORY, aim_for_memory),
}
"""By replay, the setting that its usual aim is about, and the function from replayed values to that aim.

The other replays say what is enough whatever their lanes, or would have to look for two settings at once, which takes
too long for a run that was not asked to.
"""
