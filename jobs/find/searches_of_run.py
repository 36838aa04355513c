"""The searches of a run: for each aim a search, on the capture set's silver tables, for lanes that meet it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jobs.find.axes import axes_of_aim
from jobs.find.conclusions import Settled, settle_search
from jobs.find.lane_outcomes import LaneOutcomes
from jobs.find.reach import reach_by_setting
from jobs.find.search import run_search
from jobs.find.whom import check_whom
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.algorithms import algorithms_to_replay
from jobs.run import Run
from jobs.scenarios.aims import Aim
from jobs.terminal.progress import stage
from udfs.errors import CaptureError


def search_for_aims(source: Source) -> list[Settled]:
    """The search for each aim. If the captures lack what an aim's replay needs, the aim is left out; the replay is
    refused later, with the reason.
    """
    scenario = source.run.scenario
    done = []
    for algorithm in algorithms_to_replay(scenario):
        aim = scenario.aims.get(algorithm.name)
        if aim is None:
            continue
        try:
            done.append(search_for_aim(source, algorithm, aim))
        except CaptureError:
            # Its replay says why, with all others that are refused.
            continue
    return done


def search_for_aim(source: Source, algorithm: Algorithm, aim: Aim) -> Settled:
    """The search for one aim. Raises CaptureError if the captures lack what its replay needs, and ArgumentError if they
    have no client or topic that the aim is for.
    """
    with stage(f"find {algorithm.name}", source.spark):
        check_whom(source, algorithm, aim)
        axes, replay = axes_of_aim(aim, reach_by_setting(source, algorithm.name)), LaneOutcomes(source, algorithm, aim)
        best = run_search(aim, axes, source.run.in_force, replay)
        return settle_search(best, source.run.scenario.lanes(algorithm.name)[1:], replay, replay.own)


def add_lanes_of_searches(run: Run, searches: Iterable[Settled]) -> Run:
    """The run with the lanes that searches keep, in addition to those of the scenario's grids."""
    listed = dict(run.scenario.listed)
    for done in searches:
        name = done.search.aim.algorithm
        lanes = [*run.scenario.lanes(name)[1:], *done.lanes]
        listed[name] = tuple({lane.name: lane for lane in lanes}.values())
    return replace(run, scenario=replace(run.scenario, listed=listed))
