"""The gold table of what gates found."""

from __future__ import annotations

from schemas.tables.table import Spec as C
from schemas.tables.table import table

GATE_RESULTS = table(
    "gate_results", "gold",
    "What a gate found: one row per rule and table, from the last check of a capture set or run.",
    ("checked_id", "rule", "table_name"), "checked_id",
    checked_id=C("string", "What was checked: a capture set (capture_id) by the silver gate, a run (run_id) by the "
                           "gold gate"),
    gate=C("string", "silver or gold"),
    rule=C("string", "The rule's name, as conf/gates or a file of --gates has it"),
    table_name=C("string", "The table it was applied to"),
    severity=C("string", "info, warning or critical: with critical the gate refuses, and the exit code is 3"),
    reason=C("string", "Why the rule exists"),
    rows_checked=C("bigint", "Rows of the table, those in quarantine for a rule of a gate included"),
    rows_refused=C("bigint", "... that the rule refuses; for a query the rows it returns, for an expectation the "
                             "unexpected ones, 1 if it names no rows"),
    examples=C("array<string>", "Keys of up to three of them"),
    passed=C("boolean", "None was refused"),
    rules_id=C("string", "A hash of the gate's rules"),
)  # fmt: skip
