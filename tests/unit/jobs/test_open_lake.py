"""A lake that lacks a replay names the command that makes it."""

from __future__ import annotations

import re
from unittest.mock import Mock

import pytest

from jobs.lake_views import DOCS
from jobs.open_lake import TABLES, OpenLake, Replay
from jobs.replays.algorithms import ALGORITHMS
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.scenarios.settings import ON_REQUEST
from udfs.errors import ArgumentError, LakeError


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_command_sets_lanes_for_the_missing_replay_and_for_all_others_that_it_makes(algorithm: str) -> None:
    lake = OpenLake(Mock(), "/lake", "capture", {})
    with pytest.raises(LakeError) as told:
        lake.lanes(algorithm)
    (command,) = re.findall("`(.*)`", str(told.value))
    assert " --lake=/lake " in command
    scenario = resolve_scenario(None, re.findall(r"--set=(\S+)", command), [])
    made = set(ALGORITHMS) - ON_REQUEST if algorithm not in ON_REQUEST else {algorithm}
    assert algorithm in made
    assert made <= {name for name in scenario.algorithms if len(scenario.lanes(name)) > 1}


def test_the_message_on_an_unknown_table_has_the_nearest_name_and_all_others() -> None:
    lake = OpenLake(Mock(), "/lake", "capture", {})
    with pytest.raises(ArgumentError) as told:
        lake.rows("fetch_fairnes")
    assert str(told.value).startswith("open_lake: no table is called `fetch_fairnes`; did you mean `fetch_fairness`? ")
    assert str(told.value).endswith(f"The tables are {', '.join((*TABLES, *DOCS))}")


def test_a_lake_at_the_end_of_a_cell_is_shown_in_a_line() -> None:
    lake = OpenLake(Mock(), "/lake", "c0ffee", {"session_cache": Replay("run", ["captured", "slots=8"])})
    assert repr(lake) == "OpenLake(/lake, capture set c0ffee, replays: session_cache (2 lanes))"
