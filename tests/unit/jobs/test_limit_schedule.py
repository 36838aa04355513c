"""Limits that change with time, in scenario files and flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.scenarios.scenario_file import resolve_scenario
from udfs.errors import ScenarioError

CHANGING = "4000 until 2026-01-31T12:00:00Z then 6000"


@pytest.mark.parametrize("value", [f"{{{CHANGING}: 5}}", "{2026-01-31: 5}", "[[4000, 2026-01-31T12:00:00Z, 6000]]"])
def test_the_message_on_a_limit_that_is_no_text_shows_the_form(tmp_path: Path, value: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(f"replay:\n  partition_limits:\n    max.broker.partitions: {value}\n")
    with pytest.raises(ScenarioError) as raised:
        resolve_scenario(str(file))
    (told,) = raised.value.faults
    assert told.startswith(f"{file}:3: `replay.partition_limits.max.broker.partitions")
    assert told.endswith(f"a limit such as 4000, none, or `{CHANGING}`")


def test_limits_are_lanes_in_the_order_of_their_values() -> None:
    scenario = resolve_scenario(None, [f"max.partitions=none,{CHANGING},500"])
    assert [lane.name for lane in scenario.lanes("partition_limits")] == [
        "captured", "max.partitions=500", f"max.partitions={CHANGING}", "max.partitions=none",
    ]  # fmt: skip


def test_a_limit_cannot_be_stated_as_captured() -> None:
    with pytest.raises(ScenarioError, match="--captured"):
        resolve_scenario(None, [], ["max.partitions=5"])
