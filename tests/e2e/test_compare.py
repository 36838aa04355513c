"""Two nights in one lake: what changed, and whether the first night predicted what the second one shows."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest

from jobs.cli import run_command
from jobs.open_lake import open_lake
from schemas.tables.gold import FETCH_RANGES
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from tests.e2e.conftest import Nights
from tests.lakes import queried

READER, LANE = "perf-consumer-client", "consumer.fetch.max.bytes=50MiB"
"""A client of both captures, and a lane. In the first capture some of its processes have 200,000 bytes, in the second
all have 50 MiB.
"""


@pytest.fixture(scope="module")
def told(nights: Nights) -> dict[str, Any]:
    """The JSON that `compare` prints of the lake."""
    return compared(f"--lake={nights.lake}")


def compared(*arguments: str) -> dict[str, Any]:
    """The JSON of one comparison."""
    with redirect_stdout(StringIO()) as out:
        assert run_command(["compare", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_the_newest_run_is_compared_with_the_one_before(nights: Nights, told: dict[str, Any]) -> None:
    assert (told["before"]["run_id"], told["after"]["run_id"]) == (nights.first.run_id, nights.second.run_id)
    assert (told["before"]["captures"], told["after"]["captures"]) == (["starve.pcap"], ["mixed.pcap"])


def test_compare_says_what_came_what_went_and_what_is_in_force_now(told: dict[str, Any]) -> None:
    lone = {(of["judgement"], of["kind"], of["scope"]) for of in told["changes"] if None in (of["before"], of["after"])}
    assert {("gone", "topic", "backlog"), ("new", "topic", "orders"), ("new", "client", "java-zstd")} <= lone
    (limit,) = [of for of in told["changes"] if (of["scope"], of["metric"]) == (READER, "consumer.fetch.max.bytes")]
    assert (limit["before"]["text"], limit["after"]["text"]) == ("200000, 52428800", "52428800")
    wait = next(of for of in told["changes"] if (of["scope"], of["metric"]) == (READER, "longest_wait_ms"))
    assert wait["judgement"] == "beyond"
    assert wait["before"]["low"] > wait["after"]["value"] == 0
    assert wait["after"]["high"] is None, "that nobody waits is exact"


def test_the_lane_that_is_in_force_now_is_the_prediction_and_is_stored(nights: Nights, told: dict[str, Any]) -> None:
    t = PREDICTIONS_CHECKED
    own = {of["metric"]: of for of in told["predictions"] if of["scope"] == READER}
    assert {(of["scenario"], of["is_changed"]) for of in own.values()} == {(LANE, True)}
    assert (own["longest_wait_ms"]["seen_by"], own["longest_wait_ms"]["is_hit"]) == ("capture", True)
    (row,) = nights.first.rows(
        FETCH_RANGES, where=f"client_id = '{READER}' AND scenario = '{LANE}' AND metric = 'catch_up_ms'"
    )
    assert [own["catch_up_ms"][end] for end in ("predicted", "p10", "p90")] == [row["value"], row["p10"], row["p90"]]
    unchanged = [of for of in told["predictions"] if not of["is_changed"]]
    assert {of["scenario"] for of in unchanged} == {"captured"}
    kept = queried(nights.lake, t)
    assert {row[t.check_id] for row in kept} == {f"{nights.first.run_id}-{nights.second.run_id}"}
    assert sorted((row[t.scope], row[t.metric], row[t.is_hit]) for row in kept) == sorted(
        (of["scope"], of["metric"], of["is_hit"]) for of in told["predictions"]
    )


def test_two_lakes_are_compared_as_two_runs_of_one(nights: Nights, told: dict[str, Any]) -> None:
    kept = queried(nights.lake, PREDICTIONS_CHECKED)
    found = compared(nights.first.path, nights.lake)
    assert found["before"]["lake"] == nights.first.path
    assert [found[part] for part in ("changes", "predictions")] == [told[part] for part in ("changes", "predictions")]
    again = queried(nights.lake, PREDICTIONS_CHECKED)
    assert sorted(map(str, again)) == sorted(map(str, kept))


@pytest.mark.parametrize("names", [["gone", "latest"], ["latest", "gone"]])
def test_an_unknown_run_is_refused_with_the_names_of_known_ones(
    nights: Nights, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["compare", *names, f"--lake={nights.lake}"]) == 2
    told = capsys.readouterr()
    runs = f"{nights.second.run_id}, {nights.first.run_id}"
    assert (told.out, told.err.splitlines()) == ("", [f"refetch: {nights.lake}: no run gone; the newest are {runs}"])


def test_a_run_is_not_compared_with_itself_and_the_first_has_none_before(
    nights: Nights, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["compare", nights.second.run_id, "latest", f"--lake={nights.lake}"]) == 2
    assert f"both are run {nights.second.run_id}" in capsys.readouterr().err
    assert run_command(["compare", "previous", nights.first.run_id, f"--lake={nights.lake}"]) == 2
    assert f"no run is older than {nights.first.run_id}" in capsys.readouterr().err


def test_runs_lists_what_the_lake_has(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["runs", f"--lake={nights.lake}", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [run["run_id"] for run in told["runs"]] == [nights.second.run_id, nights.first.run_id]
    assert [run["captures"] for run in told["runs"]] == [["mixed.pcap"], ["starve.pcap"]]
    assert all(0 < run["agreed"] <= run["checked"] for run in told["runs"])
    assert {one["capture_id"] for one in told["capture_sets"]} == {nights.first.capture_id, nights.second.capture_id}


def test_a_notebook_opens_the_tables_of_one_run(nights: Nights) -> None:
    opened = open_lake(nights.lake, run=nights.first.run_id)
    assert opened.capture_id == nights.first.capture_id
    (row,) = opened.sql("SELECT DISTINCT run_id FROM fetch_ranges").collect()
    assert row[0] == nights.first.run_id
