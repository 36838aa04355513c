"""The search for the lane that meets an aim best: rounds of lanes, each where those before leave something open.

What lanes come to neither rises nor falls steadily with a setting, so nothing is bisected. The first round lays a grid
over all settings. Each that follows puts lanes between neighbours of the best lane, between neighbours of which one
meets the constraints and one does not, around the lanes of the trade-off, and, seeded, anywhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite

import numpy as np

from jobs.find.axes import Axis, Point, representative
from jobs.find.judgement import Outcomes
from jobs.find.proposals import ends_of_range, first_grid, next_points
from jobs.find.tried import Judged, Search
from jobs.scenarios.aims import Aim
from jobs.scenarios.scenario import Lane
from jobs.scenarios.settings import Value

OutcomesOf = Callable[[Sequence[Lane]], Mapping[str, Outcomes]]
"""What lanes come to, by their names."""
WITHOUT_GAIN = 2
"""After so many rounds without a better lane the search ends."""


def search(aim: Aim, axes: tuple[Axis, ...], in_force: Mapping[str, Value], outcomes_of: OutcomesOf) -> Search:
    """Replay lanes until the aim moves by less than its step, or for so many rounds as it allows. The same arguments
    give the same lanes.
    """
    so_far = Search(aim, axes, in_force)
    random = np.random.default_rng(zlib.crc32(str(aim).encode()))
    points, without_gain = [so_far.captured, *first_grid(axes)], 0
    while points and so_far.rounds < aim.rounds and without_gain < WITHOUT_GAIN:
        before = so_far.judged[so_far.best] if so_far.tried else None
        replay(so_far, points, outcomes_of)
        after = so_far.judged[so_far.best]
        without_gain = without_gain + 1 if before is not None and not is_gain(so_far, before, after) else 0
        points = next_points(so_far, random)
    for more in (ends_of_range, ends_of_range):
        replay(so_far, more(so_far), outcomes_of)
    return so_far


def is_gain(so_far: Search, before: Judged, after: Judged) -> bool:
    """Whether a round brought a lane that is better by more than the step."""
    if after.failure < before.failure or before.score == inf > after.score:
        return True
    return isfinite(before.score) and after.score < before.score - so_far.tolerance * abs(before.score)


def replay(so_far: Search, points: Iterable[Point], outcomes_of: OutcomesOf) -> None:
    """Have the lanes of points replayed that were not yet; of those that cannot differ only one."""
    wanted = [point for point in dict.fromkeys(points) if point not in so_far.tried]
    if not wanted:
        return
    stand_ins = {point: representative(so_far.axes, point) for point in wanted}
    missing = [point for point in dict.fromkeys(stand_ins.values()) if point not in so_far.tried]
    lanes = {point: so_far.lane(point) for point in missing}
    outcomes = outcomes_of(list(lanes.values())) if lanes else {}
    came_to = {point: outcomes[lane.name] for point, lane in lanes.items()}
    so_far.note(came_to | {point: (so_far.tried | came_to)[of] for point, of in stand_ins.items()})
    so_far.replayed += len(missing)
    so_far.rounds += 1
