"""Figures of two runs reach the driver in few rows, and runs are found by `latest` and `previous`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.comparison import figure_rows as rows_module
from jobs.comparison.figure_rows import (
    Columns,
    change_in_row,
    figure_rows,
    number_left_out,
    share_columns,
    side_by_side_rows,
)
from jobs.comparison.figures import Figure
from jobs.comparison.named_runs import resolve_run_names
from jobs.comparison.night_figures import sum_in_order
from jobs.comparison.traffic_figures import rate_columns, span_of, sums_with_slices
from schemas.tables.gold import RUNS
from schemas.tables.silver import CAPTURES
from tests.lakes import plant
from tests.unit.report.findings import row_of
from udfs.errors import ArgumentError
from udfs.facts.arrow_tables import arrow_schema

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def figures(spark: SparkSession, **values: float) -> DataFrame:
    rows = spark.createDataFrame(pa.table({"client": list(values), "value": list(values.values())}))
    return figure_rows(rows, "client", "client", {"requests_per_s": Columns(F.col("value"))})


def test_the_largest_changes_come_and_the_others_are_counted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "MOST_OF_A_METRIC", 1)
    before = figures(spark, a=1.0, b=1.0, same=1.0, gone=9.0, left=1.0)
    after = figures(spark, a=3.0, b=9.0, same=1.0, new=5.0)
    rows = side_by_side_rows(before, after, ["requests_per_s"]).collect()
    found = {row["scope"]: change_in_row(row, "traffic") for row in rows}
    assert {name: one.judgement for name, one in found.items()} == {"b": "exact", "new": "new", "gone": "gone"}
    assert (found["b"].before, found["b"].after) == (Figure(1.0), Figure(9.0))
    assert number_left_out(rows) == 2
    assert {row["scope"] for row in side_by_side_rows(before, after).collect()} == {"b"}


def test_a_share_of_nothing_is_no_figure(spark: SparkSession) -> None:
    rows = spark.createDataFrame(pa.table({"client": ["a", "b"], "part": [1, 0], "cases": [4, 0]}))
    (row,) = figure_rows(rows, "client", "client", {"x": share_columns(F.col("part"), F.col("cases"))}).collect()
    assert (row["scope"], row["value"], row["cases"]) == ("a", 0.25, 4)


def test_a_rate_has_the_range_of_the_slices_without_the_lowest_and_the_highest(spark: SparkSession) -> None:
    """There are ten slices of 10 s. The first has 50 requests, the second has none, and each other slice has 10."""
    seconds = [0.1] * 50 + [10 * n + 5.0 for n in range(2, 10) for _ in range(10)] + [100.0]
    at = [START + timedelta(seconds=second) for second in seconds]
    rows = spark.createDataFrame(pa.table({"client": ["app"] * len(at), "at": pa.array(at, pa.timestamp("us", "UTC"))}))
    span = span_of(START, START + timedelta(seconds=100))
    by_client = sums_with_slices(rows, "client", "at", {"requests": F.count("*")}, span)
    (row,) = figure_rows(by_client, "client", "client", {"requests_per_s": rate_columns("requests", span)}).collect()
    assert (row["value"], row["low"], row["high"]) == (1.31, 1.0, 1.1)


def test_latest_and_previous_are_found_by_the_clock_of_runs(spark: SparkSession, tmp_path: Path) -> None:
    nights = [("one", "monday", 0), ("two", "tuesday", 1), ("three", "tuesday", 2)]
    runs = [
        row_of(RUNS, run_id=run, capture_id=capture, run_at=START + timedelta(days=day), refused=[])
        for run, capture, day in nights
    ]
    sets = [row_of(CAPTURES, capture_id=capture, path=f"/{capture}.pcap") for capture in ("monday", "tuesday")]
    for table, rows in ((RUNS, runs), (CAPTURES, sets)):
        plant(str(tmp_path), table, pa.Table.from_pylist([row.asDict() for row in rows], schema=arrow_schema(table)))

    def named(*names: str) -> list[str]:
        return [of.run_id for of in resolve_run_names(spark, str(tmp_path), names)]

    assert named("previous", "latest") == ["one", "three"]
    assert named("two", "latest") == ["two", "three"]
    assert named("previous", "two") == ["one", "two"]
    assert named("latest", "previous") == ["three", "one"]
    with pytest.raises(ArgumentError, match="no run is older than one"):
        named("previous", "one")


@pytest.mark.parametrize("descending", [False, True])
def test_a_sum_of_doubles_does_not_depend_on_the_order_of_rows(spark: SparkSession, descending: bool) -> None:
    """In this order the largest number hides the small ones, in the other order it does not."""
    numbers = sorted([1e16, *[1.0] * 8], reverse=descending)
    rows = spark.createDataFrame(pa.table({"value": numbers})).coalesce(1)
    assert rows.agg(sum_in_order(F.col("value"))).collect() == [(1e16 + 8.0,)]
