"""What to go on looking for where no lane that was asked for answers what its replay is asked."""

from __future__ import annotations

from pyspark.sql import DataFrame

from jobs.find.judgement import meets
from jobs.find.lane_outcomes import outcomes_of_lanes
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.batch_split.answers import MOST_SPLIT_RATE
from jobs.scenarios.aims import Aim, Constraint, Span
from jobs.scenarios.scenario import Lane
from jobs.scenarios.settings import setting_of
from schemas.tables import algorithms
from udfs.replay.batch_split.settings import BATCH_SIZE

FEW_SPLITS = (Constraint("split_rate", "<=", MOST_SPLIT_RATE), Constraint("failed", "=", 0))
"""What must hold of a batch.size that is called safe. The other replays say what is enough whatever lanes they have."""
ROUNDS = 2
"""A grid, and lanes between its best lane and that lane's neighbours: to a few percent, which nobody asked for."""


def unmet_aim(source: Source, algorithm: Algorithm, packed: DataFrame) -> Aim | None:
    """The largest batch.size with few splits, if the scenario's grid varies it and no lane of the grid has few.

    packed: the rows of a replay of the scenario's lanes. None where lanes were looked for before, as for an aim.
    """
    scenario = source.run.scenario
    if algorithm.name != algorithms.BATCH_SPLIT or algorithm.name in scenario.listed:
        return None
    lanes = [lane for lane in scenario.lanes(algorithm.name) if BATCH_SIZE in lane.settings]
    if not lanes:
        return None
    aim = safe_batch_size(lanes)
    figures = outcomes_of_lanes(packed, aim)
    return None if any(meets(aim.where, figures[lane.name]) for lane in lanes) else aim


def safe_batch_size(lanes: list[Lane]) -> Aim:
    """The largest batch.size with few splits, from the least that is usual to the largest of these lanes."""
    sizes = [int(lane.settings[BATCH_SIZE]) for lane in lanes]
    least, _ = setting_of(BATCH_SIZE).searched_span
    over = {BATCH_SIZE: Span(min(least, *sizes), max(sizes))}
    return Aim(algorithms.BATCH_SPLIT, BATCH_SIZE, is_least=False, where=FEW_SPLITS, over=over, rounds=ROUNDS)
