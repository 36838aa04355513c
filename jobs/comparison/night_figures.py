"""The figures of a night for the table `trends`: a run's results with the settings in force.

They are made from the figures that `compare` shows. Each is that of the client or broker with the largest, or of all
together.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.comparison.figure_rows import KIND, METRIC, SCOPE
from jobs.comparison.outcome_figures import OUTCOMES, agreement_figures
from jobs.comparison.traffic_figures import RATE, TimeSpan, client_figures
from jobs.replays.algorithm import OwnRows

SUMMED = (RATE, "bytes_per_s", "partitions", "failed_batches")
"""Metrics whose figures are added up. Shares are computed over all cases together. For all other metrics the largest
figure counts.
"""


def sum_in_order(values: Column) -> Column:
    """The sum of doubles in ascending order. Spark's own sum adds in the order of tasks, which changes the last digits
    from one run to the next.
    """
    return F.aggregate(F.array_sort(F.collect_list(values)), F.lit(0.0), lambda total, value: total + value)


def night_figures(own_rows: OwnRows, span: TimeSpan, replays: Collection[str]) -> DataFrame:
    """(kind, metric, scope, value, low, high, cases): a row for each metric of a run.

    A value may be an infinite time. replays: the names of the run's replays.
    """
    frames = [client_figures(own_rows, span), agreement_figures(own_rows)]
    frames += [outcomes(own_rows) for name, outcomes in OUTCOMES.items() if name in replays]
    rows = reduce(DataFrame.unionByName, frames).where(F.col("value").isNotNull())
    cases, most = F.sum("cases"), F.struct("value", SCOPE, "low", "high")
    # Among equal figures the last scope by name counts, so that the same tables give the same row.
    largest = F.max_by(most, F.struct(F.col("value"), F.col(SCOPE)))
    of = rows.groupBy(KIND, METRIC).agg(
        cases.alias("cases"), sum_in_order(F.col("value")).alias("sum"), largest.alias("most"),
        (sum_in_order(F.col("value") * F.col("cases")) / cases).alias("share"),
    )  # fmt: skip
    is_share, is_sum = F.col("cases").isNotNull(), F.col(METRIC).isin(*SUMMED)
    is_largest = ~is_share & ~is_sum
    value = F.when(is_share, F.col("share")).when(is_sum, F.col("sum")).otherwise(F.col("most.value")).alias("value")
    of_one = (F.when(is_largest, F.col(f"most.{name}")).alias(name) for name in (SCOPE, "low", "high"))
    return of.select(KIND, METRIC, *of_one, value, "cases")
