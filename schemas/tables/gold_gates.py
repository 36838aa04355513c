"""The gold table of what gates found."""

from __future__ import annotations

from schemas.tables.table import Spec as C
from schemas.tables.table import table

GATE_RESULTS = table(
    "gate_results", "gold",
    "What the gates found: one row per rule and table, from the last check of a capture set or run.",
    ("checked_id", "rule", "table_name"), "checked_id",
    checked_id=C("string", "Id of what was checked: a capture set (capture_id) for the silver gate, a run (run_id) for "
                           "the gold gate"),
    gate=C("string", "silver or gold"),
    rule=C("string", "The rule's name, as in conf/gates or in a file of --gates"),
    table_name=C("string", "The table that was checked"),
    severity=C("string", "info, warning or critical. If a critical rule refuses rows, the gate refuses the tables, "
                         "with exit code 3"),
    reason=C("string", "Why the rule exists"),
    rows_checked=C("bigint", "Rows of the table, including rows that a gate moved to quarantine"),
    rows_refused=C("bigint", "Rows that the rule refuses: for a query, the rows that it returns; for an expectation, "
                             "the unexpected rows, or 1 if it names none"),
    examples=C("array<string>", "Keys of up to three refused rows"),
    passed=C("boolean", "The rule refused no row"),
    rules_id=C("string", "A hash of the gate's rules"),
)  # fmt: skip
