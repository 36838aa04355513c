"""Limits as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.scenarios.limit_schedule import format_schedule, parse_schedule
from jobs.scenarios.scenario_file import resolve_scenario
from udfs.errors import ScenarioError
from udfs.replay.partition_limits.schedule import UNLIMITED, Schedule

NOON_US = 1_769_860_800_000_000
CHANGING = "4000 until 2026-01-31T12:00:00Z then 6000"


def test_a_number_holds_for_all_time() -> None:
    assert parse_schedule("4_000") == Schedule((-UNLIMITED,), (4000,))


def test_a_limit_may_change_at_a_time() -> None:
    assert parse_schedule(CHANGING) == Schedule((-UNLIMITED, NOON_US), (4000, 6000))
    assert parse_schedule("none until 2026-01-31T13:00:00+01:00 then 5").values == (UNLIMITED, 5)


@pytest.mark.parametrize("text", ["4000", "none", CHANGING, f"{CHANGING} until 2026-02-01T00:00:00.000001Z then none"])
def test_a_limit_reads_back_from_its_spelling(text: str) -> None:
    assert format_schedule(parse_schedule(text)) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("many", "is not a limit such as 4000, none"),
        ("0", "between 1 and"),
        ("5 until noon then 6", "`noon` is no ISO 8601 time"),
        ("5 until 2026-01-31T12:00:00 then 6", "has no time zone"),
        ("5 until 9999-12-31T23:59:59-12:00 then 6", "is no ISO 8601 time"),
        (f"{CHANGING} until 2026-01-31T12:00:00Z then 7", "times do not ascend"),
        ("5 until 2026-01-31T12:00:00Z", "is not a limit such as"),
    ],
)
def test_what_is_no_limit_is_told(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told) as raised:
        parse_schedule(text)
    assert CHANGING in str(raised.value).partition("a limit such as 4000, none, or ")[2]


@pytest.mark.parametrize("value", [f"{{{CHANGING}: 5}}", "{2026-01-31: 5}", "[[4000, 2026-01-31T12:00:00Z, 6000]]"])
def test_a_limit_in_another_form_than_text_is_told_the_form(tmp_path: Path, value: str) -> None:
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
