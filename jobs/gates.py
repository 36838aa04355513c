"""The gates: rules over what a job has written, before anything is built on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import SparkSession

from jobs.gate_results import Result, stored_results, tell, write_results
from jobs.gate_rules import ExpectationRule, Gates, QueryRule, RowRule
from jobs.gate_views import Subject, asked_tables, rows_to_check
from jobs.progress import stage
from jobs.row_rules import Counts, refused_examples, scanned
from jobs.run import Run
from jobs.set_rules import Finding, SetRule, bad_rows, examples, refused_by_queries
from schemas.tables.table import Table

Evaluate = Callable[[Sequence[SetRule], Sequence[Result]], Mapping[tuple[str, str], Finding]]
"""From rules about sets of rows, and the results of those about single rows, to findings by rule and table."""


def pass_gate(spark: SparkSession, run: Run, subject: Subject, counts: Mapping[Table, Counts] | None) -> None:
    """Apply a gate's rules, write `gate_results`, say what was found. Raises GateError where a critical rule refuses.

    counts: of the tables that were just written; None where all is as it was, so that earlier results hold.
    """
    gates = run.gates.in_pipeline
    if not gates.of(subject.gate):
        return
    results = stored_results(spark, run.lake, gates, subject) if counts is None else []
    if not results:
        with stage(f"gate {subject.gate}", spark):
            results = applied(spark, run.lake, gates, subject, counts)
            write_results(spark, run.lake, gates, subject, results)
    tell(run.lake, subject, results)


def applied(
    spark: SparkSession, lake: str, gates: Gates, subject: Subject, counts: Mapping[Table, Counts] | None,
    evaluate: Evaluate | None = None,
) -> list[Result]:  # fmt: skip
    """Every rule's results, in the order of the rules.

    counts: of the tables that were just written, where no other has rows of the subject; None: they are scanned.
    evaluate: how rules about sets of rows are applied; None: queries by Spark alone.
    """
    pairs = gates.pairs(subject.gate)
    if counts is None:
        counts = scanned(spark, lake, gates, subject, [table for _, table in pairs])
    results = {
        (rule.name, table.name): row_result(spark, lake, subject, rule, table, counts.get(table))
        for rule, table in pairs
        if isinstance(rule, RowRule)
    }
    sets = [rule for rule in gates.of(subject.gate) if isinstance(rule, QueryRule | ExpectationRule)]
    with asked_tables(spark, sets, partial(rows_to_check, spark, lake, subject)):
        findings = (evaluate or partial(by_queries, spark, lake, subject))(sets, list(results.values()))
        for rule in sets:
            for table in rule.tables:
                key = rule.name, table.name
                results[key] = set_result(spark, rule, table, findings[key], counts.get(table))
    return [results[rule.name, table.name] for rule, table in pairs]


def row_result(
    spark: SparkSession, lake: str, subject: Subject, rule: RowRule, table: Table, counts: Counts | None
) -> Result:
    """What a rule about single rows found; counts: None where the table has no rows of the subject."""
    refused = counts.refused[rule.name] if counts else 0
    told = refused_examples(spark, lake, rule, table, subject) if refused else []
    return _result(rule, table, counts, Finding(refused, tuple(told)))


def set_result(spark: SparkSession, rule: SetRule, table: Table, finding: Finding, counts: Counts | None) -> Result:
    """What a rule about a set of rows found."""
    if isinstance(rule, QueryRule) and finding.refused:
        finding = Finding(finding.refused, tuple(examples(bad_rows(spark, rule, table))))
    return _result(rule, table, counts, finding)


def _result(rule: RowRule | SetRule, table: Table, counts: Counts | None, finding: Finding) -> Result:
    checked = counts.checked if counts else 0
    return Result(rule.name, table.name, rule.severity, rule.reason, checked, finding.refused, finding.examples)


def by_queries(
    spark: SparkSession, lake: str, subject: Subject, rules: Sequence[SetRule], _: Sequence[Result]
) -> Mapping[tuple[str, str], Finding]:
    """Queries by Spark in one job; expectations by Great Expectations, which is loaded where there are any."""
    found = refused_by_queries(spark, [rule for rule in rules if isinstance(rule, QueryRule)])
    expectations = [rule for rule in rules if isinstance(rule, ExpectationRule)]
    if not expectations:
        return found
    from jobs.expectations import met

    return {**found, **met(expectations, partial(rows_to_check, spark, lake, subject))}
