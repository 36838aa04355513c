"""The usual aim of a replay. A run searches for it if no lane of its grid ends the harm that captured settings do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame

from jobs.find.judgement import meets_constraints
from jobs.find.lane_outcomes import outcomes_of_lanes
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.batch_split.answers import MOST_SPLIT_RATE
from jobs.replays.ranged import LEAST_MS
from jobs.scenarios.aims import Aim, Constraint, Span
from jobs.scenarios.chosen_grids import OF_CONSUMERS, OF_FOLLOWERS, PRODUCER_BUFFER, FetchLimitKeys
from jobs.scenarios.scenario import Lane
from jobs.scenarios.settings import setting_of
from schemas.tables import algorithms
from udfs.replay.batch_split.settings import BATCH_SIZE

ROUNDS = 2
"""One round for a grid, and one for lanes between the best lane and its neighbours. They find a value to within a few
percent, which is enough for an aim that no user has named.
"""
FEW_SPLITS = (Constraint("split_rate", "<=", MOST_SPLIT_RATE), Constraint("failed", "=", 0))
SHORT_WAITS = (Constraint("longest_wait", "<=", LEAST_MS),)
NO_WAITS = (Constraint("producer_waits", "=", 0), Constraint("producer_failed", "=", 0))


def unmet_aim(source: Source, algorithm: Algorithm, packed: DataFrame) -> Aim | None:
    """The usual aim of the replay, if the scenario's grid varies a setting of that aim and no lane meets it, not even
    the captured one; otherwise None. Also None if a search for an aim has made the lanes already.

    packed: the rows of a replay of the scenario's lanes.
    """
    scenario = source.run.scenario
    if algorithm.name in scenario.listed or algorithm.name not in USUAL_AIMS:
        return None
    lanes = scenario.lanes(algorithm.name)
    aim = usual_aim(algorithm.name, lanes)
    if aim is None:
        return None
    is_met = any(meets_constraints(aim.where, outcomes) for outcomes in outcomes_of_lanes(packed, aim, lanes))
    return None if is_met else aim


def usual_aim(algorithm: str, lanes: Sequence[Lane]) -> Aim | None:
    """The usual aim of a replay if its lanes vary a setting of that aim; otherwise None."""
    for key, aim_for in USUAL_AIMS[algorithm].items():
        values = [int(lane.settings[key]) for lane in lanes if key in lane.settings]
        if values:
            return aim_for(values)
    return None


def aim_for_batch_size(replayed: Sequence[int]) -> Aim:
    """The largest batch.size with few splits, from the least usual one to the largest that was replayed."""
    least, _ = setting_of(BATCH_SIZE).searched_span
    over = {BATCH_SIZE: Span(min(least, *replayed), max(replayed))}
    return Aim(algorithms.BATCH_SPLIT, BATCH_SIZE, is_least=False, where=FEW_SPLITS, over=over, rounds=ROUNDS)


def aim_for_memory(replayed: Sequence[int]) -> Aim:
    """The least buffer.memory without waits, from the least that was replayed to the largest usual one."""
    _, most = setting_of(PRODUCER_BUFFER).searched_span
    over = {PRODUCER_BUFFER: Span(min(replayed), max(most, *replayed))}
    return Aim(algorithms.CONSUMER_MEMORY, PRODUCER_BUFFER, is_least=True, where=NO_WAITS, over=over, rounds=ROUNDS)


def aim_for_fetch_limits(limits: FetchLimitKeys, replayed: Sequence[int]) -> Aim:
    """The shortest catch-up with waits too short to matter, over both limits of one kind of reader: doubled values and
    those that were replayed.
    """
    over = {key: doublings_in(*setting_of(key).searched_span) for key in limits}
    over[limits.response] = tuple(sorted({*over[limits.response], *replayed}))
    return Aim(algorithms.FETCH_MAX_BYTES, "catch_up", is_least=True, where=SHORT_WAITS, over=over, rounds=1)


def doublings_in(least: int, most: int) -> tuple[int, ...]:
    """The least value and its doubles, up to the most.

    >>> doublings_in(64, 300)
    (64, 128, 256)
    """
    return tuple(least << times for times in range((most // least).bit_length()))


USUAL_AIMS: Mapping[str, Mapping[str, Callable[[Sequence[int]], Aim]]] = {
    algorithms.BATCH_SPLIT: {BATCH_SIZE: aim_for_batch_size},
    algorithms.CONSUMER_MEMORY: {PRODUCER_BUFFER: aim_for_memory},
    algorithms.FETCH_MAX_BYTES: {
        limits.response: partial(aim_for_fetch_limits, limits) for limits in (OF_CONSUMERS, OF_FOLLOWERS)
    },
}
"""For each replay and setting that lanes vary, the function from its replayed values to the usual aim. The other
replays say what is enough, whatever their lanes are.
"""
LANES_ALONE = (algorithms.FETCH_MAX_BYTES,)
"""Replays whose usual aim only says which further lanes to replay. The settings are then advised for each client, as
with lanes of a grid; that helps even if no lane meets the aim.
"""
