"""Screen, page and answers say if a gate refused a run."""

from __future__ import annotations

from typing import Any

from jobs.report_page.page import page_text
from jobs.report_page.refusals import gate_refusals
from jobs.report_page.summary import run_summary
from schemas.tables.gold_gates import GATE_RESULTS
from tests.unit.report.findings import findings, known, row_of, sentence, verdict

REFUSED: dict[str, Any] = {
    "gate": "gold", "rule": "fidelity_above_floor", "table_name": "fidelity", "severity": "critical",
    "rows_refused": 2, "rows_checked": 31, "reason": "The replay does not reproduce the capture.",
}  # fmt: skip
TOLD = (
    "The gold gate refused this run. fidelity_above_floor: 2 of 31 rows of fidelity. The replay does not reproduce the "
    "capture."
)


def test_the_page_says_first_of_all_that_the_gate_refused_the_run() -> None:
    found = findings({gate_refusals: [row_of(GATE_RESULTS, **REFUSED)]})
    told = page_text("/lake", verdict(found))
    assert told.index("Verdict</h2>") < told.index(TOLD) < told.index('<div class="cards">')
    assert "gate refused" not in page_text("/lake", verdict(findings()))


def test_the_screen_says_once_that_the_gate_refused_the_run() -> None:
    told = run_summary("/lake", known(), findings({gate_refusals: [row_of(GATE_RESULTS, **REFUSED)]}))
    assert " ".join(told.split()).count(TOLD) == 1


def test_the_answer_whether_to_trust_begins_with_the_gates_that_refused() -> None:
    of_captures = row_of(GATE_RESULTS, **REFUSED | {"gate": "silver", "rule": "mine"})
    rows = [row_of(GATE_RESULTS, **REFUSED), row_of(GATE_RESULTS, **REFUSED | {"rule": "other"}), of_captures]
    assert sentence(findings({gate_refusals: rows}), 20).startswith(
        "No: the gold gate refused this run by fidelity_above_floor, other and the silver gate refused the captures by "
        "mine; "
    )
    assert not sentence(findings(), 20).startswith("No")
