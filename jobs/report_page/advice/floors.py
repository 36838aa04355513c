"""Where the replay of the captured settings agrees less with the capture than the gates' floors demand."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.gates.rule_files import default_gates
from jobs.gates.rules import QueryRule
from jobs.gates.views import query_on_views
from jobs.replays.algorithm import OwnRows
from jobs.report_page.question import Findings
from jobs.terminal.screen import share_text
from jobs.terminal.wording import percent
from schemas.tables.gold import FIDELITY
from schemas.tables.values import CONSUMER, FOLLOWER, PRODUCER

FLOORS = ("fidelity_above_floor", "closed_loop_fidelity_above_floor")
"""The rules of conf/gates that have floors."""
READER_OF_SETTINGS = {"consumer": CONSUMER, "replica": FOLLOWER, "producer": PRODUCER}
"""What is replayed under a setting, by the first word of its key. Consumers, followers and producers are replayed each
by themselves. All other settings concern all of them, except those of REQUEST_POOL.
"""
REQUEST_POOL = ("broker.queued.max.request.bytes", "broker.socket.request.max.bytes")
"""The settings of the pool for requests (KIP-72). It is replayed from requests alone, so no metric on a consumer,
follower or producer says how well.
"""
IN_CLOSED_LOOP = "closed_loop_"
"""The begin of the names of metrics of closed loop. The gate only warns of those that are below their floor."""
VIEW = "refetch_fidelity_of_a_report"


def metrics_below_floor(own_rows: OwnRows) -> DataFrame:
    """(algorithm, metric, reader, checked, agreed, floor) of metrics that agree less often than their floor demands."""
    f, rows = FIDELITY, own_rows(FIDELITY)
    rows.createOrReplaceTempView(VIEW)
    columns = (f.algorithm, f.metric, f.reader, f.checked, f.agreed, F.col("floor").cast("double"))
    queries = [rows.sparkSession.sql(query_on_views(rule, FIDELITY, VIEW)).select(*columns) for rule in floor_rules()]
    return queries[0].unionAll(queries[1]).orderBy(f.algorithm, f.metric, f.reader)


def floor_rules() -> Iterator[QueryRule]:
    """The rules that have floors, in their order."""
    by_name = {rule.name: rule for rule in default_gates().rules}
    for name in FLOORS:
        if isinstance(rule := by_name[name], QueryRule):
            yield rule


def low_fidelity(findings: Findings, algorithm: str, setting: str = "") -> list[Row]:
    """The rows of `metrics_below_floor` for a replay: first those that the gate refuses, then those of closed loop. In
    both, the metric that agrees least comes first.

    setting: the key of a setting, if only the rows count that say how well its lanes are replayed.
    """
    f, reader = FIDELITY, READER_OF_SETTINGS.get(setting.partition(".")[0])
    rows = [row for row in findings.of(metrics_below_floor) if row[f.algorithm] == algorithm]
    is_of_all = reader is None and setting not in REQUEST_POOL
    concerned = [row for row in rows if is_of_all or row[f.reader] in (reader, None)]
    return sorted(concerned, key=lambda row: (row[f.metric].startswith(IN_CLOSED_LOOP), row[f.agreed] / row[f.checked]))


def low_fidelity_text(row: Row) -> str:
    """What is below its floor, in words: `session grants equal the capture in 12 % of 40, below 99 %`."""
    f = FIDELITY
    metric = row[f.metric].replace("_", " ")
    of = f" of {row[f.reader]}s" if row[f.reader] else ""
    equal = f"{share_text(row[f.agreed], row[f.checked])} of {row[f.checked]:,}"
    return f"{metric}{of} equal the capture in {equal}, below {percent(row['floor'])}"
