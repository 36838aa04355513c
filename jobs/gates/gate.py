"""The gates: rules over what a job has written, before anything is built on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from jobs.gates.results import Result, stored_results, tell_results, write_results
from jobs.gates.row_rules import Counts, count_by_scan, refused_examples
from jobs.gates.rules import ExpectationRule, Gates, QueryRule, RowRule, Rule
from jobs.gates.set_rules import Finding, SetRule, bad_rows, example_texts, refused_by_queries
from jobs.gates.views import Subject, rows_to_check, views_of_tables
from jobs.run import Run
from jobs.terminal.progress import stage
from schemas.tables.table import Table

Evaluate = Callable[[Sequence[SetRule], Sequence[Result]], Mapping[tuple[str, str], Finding]]
"""From rules about sets of rows, and the results of those about single rows, to findings by rule and table."""
RowsToCheck = Callable[..., DataFrame]
"""From a table, and whether everything in it is asked for, which by default is not, to rows."""


def pass_gate(spark: SparkSession, run: Run, subject: Subject, counts: Mapping[Table, Counts] | None) -> None:
    """Apply a gate's rules, write `gate_results`, say what was found. Raises GateError where a critical rule refuses.

    counts: of the tables that were just written; None where all is as it was, so that earlier results hold.
    """
    gates = run.gates.in_pipeline
    if not gates.rules_of(subject.gate):
        return
    results = stored_results(spark, run.lake, gates, subject) if counts is None else []
    if not results:
        with stage(f"gate {subject.gate}", spark):
            results = apply_gate(spark, run.lake, gates, subject, counts)
            write_results(spark, run.lake, gates, subject, results)
    tell_results(run.lake, subject, results)


def apply_gate(
    spark: SparkSession, lake: str, gates: Gates, subject: Subject, counts: Mapping[Table, Counts] | None,
    evaluate: Evaluate | None = None,
) -> list[Result]:  # fmt: skip
    """Every rule's results, in the order of the rules.

    counts: of the tables that were just written, which alone are checked; None: all of the lake are, by a scan.
    evaluate: how rules about sets of rows are applied; None: queries by Spark alone.
    """
    if counts is None:
        counts = count_by_scan(spark, lake, gates, subject)
    rules = [
        replace(rule, tables=tuple(t for t in rule.tables if t in counts)) for rule in gates.rules_of(subject.gate)
    ]
    findings = {
        (rule.name, table.name): row_finding(spark, lake, subject, rule, table, counts[table])
        for rule in rules
        if isinstance(rule, RowRule)
        for table in rule.tables
    }
    about_rows = results_of([rule for rule in rules if isinstance(rule, RowRule)], counts, findings)
    sets = [rule for rule in rules if isinstance(rule, QueryRule | ExpectationRule)]
    rows = partial(rows_to_check, spark, lake, subject)
    with views_of_tables(spark, sets, rows):
        by_sets = (evaluate or partial(evaluate_by_queries, spark, rows))(sets, about_rows)
        findings |= {key: with_examples(spark, key, sets, finding) for key, finding in by_sets.items()}
    return results_of(rules, counts, findings)


def row_finding(
    spark: SparkSession, lake: str, subject: Subject, rule: RowRule, table: Table, counts: Counts
) -> Finding:
    """What a rule about single rows found."""
    refused = counts.refused[rule.name]
    return Finding(refused, tuple(refused_examples(spark, lake, rule, table, subject)) if refused else ())


def with_examples(spark: SparkSession, key: tuple[str, str], rules: Sequence[SetRule], finding: Finding) -> Finding:
    """A finding with examples of the bad rows, where a query gives them; takes the views of `views_of_tables`."""
    rule, table = next((rule, of) for rule in rules for of in rule.tables if (rule.name, of.name) == key)
    if not finding.refused or not isinstance(rule, QueryRule):
        return finding
    return Finding(finding.refused, tuple(example_texts(bad_rows(spark, rule, table))))


def results_of(
    rules: Sequence[Rule], counts: Mapping[Table, Counts], findings: Mapping[tuple[str, str], Finding]
) -> list[Result]:
    """What was found as results, in the order of the rules."""
    pairs = [(rule, table, findings[rule.name, table.name]) for rule in rules for table in rule.tables]
    return [
        Result(
            rule=rule.name,
            table=table.name,
            severity=rule.severity,
            reason=rule.reason,
            checked=counts[table].checked,
            refused=finding.refused,
            examples=finding.examples,
        )
        for rule, table, finding in pairs
    ]


def evaluate_by_queries(
    spark: SparkSession, rows: RowsToCheck, rules: Sequence[SetRule], _: Sequence[Result]
) -> Mapping[tuple[str, str], Finding]:
    """Queries by Spark in one job; expectations by Great Expectations, which is loaded where there are any."""
    refused = refused_by_queries(spark, [rule for rule in rules if isinstance(rule, QueryRule)])
    expectations = [rule for rule in rules if isinstance(rule, ExpectationRule)]
    if not expectations:
        return refused
    from jobs.gates.expectations import evaluate_expectations

    return {**refused, **evaluate_expectations(expectations, rows)}
