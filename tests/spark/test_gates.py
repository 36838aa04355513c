"""What the shipped rules refuse, where refused rows go, and what is said about them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.gates import rule_checks
from jobs.gates.gate import apply_gate
from jobs.gates.results import stored_results, write_results
from jobs.gates.row_rules import VIOLATIONS, Watch, count_by_scan, violated_rules
from jobs.gates.rule_checks import check_rules
from jobs.gates.rule_files import default_gates, read_gates
from jobs.gates.rules import ALL_ROWS, IDENTITIES, OWN_ROWS, Extent, Gates, QueryRule, RowRule, Rule
from jobs.gates.set_rules import refused_by_queries
from jobs.gates.views import Subject, views_of_tables
from jobs.lake.delta_tables import read_table, table_without_rows, write_table
from jobs.lake.packed_tables import write_packed
from jobs.lake.target import Target
from jobs.scenarios.located_yaml import Fault
from jobs.terminal.failures import ReadableSparkFailures
from schemas.tables.gold import RUNS
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, QUARANTINE, RECORD_BATCHES
from schemas.tables.table import Table
from tests.gate_rows import CAPTURE, GOOD, LANES, PLANTED, RUN, TIME, Row, frame, planted
from tests.spark.test_packed_tables import packed
from udfs.errors import RuleError

SILVER = Subject("silver", CAPTURE)


def refused(spark: SparkSession, rows: Mapping[Table, Sequence[Row]], names: set[str]) -> dict[str, int]:
    """By rule name: how many of the rows the rule refuses, in all of its tables."""

    def own(table: Table, extent: Extent = OWN_ROWS) -> DataFrame:
        there = frame(spark, table, rows.get(table, ())) if rows.get(table) else table_without_rows(spark, table)
        identity = CAPTURE if table.layer == "silver" else RUN
        if extent == IDENTITIES:
            return there.select(table.replaced_by).distinct()
        return there if extent == ALL_ROWS else there.where(F.col(table.replaced_by) == identity)

    ours = [rule for rule in default_gates().rules if rule.name in names]
    rules = [replace(rule, tables=tuple(table for table in rule.tables if table in rows)) for rule in ours]
    found = dict.fromkeys(names, 0)
    queries = [rule for rule in rules if isinstance(rule, QueryRule)]
    with views_of_tables(spark, queries, own):
        for (name, _), finding in refused_by_queries(spark, queries).items():
            found[name] += finding.refused
    for table in rows:
        about = [rule for rule in rules if isinstance(rule, RowRule) and table in rule.tables]
        if about:
            marked = own(table).select(F.explode(violated_rules(about, LANES)).alias(VIOLATIONS))
            for row in marked.groupBy(VIOLATIONS).count().collect():
                found[row[0]] += row[1]
    return found


def test_fetches_of_a_cluster_that_is_not_replayed_are_in_no_sum(spark: SparkSession) -> None:
    """The capture set shows two clusters, and the run replays one of them."""
    fetch = {"connection_id": 6, "exchange_no": 0, "api_name": "FETCH", "request_bytes": 90, "response_bytes": 90}
    connections = [{"connection_id": 5, "cluster_id": "ours"}, {"connection_id": 6, "cluster_id": "theirs"}]
    rows = {**GOOD, CONNECTIONS: connections, EXCHANGES: [*GOOD[EXCHANGES], fetch]}
    rule = "captured_fetches_add_up"
    of_run = {"algorithm": "session_cache", "lanes": list(LANES), "cluster_id": "ours"}
    assert refused(spark, {**rows, RUNS: [of_run]}, {rule}) == {rule: 0}
    assert refused(spark, {**rows, RUNS: [{**of_run, "cluster_id": "theirs"}]}, {rule}) == {rule: 1}


def test_fetches_of_the_metadata_log_are_in_no_sum(spark: SparkSession) -> None:
    fetch = {"connection_id": 5, "exchange_no": 7, "api_name": "FETCH", "api_version": 17, "request_bytes": 90}
    fetch |= {"fetch_replica_id": 1, "fetch_session_id": 0, "fetch_session_epoch": -1}
    rule = "captured_fetches_add_up"
    assert refused(spark, {**GOOD, EXCHANGES: [*GOOD[EXCHANGES], fetch]}, {rule}) == {rule: 0}
    of_follower = fetch | {"fetch_session_epoch": 0}
    assert refused(spark, {**GOOD, EXCHANGES: [*GOOD[EXCHANGES], of_follower]}, {rule}) == {rule: 1}


def test_every_rule_that_ships_has_a_planted_violation() -> None:
    assert set(PLANTED) == {rule.name for rule in default_gates().rules}


def test_rows_that_are_right_pass_every_rule(spark: SparkSession) -> None:
    assert refused(spark, GOOD, set(PLANTED)) == dict.fromkeys(PLANTED, 0)


@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_violation_is_refused(spark: SparkSession, rule: str) -> None:
    assert refused(spark, planted(rule), {rule}) == {rule: 1}


def test_an_offset_that_cannot_be_is_no_failure(spark: SparkSession) -> None:
    first, second, third = GOOD[RECORD_BATCHES]
    rows = {**GOOD, RECORD_BATCHES: [first, second | {"base_offset": 2**63 - 1, "last_offset_delta": 1}, third]}
    about_offsets = {"offsets_go_forward", "offsets_are_given_once"}
    assert refused(spark, rows, about_offsets) == dict.fromkeys(about_offsets, 0)


@pytest.mark.parametrize(("us", "size", "count"), [(900, 0, 0), (1100, 0, 1), (900, 100, 1)])
def test_times_of_a_request_log_may_be_off_by_a_millisecond(
    spark: SparkSession, us: int, size: int, count: int
) -> None:
    late = {"request_time": TIME + timedelta(microseconds=us)}
    rows = [row | {"request_bytes": size} | (late if n == 0 else {}) for n, row in enumerate(GOOD[EXCHANGES])]
    assert refused(spark, {**GOOD, EXCHANGES: rows}, {"time_goes_forward"}) == {"time_goes_forward": count}


def rules(tmp_path: Path, text: str) -> Gates:
    """The rules of a text, without the shipped ones."""
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    found = read_gates([str(tmp_path / "mine.yaml")])
    return Gates(tuple(rule for rule in found.rules if rule.place.name.endswith("mine.yaml")), found.faults)


UNREADABLE = """\
silver:
  no_such_column:
    table: exchanges
    expression: reqest_bytes > 0
    severity: info
    reason: a
  no_sql:
    table: exchanges
    expression: request_bytes >
    severity: info
    reason: b
  no_condition:
    table: exchanges
    expression: request_bytes + 1
    severity: info
    reason: c
  a_statement:
    table: exchanges
    query: drop view {table}
    severity: info
    reason: d
  unknown_key:
    table: exchanges
    query: select * from {table}
    severity: info
    reason: e
    unit: bytes
gold:
  no_such_function:
    table: fidelity
    query: |
      select agrement(agreed, checked) from {table}
    severity: info
    reason: f
"""


@pytest.fixture
def nothing_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty cache, so that this version has not yet checked any rule."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.usefixtures("nothing_read")
def test_what_spark_cannot_read_is_told_with_everything_else_at_once(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuleError) as raised, ReadableSparkFailures():
        check_rules(spark, rules(tmp_path, UNREADABLE))
    head, *lines = str(raised.value).splitlines()
    assert head == "gates: 6 faults"
    assert [line.strip().removeprefix(f"{tmp_path}/mine.yaml:").split(": ")[0:2] for line in lines] == [
        ["4", "no_such_column"], ["9", "no_sql"], ["14", "no_condition"], ["19", "a_statement"],
        ["27", "unknown_key"], ["31", "no_such_function"],
    ]  # fmt: skip
    assert "`reqest_bytes` cannot be resolved. Did you mean" in lines[0]
    assert "request_bytes" in lines[0]
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("nothing_read")
def test_the_rules_that_ship_can_be_read(spark: SparkSession) -> None:
    check_rules(spark, default_gates())


@pytest.mark.usefixtures("nothing_read")
def test_rules_are_read_again_when_they_have_changed_or_something_was_wrong(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    by_spark = rule_checks._faults_by_spark

    def counted(session: SparkSession, of: Sequence[Rule]) -> list[Fault]:
        asked.append(len(of))
        return by_spark(session, of)

    monkeypatch.setattr(rule_checks, "_faults_by_spark", counted)
    good, bad = rules(tmp_path, MINE), rules(tmp_path, MINE.replace("request_bytes", "reqest_bytes"))
    for _ in range(2):
        check_rules(spark, good)
        with pytest.raises(RuleError):
            check_rules(spark, bad)
    assert len(asked) == 3


@pytest.mark.usefixtures("nothing_read")
def test_the_rules_of_the_page_on_gates_can_be_read(spark: SparkSession, repository: Path, tmp_path: Path) -> None:
    text = (repository / "docs/gates.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(silver:.*?)```", text, re.DOTALL)
    read = rules(tmp_path, example)
    assert len(read.rules) == 3
    check_rules(spark, read)


MINE = """\
silver:
  small_requests:
    table: exchanges
    expression: request_bytes < 100
    severity: warning
    reason: Requests are small.
  of_known_clients:
    every_table_with: [exchange_no, client_id]
    expression: client_id <> 'x'
    severity: critical
    reason: Clients say who they are.
  few_connections:
    table: connections
    expression: connection_id < 0
    severity: critical
    reason: r
  odd_exchanges:
    table: exchanges
    expression: exchange_no = 1
    severity: info
    reason: Some are odd.
"""


@pytest.fixture(scope="module")
def gates(tmp_path_factory: pytest.TempPathFactory) -> Gates:
    return rules(tmp_path_factory.mktemp("rules"), MINE)


@pytest.fixture(scope="module")
def watch(spark: SparkSession, gates: Gates, lake: str, by_workers: bool) -> Watch:
    """Write three tables under a user's own rules."""
    watch = Watch(gates)
    exchanges: list[dict[str, Any]] = [
        {"connection_id": 5, "exchange_no": 0, "client_id": "a", "request_bytes": 99, "response_bytes": 1},
        {"connection_id": 5, "exchange_no": 1, "client_id": "a", "request_bytes": 100, "response_bytes": 30},
        {"connection_id": 5, "exchange_no": 2, "request_bytes": 200, "response_bytes": 7, "request_packet": 12},
    ]
    fetches: list[dict[str, Any]] = [
        {"connection_id": 5, "exchange_no": 0, "topic": "t", "partition": n, "client_id": "xa"[n]} for n in (0, 1)
    ]
    given: dict[Table, list[dict[str, Any]]] = {
        EXCHANGES: exchanges,
        FETCH_PARTITIONS: fetches,
        CONNECTIONS: [{"connection_id": 5}],
    }
    if by_workers:
        parts = (packed(spark, frame(spark, table, rows).toArrow(), table) for table, rows in given.items())
        write_packed(spark, reduce(DataFrame.unionAll, parts), list(given), Target(lake, CAPTURE, watch))
    else:
        for table, rows in given.items():
            write_table(watch.over(frame(spark, table, rows), table), lake, table, CAPTURE)
    out = watch.refused_rows()
    assert out is not None
    write_table(out, lake, QUARANTINE, CAPTURE)
    return watch


@pytest.fixture(scope="module", params=[False, True], ids=["written by Spark", "written by workers"])
def by_workers(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, by_workers: bool) -> str:
    return str(tmp_path_factory.mktemp("gates") / "lake")


def test_rows_are_counted_while_they_are_written(watch: Watch) -> None:
    counts = watch.counts()
    assert {table.name: (found.checked, dict(found.refused)) for table, found in counts.items()} == {
        "exchanges": (3, {"small_requests": 2, "of_known_clients": 1, "odd_exchanges": 2}),
        "fetch_partitions": (2, {"of_known_clients": 1}),
        "connections": (1, {"few_connections": 1}),
    }


@pytest.mark.usefixtures("watch")
def test_refused_rows_of_exchanges_are_in_quarantine_with_their_bytes(spark: SparkSession, lake: str) -> None:
    t = QUARANTINE
    rows = read_table(spark, lake, t).orderBy(t.refused_from, t.exchange_no).collect()
    told = [(row[t.refused_from], row[t.exchange_no], row[t.reason], row[t.bytes], row[t.packet]) for row in rows]
    assert told == [
        ("exchanges", 1, "small_requests", 130, None),
        ("exchanges", 2, "small_requests, of_known_clients", 207, 12),
        ("fetch_partitions", 0, "of_known_clients", 0, None),
    ]
    assert all(row[t.direction] == "row" and row[t.connection_id] == 5 for row in rows)
    assert json.loads(rows[1][t.refused_row])["request_bytes"] == 200
    kept = read_table(spark, lake, EXCHANGES).select(EXCHANGES.exchange_no).collect()
    assert [row[0] for row in kept] == [0]
    assert read_table(spark, lake, CONNECTIONS).count() == 1


def test_a_gate_finds_the_same_while_tables_are_written_and_later(
    spark: SparkSession, watch: Watch, gates: Gates, lake: str
) -> None:
    at_once = apply_gate(spark, lake, gates, SILVER, watch.counts())
    later = count_by_scan(spark, lake, gates, SILVER, watch.counts())
    assert at_once == apply_gate(spark, lake, gates, SILVER, later)
    of_all = {(found.rule, found.table): (found.checked, found.refused, found.examples) for found in at_once}
    assert of_all["few_connections", "connections"] == (1, 1, ("connection_id=5",))
    assert of_all["of_known_clients", "fetch_partitions"] == (
        2, 1, ("connection_id=5, exchange_no=0, topic=t, partition=0",)
    )  # fmt: skip
    assert of_all["odd_exchanges", "exchanges"] == (
        3, 2, ("connection_id=5, exchange_no=0", "connection_id=5, exchange_no=2"),
    )  # fmt: skip


def test_results_are_kept_once_and_known_by_their_rules(
    spark: SparkSession, watch: Watch, gates: Gates, lake: str
) -> None:
    found = apply_gate(spark, lake, gates, SILVER, watch.counts())
    for _ in range(2):
        write_results(spark, lake, gates, SILVER, found)
    assert stored_results(spark, lake, gates, SILVER) == found
    assert stored_results(spark, lake, default_gates(), SILVER) == []
    assert read_table(spark, lake, GATE_RESULTS).count() == len(found)
