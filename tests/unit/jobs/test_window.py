"""--from and --to, `from:` and `to:`: what they mean, what their faults are, and which run they give."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.replays.capture_window import with_window_as_times
from jobs.scenarios.moment import Moment, parse_moment
from jobs.scenarios.scenario import Scenario
from jobs.scenarios.scenario_file import resolve_scenario
from udfs.columns.time_units import NEVER
from udfs.errors import ScenarioError
from udfs.replay.shared.window import Window

NOON = 1_769_860_800_000_000
"""2026-01-31T12:00:00Z in us."""
SECOND = 1_000_000


def scenario(begin: str | None = None, end: str | None = None, path: Path | None = None) -> Scenario:
    return resolve_scenario(None if path is None else str(path), window={"from": begin, "to": end})


@pytest.mark.parametrize(
    ("text", "moment", "spelt"),
    [
        ("2026-01-31T12:00:00Z", Moment(NOON), "2026-01-31T12:00:00Z"),
        ("2026-01-31T13:00+01:00", Moment(NOON), "2026-01-31T12:00:00Z"),
        ("2026-01-31T12:00:00.000005Z", Moment(NOON + 5), "2026-01-31T12:00:00.000005Z"),
        ("90s", Moment(90 * SECOND, True), "90s"),
        ("1m30s", Moment(90 * SECOND, True), "90s"),
        ("1.5min", Moment(90 * SECOND, True), "90s"),
        ("250ms", Moment(250_000, True), "0.25s"),
        ("0s", Moment(0, True), "0s"),
    ],
)
def test_a_time_is_written_in_one_form(text: str, moment: Moment, spelt: str) -> None:
    assert (parse_moment(text), str(moment), parse_moment(spelt)) == (moment, spelt, moment)


@pytest.mark.parametrize("text", ["5", "5x", "-5m", "yesterday", "2026-01-31", "2026-01-31T12:00:00", "0.1us", ""])
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"time zone|is not a time|whole number"):
        parse_moment(text)


def test_all_faults_of_a_window_are_reported_with_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("form: 5m\nfrom: 5x\nto: [1m, 2m]\nreplay: {session_cache: {}}\n")
    with pytest.raises(ScenarioError) as raised:
        scenario(path=path)
    assert [fault.removeprefix(f"{path}:") for fault in raised.value.faults] == [
        "1: unknown key `form`; did you mean `from`?",
        "2: from: `5x` is not a time such as 2026-01-31T12:00:00Z, or one after the capture's begin such as 90s, 5m or "
        "1h30m",
        "3: `to` must be one value",
    ]
    with pytest.raises(ScenarioError) as raised:
        scenario("noon", "5y", path)
    assert [fault.partition(": `")[0] for fault in raised.value.faults if fault.startswith("--")] == ["--from", "--to"]


@pytest.mark.parametrize(("begin", "end"), [("5m", "300s"), ("2m", "1m"), ("2026-01-31T12:00:00Z",) * 2])
def test_a_window_that_ends_before_it_begins_is_refused(begin: str, end: str) -> None:
    with pytest.raises(ScenarioError, match=r"--to: the window ends at .*, and begins no earlier than that"):
        scenario(begin, end)


def test_a_flag_overrides_that_end_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("from: 1m\nto: 2m\n")
    found = scenario(None, "3m", path)
    assert (found.begin, found.end) == (Moment(60 * SECOND, True), Moment(180 * SECOND, True))


def test_each_window_is_a_run_of_its_own_and_without_one_the_run_has_the_id_as_before(tmp_path: Path) -> None:
    ids = {scenario().scenario_id, scenario("5m").scenario_id, scenario(None, "5m").scenario_id}
    assert len(ids) == 3
    assert scenario("5m").scenario_id == scenario("300s").scenario_id
    assert scenario("5m").without_window.scenario_id == scenario().scenario_id
    path = tmp_path / "x.yaml"
    path.write_text(scenario("5m", "6m").to_json())
    assert scenario(path=path).scenario_id == scenario("5m", "6m").scenario_id


@pytest.mark.parametrize(
    ("begin", "end", "window"),
    [
        ("10s", "20s", Window(NOON + 10 * SECOND, NOON + 20 * SECOND)),
        ("2026-01-31T12:00:10Z", "1m", Window(NOON + 10 * SECOND)),
        ("0s", "1h", Window()),
        ("2026-01-31T11:00:00Z", "2026-01-31T12:00:20Z", Window(end=NOON + 20 * SECOND)),
        (None, None, Window()),
    ],
)
def test_an_end_of_a_window_outside_the_times_of_the_capture_is_no_end(
    begin: str | None, end: str | None, window: Window
) -> None:
    """The capture lasts from noon to 30 s later."""
    assert with_window_as_times(scenario(begin, end), NOON, NOON + 30 * SECOND).window == window


def test_the_last_moment_of_the_capture_is_in_a_window_without_end() -> None:
    assert with_window_as_times(scenario(None, "30s"), NOON, NOON + 30 * SECOND).window.end < NEVER
