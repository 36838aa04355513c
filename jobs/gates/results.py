"""What a gate found, as rows of `gate_results` and as messages."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.gates.rules import Gates, Severity
from jobs.gates.views import Subject
from jobs.lake.delta_tables import has_table, read_table, stored_rows, table_without_rows
from jobs.lake.table_address import address_of
from jobs.lake.target import Target
from schemas.tables.gold_gates import GATE_RESULTS
from udfs.errors import GateError
from udfs.facts.arrow_tables import arrow_schema


@dataclass(frozen=True)
class Result:
    """What one rule found in one table."""

    rule: str
    table: str
    severity: Severity
    reason: str
    checked: int
    refused: int
    examples: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The result as lines: the rule and its count, the reason, and up to three examples."""
        line = f"{self.severity}: {self.rule}: {self.refused:,} of {self.checked:,} rows of {self.table}. {self.reason}"
        return [f"  {line}", *(f"    {example}" for example in self.examples)]


def write_results(spark: SparkSession, lake: str, gates: Gates, subject: Subject, results: Sequence[Result]) -> None:
    """Write the results instead of those that the same capture set or run had."""
    Target(lake, subject.id).write_here(spark, result_rows(gates, subject, results), GATE_RESULTS)


def result_rows(gates: Gates, subject: Subject, results: Sequence[Result]) -> pa.Table:
    """Rows of the table `gate_results`."""
    t = GATE_RESULTS
    rows: list[dict[str, object]] = [
        {
            t.checked_id: subject.id,
            t.gate: subject.gate,
            t.rule: result.rule,
            t.table_name: result.table,
            t.severity: result.severity,
            t.reason: result.reason,
            t.rows_checked: result.checked,
            t.rows_refused: result.refused,
            t.examples: list(result.examples),
            t.passed: result.refused == 0,
            t.rules_id: gates.rules_id(subject.gate),
        }
        for result in results
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(t))


def stored_results(spark: SparkSession, lake: str, gates: Gates, subject: Subject) -> list[Result]:
    """The earlier results of exactly these rules; empty if not all of them were applied."""
    t = GATE_RESULTS
    wanted = (t.rule, t.table_name, t.severity, t.reason, t.rows_checked, t.rows_refused, t.examples)
    if not has_table(spark, lake, t):
        return []
    own = stored_rows(spark, lake, t, subject.id).where(F.col(t.rules_id) == gates.rules_id(subject.gate))
    results = [
        Result(rule=a, table=b, severity=c, reason=d, checked=e, refused=f, examples=tuple(g))
        for a, b, c, d, e, f, g in own.select(*wanted).collect()
    ]
    order = {(rule.name, table.name): place for place, (rule, table) in enumerate(gates.pairs(subject.gate))}
    return sorted(results, key=lambda result: order[result.rule, result.table])


def gate_result_rows(spark: SparkSession, lake: str, identities: Collection[str]) -> DataFrame:
    """Rows of `gate_results` of these capture sets and runs; none if no gate was ever applied."""
    t = GATE_RESULTS
    if not has_table(spark, lake, t):
        return table_without_rows(spark, t)
    return read_table(spark, lake, t, identities)


def tell_results(lake: str, subject: Subject, results: Sequence[Result]) -> None:
    """Say on stderr what was found. Raises GateError if a critical rule refused rows."""
    refused = [result for result in results if result.refused and result.severity != "info"]
    if not refused:
        sys.stderr.write(f"refetch: gate {subject.gate}: {subject} passed {_number_of_rules(results)}\n")
        return
    lines = [f"{len({result.rule for result in refused})} of {_number_of_rules(results)} refused rows of {subject}"]
    lines += [line for result in refused for line in result.lines()]
    message = "\n".join([f"gate {subject.gate}: {lines[0]}", *lines[1:], f"  {address_of(lake, GATE_RESULTS)} has all"])
    if any(result.severity == "critical" for result in refused):
        raise GateError(message)
    sys.stderr.write(f"refetch: {message}\n")


def _number_of_rules(results: Sequence[Result]) -> str:
    rules = len({result.rule for result in results})
    return "1 rule" if rules == 1 else f"{rules} rules"
