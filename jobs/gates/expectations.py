"""Rules as expectations of Great Expectations, and its Data Docs. This is imported only if a rule or a job needs it: it
takes seconds to load."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

# Set before the import, which reads it, so that nothing is sent anywhere.
os.environ["GX_ANALYTICS_ENABLED"] = "false"

import great_expectations as gx
import great_expectations.expectations as gxe
import pyarrow as pa
from great_expectations.checkpoint.checkpoint import Checkpoint
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)
from great_expectations.datasource.fluent.pandas_datasource import PandasDatasource
from great_expectations.datasource.fluent.spark_datasource import SparkDatasource
from great_expectations.expectations.core.expect_column_max_to_be_between import ExpectColumnMaxToBeBetween
from great_expectations.expectations.core.unexpected_rows_expectation import UnexpectedRowsExpectation
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.metadata_types import FailureSeverity
from pyspark.sql import DataFrame

from jobs.gates.results import Result
from jobs.gates.rule_failures import spark_message
from jobs.gates.rules import ExpectationRule, QueryRule, Rule
from jobs.gates.set_rules import MOST_EXAMPLES, Finding, SetRule, example_text
from jobs.gates.views import query_on_views
from schemas.tables.table import Table
from udfs.errors import EvaluationError

BATCH = "{batch}"
"""Great Expectations' placeholder for the table that a query is about."""
_RULE = "rule"
COMMON = ("severity", "description", "meta")
"""Arguments that every expectation takes. A rule does not give them: they follow from its other keys."""
_SITE = "local_site"
MOST_LISTED = 1000
"""The first page of Data Docs lists this many results of tables, the newest, because it reads each of them to know
whether it passed. Older results also have their own pages."""


def expectation_named(name: str) -> type[Expectation] | None:
    """The class of an expectation such as `expect_column_kl_divergence_to_be_less_than`; None if it does not exist."""
    by_name = {cls.lower(): cls for cls in dir(gxe) if cls.startswith("Expect")}.get(name.replace("_", ""))
    return None if by_name is None else getattr(gxe, by_name)


def _expectation_on_table(rule: SetRule, table: Table) -> Expectation:
    """A rule that has already been checked, as an expectation on a table's rows."""
    if isinstance(rule, QueryRule):
        query = query_on_views(rule, table, BATCH)
        if BATCH not in query:
            query += f" /* {BATCH} */"  # otherwise Great Expectations warns that the query does not use the batch
        return UnexpectedRowsExpectation(unexpected_rows_query=query, **_common_arguments(rule))
    return expectation_of(rule, rule.arguments)


def expectation_of(rule: ExpectationRule, arguments: Mapping[str, Any]) -> Expectation:
    """The rule's expectation with these arguments. Raises ValueError if it does not exist or does not take them."""
    of = expectation_named(rule.expectation)
    if of is None:
        raise ValueError(f"Great Expectations has no `{rule.expectation}`")
    return of(**arguments, **_common_arguments(rule))


def _common_arguments(rule: Rule) -> dict[str, Any]:
    values = (
        FailureSeverity(rule.severity),
        f"{rule.name} ({rule.severity}). If it fails: {rule.reason}",
        {_RULE: rule.name},
    )
    return dict(zip(COMMON, values, strict=True))


def evaluate_expectations(
    rules: Sequence[SetRule], rows: Callable[[Table], DataFrame]
) -> dict[tuple[str, str], Finding]:
    """What each rule finds in the rows of its tables, by rule and table, without Data Docs.

    Raises EvaluationError if a rule cannot be applied.
    """
    return _validate_tables(_Place(gx.get_context(mode="ephemeral"), Checking()), rules, rows)


@dataclass(frozen=True)
class Checking:
    """The names and the time under which a gate's checks are stored."""

    gate: str = "gate"
    name: str = "gate"
    at: datetime | None = None


def evaluate_with_data_docs(
    rules: Sequence[SetRule],
    rows: Callable[[Table], DataFrame],
    row_results: Sequence[Result],
    folders: tuple[str, str],
    checking: Checking,
) -> dict[tuple[str, str], Finding]:
    """What each rule finds in the rows of its tables, by rule and table. Also renders Data Docs of all results.

    Raises EvaluationError if a rule cannot be applied.

    row_results: the results of rules about single rows; each also becomes an expectation. folders: that of the context,
    which keeps suites and earlier results, and that of the pages.
    """
    home, pages = folders
    context = gx.get_context(mode="file", project_root_dir=home)
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": pages}
    site: Any = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": store,
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder", "validation_results_limit": MOST_LISTED},
        # Otherwise the limit would also apply to the results' own pages, and a check with an earlier --run-at would
        # have no page.
        "site_section_builders": {"validations": {"validation_results_limit": None}},
    }
    context.update_data_docs_site(_SITE, site)
    place = _Place(context, checking)
    findings = _validate_tables(place, rules, rows)
    place.file_row_results(row_results)
    place.render()
    return findings


def _column_of_result(result: Result) -> str:
    """The column with what one rule about single rows found in one table."""
    return f"{result.rule} on {result.table}"


def _expectation_of_result(result: Result) -> Expectation:
    """A result of a rule about single rows, as the expectation that the rule refused no row."""
    return ExpectColumnMaxToBeBetween(
        column=_column_of_result(result),
        max_value=0,
        severity=FailureSeverity(result.severity),
        description=f"{_column_of_result(result)} ({result.severity}): {result.refused:,} of {result.checked:,} rows "
        f"refused. If it fails: {result.reason}",
    )


def _validate_tables(
    place: _Place, rules: Sequence[SetRule], rows: Callable[[Table], DataFrame]
) -> dict[tuple[str, str], Finding]:
    """What each rule finds in the rows of its tables, by rule and table. There is one suite for each table."""
    by_name = {rule.name: rule for rule in rules}
    findings: dict[tuple[str, str], Finding] = {}
    for table in dict.fromkeys(table for rule in rules for table in rule.tables):
        own = [_expectation_on_table(rule, table) for rule in rules if table in rule.tables]
        for result in place.validate(table.name, rows(table), own, table.key):
            rule = by_name[_rule_of(result)]
            findings[rule.name, table.name] = _finding_of_result(rule, result)
    return findings


@dataclass
class _Place:
    """Where validations are made: a context, and the results that it has stored and not yet rendered."""

    context: AbstractDataContext
    checking: Checking
    filed: list[ExpectationSuiteIdentifier | ValidationResultIdentifier] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)

    def validate(
        self, name: str, rows: DataFrame, expectations: Iterable[Expectation], key: Sequence[str] = ()
    ) -> list[ExpectationValidationResult]:
        """Validate rows as a suite of their own, in the current session. key: the columns that identify unexpected
        rows.
        """
        return self._validate(self._session, name, rows, expectations, key)

    def file_row_results(self, results: Sequence[Result]) -> None:
        """Store what rules about single rows found as a suite of its own. Pandas validates it, because it is one row of
        numbers, and Spark would need a query for each.
        """
        refused = pa.table({_column_of_result(result): [result.refused] for result in results}).to_pandas()
        source = self.context.data_sources.add_or_update_pandas(name="refetch_row_rules")
        self._validate(source, f"{self.checking.gate}_row_rules", refused, map(_expectation_of_result, results))

    def render(self) -> None:
        """Render the pages of the stored results, and the first page. The first page lists all results that were ever
        stored, so it is rendered once for all tables.
        """
        filed: Any = self.filed
        self.context.build_data_docs([_SITE], filed)

    @cached_property
    def _session(self) -> SparkDatasource:
        """Great Expectations' source for Spark. There is only one, because the context writes a file with all it has
        for each new source.
        """
        return self.context.data_sources.add_or_update_spark(name="refetch", persist=False)

    def _validate(
        self,
        source: SparkDatasource | PandasDatasource,
        name: str,
        rows: object,
        expectations: Iterable[Expectation],
        key: Sequence[str] = (),
    ) -> list[ExpectationValidationResult]:
        batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("all")
        suite = self.context.suites.add_or_update(gx.ExpectationSuite(name=name, expectations=list(expectations)))
        validation = gx.ValidationDefinition(name=name, data=batch, suite=suite)
        result_format: Any = {"result_format": "SUMMARY", "unexpected_index_column_names": list(key)}
        checkpoint = Checkpoint(
            name=name,
            validation_definitions=[self.context.validation_definitions.add_or_update(validation)],
            actions=[],
            result_format=result_format if key else "SUMMARY",
        )
        checkpoint = self.context.checkpoints.add_or_update(checkpoint)
        run_id = RunIdentifier(run_name=self.checking.name, run_time=self.checking.at)
        results = checkpoint.run(batch_parameters={"dataframe": rows}, run_id=run_id).run_results
        self.filed += [ExpectationSuiteIdentifier(name), *results]
        return [found for result in results.values() for found in result.results]


def _rule_of(result: ExpectationValidationResult) -> str:
    config = result.expectation_config
    return str(config.meta[_RULE]) if config and config.meta else ""


def _finding_of_result(rule: Rule, result: ExpectationValidationResult) -> Finding:
    """What an expectation found. Raises EvaluationError if it could not be applied."""
    if fault := _exception_message(result.exception_info or {}):
        raise EvaluationError(f"{rule.place}: {rule.name} could not be applied: {spark_message(fault)}")
    if result.success:
        return Finding(0)
    outcome: dict[str, Any] = result.result
    if isinstance(rule, QueryRule):
        return Finding(int(outcome["observed_value"]))
    rows = outcome.get("partial_unexpected_index_list") or []
    if rows:
        return Finding(int(outcome["unexpected_count"]), tuple(sorted(map(example_text, rows))[:MOST_EXAMPLES]))
    return Finding(1, (example_text({"observed": outcome.get("observed_value")}),))


def _exception_message(info: Mapping[str, Any]) -> str:
    """The message of an expectation that failed instead of giving a result."""
    if info.get("raised_exception"):
        return str(info.get("exception_message"))
    of_metrics = [part for part in info.values() if isinstance(part, dict) and part.get("raised_exception")]
    return str(of_metrics[0].get("exception_message")) if of_metrics else ""
