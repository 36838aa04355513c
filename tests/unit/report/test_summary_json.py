"""summary.json: what the screen and the page say, for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from jobs.doc_pages.json_schemas import SUMMARY_SCHEMA, schema_text
from jobs.find.scopes import Scope
from jobs.report_page.advice.recommendation import Confidence, Effect, InForce, Recommendation
from jobs.report_page.questions import QUESTIONS
from jobs.report_page.refusals import gate_refusals
from jobs.report_page.summary_json import NAME, Summary, summary_of, write_summary
from schemas.tables.gold_gates import GATE_RESULTS
from tests.unit.report.findings import findings, row_of, verdict

CHANGED = Recommendation(
    "fetch_max_bytes", Scope("client", "app"), "consumer.fetch.max.bytes", "change", InForce("200000", "captured"),
    "1048576", Confidence(50, 49, 2), "The limits make partitions wait.",
    Effect("5 partitions wait up to 224 ms -> none", "longest_wait_ms", 224.0, 0.0),
)  # fmt: skip


def test_the_schema_is_current(repository: Path) -> None:
    assert (repository / SUMMARY_SCHEMA).read_text(encoding="utf-8") == schema_text(SUMMARY_SCHEMA), (
        "make it anew: python -m jobs.doc_pages"
    )


def test_a_program_can_read_what_to_change_to_which_value_and_why(tmp_path: Path) -> None:
    write_summary(tmp_path / NAME, verdict(findings(), CHANGED))
    told = json.loads((tmp_path / NAME).read_text(encoding="utf-8"))
    assert (told["schema_version"], told["run_id"], told["captures"]) == (1, "run", ["a.pcap"])
    (one,) = told["recommendations"]
    assert (one["verdict"], one["setting"], one["scope"]) == ("change", "consumer.fetch.max.bytes", "app")
    assert (one["value_now"], one["recommended"]) == ("200000", "1048576")
    assert (one["gain"]["metric"], one["gain"]["before"], one["gain"]["after"]) == ("longest_wait_ms", 224.0, 0.0)
    (agreed,) = told["fidelity"]
    assert (agreed["checked"], agreed["agreed"], agreed["unknown"]) == (200, 199, 3)
    assert [answer["number"] for answer in told["answers"]] == [question.number for question in QUESTIONS]


def test_the_models_read_back_what_was_written(tmp_path: Path) -> None:
    write_summary(tmp_path / NAME, verdict(findings(), CHANGED))
    text = (tmp_path / NAME).read_text(encoding="utf-8")
    assert Summary.model_validate_json(text) == summary_of(verdict(findings(), CHANGED))


def test_a_refused_run_names_what_refused_it() -> None:
    refused = row_of(GATE_RESULTS, gate="gold", rule="fidelity_above_floor", table_name="fidelity")
    told = summary_of(verdict(findings({gate_refusals: [refused]})))
    assert told.refused_by == "the gold gate refused this run by fidelity_above_floor"
    assert summary_of(verdict(findings())).refused_by is None


def test_a_program_can_read_how_a_change_is_made() -> None:
    kept = replace(CHANGED, verdict="keep")
    proposed = replace(CHANGED, setting="max.broker.partitions", is_proposal=True)
    told = summary_of(verdict(findings(), CHANGED, kept, proposed))
    how = "fetch.max.bytes=1048576 in the configuration of this consumer, read when it starts"
    assert [one.how_to_set for one in told.recommendations] == [how, None, None]
