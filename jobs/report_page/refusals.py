"""What gates refused in a run or its captures. Refused tables stay, so the report says it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.report_page.question import Findings
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import SILVER


def gate_refusals(own_rows: OwnRows) -> DataFrame:
    """The results of critical rules that refused rows."""
    t = GATE_RESULTS
    refused = (F.col(t.severity) == "critical") & ~F.col(t.passed)
    return own_rows(t).where(refused).orderBy(t.gate, t.rule, t.table_name)


def refusal_lines(findings: Findings) -> Iterable[str]:
    """A line for each rule and table."""
    t = GATE_RESULTS
    for row in findings.of(gate_refusals):
        counts = f"{row[t.rows_refused]:,} of {row[t.rows_checked]:,} rows of {row[t.table_name]}"
        yield f"The {row[t.gate]} gate refused {refused_subject(row)}. {row[t.rule]}: {counts}. {row[t.reason]}"


def refused_subject(row: Row) -> str:
    """What a gate refused."""
    return "the captures" if is_of_captures(row) else "this run"


def is_of_captures(row: Row) -> bool:
    """Whether a gate refused the tables of captures, and not those of a replay."""
    return bool(row[GATE_RESULTS.gate] == SILVER[0].layer)


def refusals_text(findings: Findings) -> str:
    """What was refused by which rules, in a few words; empty if nothing was."""
    lines = subjects_with_rules(
        findings.of(gate_refusals), lambda row: f"the {row[GATE_RESULTS.gate]} gate refused {refused_subject(row)}"
    )
    return " and ".join(lines)


def subjects_with_rules(rows: Iterable[Row], worded: Callable[[Row], str]) -> list[str]:
    """`... by RULE, RULE` for each subject in rows of `gate_refusals`. worded: the text for a row's subject."""
    rules: dict[str, list[str]] = {}
    for row in rows:
        rules.setdefault(worded(row), []).append(row[GATE_RESULTS.rule])
    return [f"{subject} by {', '.join(dict.fromkeys(names))}" for subject, names in rules.items()]
