"""The last screen says what to trust before any answer, and where the rest is."""

from __future__ import annotations

import pytest

from jobs.replays.algorithms import ALGORITHMS
from jobs.report_page.capture_contents import connections_by_protocol, requests_by_api
from jobs.report_page.summary import run_summary
from jobs.report_page.trust import fidelity_by_reason
from tests.unit.report.findings import agreement, findings, known


def heads(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith(" ")]


def test_what_was_lost_and_how_far_the_replay_agrees_stand_before_the_answers() -> None:
    fidelity = "Fidelity: the replay of the captured settings against the capture"
    assert heads(run_summary("/lake", known(), findings())) == ["Read", "Lost", fidelity, "Answers", "Tables"]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_replay_that_was_refused_says_why_once(name: str) -> None:
    told = run_summary("/lake", known(), findings(refused={name: "no produce request: capture producers"}))
    assert told.count("no produce request: capture producers") == 1
    assert "no produce request: capture producers" in told.partition("Answers")[2]


def test_tables_and_run_are_named() -> None:
    assert run_summary("/lake", known(), findings()).endswith(
        "Tables\n  /lake/silver\n  /lake/gold\n  run run, capture capture\n"
    )


def test_of_several_clusters_the_screen_says_which_is_replayed() -> None:
    told = "\n  only cluster other is replayed, one of several that the captures show\n"
    assert told in run_summary("/lake", known(cluster_id="other"), findings())
    assert "cluster" not in run_summary("/lake", known(), findings()).partition("Answers")[0]


def test_if_reasons_are_given_the_screen_says_where_they_are_explained() -> None:
    pointer = "\n  What a reason means, and what to do: docs/reasons.md\n"
    given = [agreement("fetch_max_bytes", "follower", "empty_fetches", 9, 8, 1, "append_read_order")]
    assert pointer in run_summary("/lake", known(), findings({fidelity_by_reason: given}))
    assert pointer not in run_summary("/lake", known(), findings())


def test_captures_without_kafkas_traffic_have_no_tables_of_answers_on_the_screen() -> None:
    told = run_summary(
        "/lake", known(), findings({requests_by_api: [], connections_by_protocol: [], fidelity_by_reason: []})
    )
    assert heads(told) == ["Read", "Lost", "Tables"]
    assert "No Kafka traffic was found in a.pcap" in told
    assert told.endswith("Tables\n  /lake/silver\n  /lake/gold\n  run run, capture capture\n")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_replay_without_rows_says_what_was_not_captured_and_shows_no_empty_table(name: str) -> None:
    algorithm = ALGORITHMS[name]
    (line,) = algorithm.lines({asks: [] for asks in algorithm.queries}, ["captured"])
    assert line.startswith("  no ")
