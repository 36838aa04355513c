"""What to go on looking for where what happens now hurts, and no lane that was asked for ends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from jobs.find.judgement import meets
from jobs.find.lane_outcomes import outcomes_of_lanes
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.batch_split.answers import MOST_SPLIT_RATE
from jobs.scenarios.aims import Aim, Constraint, Span
from jobs.scenarios.settings import setting_of
from schemas.tables import algorithms
from udfs.replay.batch_split.settings import BATCH_SIZE

BUFFER_MEMORY = "producer.buffer.memory"
ROUNDS = 2
"""A grid, and lanes between its best lane and that lane's neighbours: to a few percent, which nobody asked for."""
FEW_SPLITS = (Constraint("split_rate", "<=", MOST_SPLIT_RATE), Constraint("failed", "=", 0))
NO_WAITS = (Constraint("producer_waits", "=", 0), Constraint("producer_failed", "=", 0))


def unmet_aim(source: Source, algorithm: Algorithm, packed: DataFrame) -> Aim | None:
    """The aim that neither the captured settings nor a lane of the scenario's grid meets, if the grid is about it.

    packed: the rows of a replay of the scenario's lanes. None where lanes were looked for before, as for an aim.
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
    return None if any(meets(aim.where, of) for of in outcomes_of_lanes(packed, aim, lanes)) else aim


def safe_batch_size(replayed: Sequence[int]) -> Aim:
    """The largest batch.size with few splits, from the least that is usual to the largest that was replayed."""
    least, _ = setting_of(BATCH_SIZE).searched_span
    over = {BATCH_SIZE: Span(min(least, *replayed), max(replayed))}
    return Aim(algorithms.BATCH_SPLIT, BATCH_SIZE, is_least=False, where=FEW_SPLITS, over=over, rounds=ROUNDS)


def enough_memory(replayed: Sequence[int]) -> Aim:
    """The least buffer.memory without waits, from the least that was replayed to the most that is usual."""
    _, most = setting_of(BUFFER_MEMORY).searched_span
    over = {BUFFER_MEMORY: Span(min(replayed), max(most, *replayed))}
    return Aim(algorithms.CONSUMER_MEMORY, BUFFER_MEMORY, is_least=True, where=NO_WAITS, over=over, rounds=ROUNDS)


USUAL_AIMS: Mapping[str, tuple[str, Callable[[Sequence[int]], Aim]]] = {
    algorithms.BATCH_SPLIT: (BATCH_SIZE, safe_batch_size),
    algorithms.CONSUMER_MEMORY: (BUFFER_MEMORY, enough_memory),
}
"""By replay the setting that the aim is about, and the aim. The other replays say what is enough whatever their lanes,
or look for two settings at once, which takes too long for a run that was not asked to.
"""
