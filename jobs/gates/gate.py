"""The gates: rules on what a job has written. They are applied before other jobs use it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from jobs.gates.results import Result, stored_results, tell_results, write_results
from jobs.gates.row_rules import Counts, count_by_scan, refused_examples
from jobs.gates.rules import ExpectationRule, Gates, QueryRule, RowRule, Rule
from jobs.gates.set_rules import Finding, SetRule, bad_rows, example_texts, refused_by_queries
from jobs.gates.views import Subject, rows_to_check, views_of_tables
from jobs.terminal.progress import stage
from schemas.tables.table import Table

Evaluate = Callable[[Sequence[SetRule], Sequence[Result]], Mapping[tuple[str, str], Finding]]
"""From rules about sets of rows, and the results of rules about single rows, to findings by rule and table."""
RowsToCheck = Callable[..., DataFrame]
"""From a table to those of its rows that are checked; to all its rows if the second argument is True."""


KeptTables = Callable[[], Collection[Table]]
"""Returns the tables of a subject that an earlier run of the job wrote."""


def pass_gate(
    spark: SparkSession, lake: str, gates: Gates, subject: Subject, written: Mapping[Table, Counts] | KeptTables
) -> None:
    """Apply a gate's rules, write `gate_results` and say what was found. Raises GateError if a critical rule refuses
    rows.

    written: the counts of the tables that were just written; for kept tables a function that returns these. The earlier
    results of exactly these rules then apply; if there are none, the rows of the tables are counted.
    """
    gates = gates.in_pipeline
    if not gates.rules_of(subject.gate):
        return
    results = stored_results(spark, lake, gates, subject) if callable(written) else []
    if not results:
        with stage(f"gate {subject.gate}", spark):
            counts = count_by_scan(spark, lake, gates, subject, written()) if callable(written) else written
            results = apply_gate(spark, lake, gates, subject, counts)
            write_results(spark, lake, gates, subject, results)
    tell_results(lake, subject, results)


def apply_gate(
    spark: SparkSession, lake: str, gates: Gates, subject: Subject, counts: Mapping[Table, Counts],
    evaluate: Evaluate | None = None,
) -> list[Result]:  # fmt: skip
    """Every rule's results, in the order of the rules.

    counts: those of the tables that are checked. evaluate: applies the rules about sets of rows; None for
    `evaluate_by_queries`.
    """
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
    """What a rule about single rows found in a table. counts: those of the table."""
    refused = counts.refused[rule.name]
    return Finding(refused, tuple(refused_examples(spark, lake, rule, table, subject)) if refused else ())


def with_examples(spark: SparkSession, key: tuple[str, str], rules: Sequence[SetRule], finding: Finding) -> Finding:
    """A finding, with examples of the bad rows if its rule is a query. Needs the views of `views_of_tables`.

    key: the names of the rule and of the table.
    """
    rule, table = next((rule, of) for rule in rules for of in rule.tables if (rule.name, of.name) == key)
    if not finding.refused or not isinstance(rule, QueryRule):
        return finding
    return Finding(finding.refused, tuple(example_texts(bad_rows(spark, rule, table))))


def results_of(
    rules: Sequence[Rule], counts: Mapping[Table, Counts], findings: Mapping[tuple[str, str], Finding]
) -> list[Result]:
    """The findings as results, in the order of the rules."""
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
    """What each rule found, by rule and table. Spark applies the queries in one job. Great Expectations applies the
    expectations, and is loaded only if there are any.
    """
    refused = refused_by_queries(spark, [rule for rule in rules if isinstance(rule, QueryRule)])
    expectations = [rule for rule in rules if isinstance(rule, ExpectationRule)]
    if not expectations:
        return refused
    from jobs.gates.expectations import evaluate_expectations

    return {**refused, **evaluate_expectations(expectations, rows)}
