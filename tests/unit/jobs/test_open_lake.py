"""A lake that lacks a replay names the command that makes it."""

from __future__ import annotations

import re
from unittest.mock import Mock

import pytest

from jobs.open_lake import OpenLake
from jobs.replays.algorithms import ALGORITHMS
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.scenarios.settings import ON_REQUEST
from udfs.errors import LakeError


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_command_gives_lanes_to_the_replay_and_to_all_that_it_makes_anew(algorithm: str) -> None:
    lake = OpenLake(Mock(), "/lake", "capture", {})
    with pytest.raises(LakeError) as told:
        lake.lanes(algorithm)
    (command,) = re.findall("`(.*)`", str(told.value))
    assert " --lake=/lake " in command
    scenario = resolve_scenario(None, re.findall(r"--set=(\S+)", command), [])
    made = set(ALGORITHMS) - ON_REQUEST if algorithm not in ON_REQUEST else {algorithm}
    assert algorithm in made
    assert made <= {name for name in scenario.algorithms if len(scenario.lanes(name)) > 1}
