"""What gates refused of a run or its captures: its tables stay, and whoever reads them is to know."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.report_page.question import Findings
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import SILVER

_SILVER = SILVER[0].layer


def refusals(own_rows: OwnRows) -> DataFrame:
    """The results of critical rules that refused rows."""
    t = GATE_RESULTS
    refused = (F.col(t.severity) == "critical") & ~F.col(t.passed)
    return own_rows(t).where(refused).orderBy(t.gate, t.rule, t.table_name)


def refusal_lines(found: Findings) -> Iterable[str]:
    """A line a rule and table."""
    t = GATE_RESULTS
    for row in found.of(refusals):
        counts = f"{row[t.rows_refused]:,} of {row[t.rows_checked]:,} rows of {row[t.table_name]}"
        yield f"The {row[t.gate]} gate refused {subject_of(row)}. {row[t.rule]}: {counts}. {row[t.reason]}"


def subject_of(row: Row) -> str:
    """What a gate refused."""
    return "the captures" if row[GATE_RESULTS.gate] == _SILVER else "this run"


def refused_by(found: Findings) -> str:
    """What was refused by which rules, in a few words; empty where nothing was."""
    t = GATE_RESULTS
    rules: dict[str, list[str]] = {}
    for row in found.of(refusals):
        rules.setdefault(f"the {row[t.gate]} gate refused {subject_of(row)}", []).append(row[t.rule])
    return " and ".join(f"{told} by {', '.join(dict.fromkeys(names))}" for told, names in rules.items())
