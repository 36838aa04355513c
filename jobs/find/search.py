"""The search for the lane that meets an aim best. It replays lanes in rounds, each guided by the rounds before.

Outcomes neither rise nor fall steadily with a setting, so the search does not bisect. The first round is a grid over
all settings. Each later round adds lanes between the best lane and its neighbours, between two neighbours of which one
meets the constraints and the other does not, around the lanes of the trade-off, and at random, with a fixed seed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite

import numpy as np

from jobs.find.axes import Point, SearchAxis, representative_point
from jobs.find.judgement import Outcomes
from jobs.find.proposals import first_grid, next_points, points_at_range_ends
from jobs.find.search_state import Judged, Search
from jobs.scenarios.aims import Aim
from jobs.scenarios.scenario import Lane
from jobs.scenarios.settings import Value

OutcomesOf = Callable[[Sequence[Lane]], Mapping[str, Outcomes]]
"""Replays lanes and returns their outcomes by the lanes' names."""
WITHOUT_GAIN = 2
"""The search ends after this many rounds without a better lane."""


def run_search(
    aim: Aim, axes: tuple[SearchAxis, ...], in_force: Mapping[str, Value], outcomes_of: OutcomesOf
) -> Search:
    """Replay lanes, round after round, until WITHOUT_GAIN rounds bring nothing better or the aim's rounds are used up.

    in_force: for each setting the value in lanes that do not change it. outcomes_of: replays lanes and returns their
    outcomes. The same arguments give the same lanes.
    """
    running = Search(aim, axes, in_force)
    random = np.random.default_rng(zlib.crc32(str(aim).encode()))
    points, without_gain = [running.captured, *first_grid(axes)], 0
    while points and running.rounds < aim.rounds and without_gain < WITHOUT_GAIN:
        before = running.judged[running.best] if running.tried else None
        replay_points(running, points, outcomes_of)
        after = running.judged[running.best]
        without_gain = without_gain + 1 if before is not None and not is_gain(running, before, after) else 0
        points = next_points(running, random)
    for _ in range(2):  # first coarsely, then between the points where lanes begin to do worse
        replay_points(running, points_at_range_ends(running), outcomes_of)
    return running


def is_gain(running: Search, before: Judged, after: Judged) -> bool:
    """Whether a round brought a lane that is better by more than the aim's step.

    before, after: the best lane, as judged before the round and after it.
    """
    if after.failure < before.failure or before.score == inf > after.score:
        return True
    return isfinite(before.score) and after.score < before.score - running.tolerance * abs(before.score)


def replay_points(running: Search, points: Iterable[Point], outcomes_of: OutcomesOf) -> None:
    """Replay the lanes of the points that were not tried yet. If several lanes cannot differ, only one is replayed."""
    wanted = [point for point in dict.fromkeys(points) if point not in running.tried]
    if not wanted:
        return
    stand_ins = {point: representative_point(running.axes, point) for point in wanted}
    missing = [point for point in dict.fromkeys(stand_ins.values()) if point not in running.tried]
    lanes = {point: running.lane(point) for point in missing}
    outcomes = outcomes_of(list(lanes.values())) if lanes else {}
    came_to = {point: outcomes[lane.name] for point, lane in lanes.items()}
    known = running.tried | came_to
    running.note(came_to | {point: known[stand_in] for point, stand_in in stand_ins.items()})
    running.replayed += len(missing)
    running.rounds += 1
