"""The findings of a run as plain rows, for tests of sentences, plots and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Row

from jobs.report_page.advice.recommendation import Recommendation
from jobs.report_page.capture_contents import (
    CONTENT_QUERIES,
    captured_files,
    connections_by_protocol,
    quality_row,
    requests_by_api,
)
from jobs.report_page.findings import KnownRun
from jobs.report_page.question import Findings, Query
from jobs.report_page.questions import QUESTIONS, answer_question
from jobs.report_page.row_caps import IN_ALL
from jobs.report_page.trust import fidelity_by_reason
from jobs.report_page.verdict import Verdict
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.silver import CAPTURES
from schemas.tables.silver_quality import CAPTURE_QUALITY
from schemas.tables.table import Table

KAFKA = "4.3, from the API versions that brokers offer"
BY_NUMBER = {question.number: question for question in QUESTIONS}
AT = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
_EMPTY: Mapping[str, Any] = {
    "string": "", "boolean": False, "double": 0.0, "timestamp": AT, "array<string>": [], "array<int>": [],
    "map<string,bigint>": {}, "map<string,double>": {}, "map<string,string>": {}, "array<bigint>": [],
}  # fmt: skip


def row_of(table: Table, **values: Any) -> Row:
    """A row of a table: 0, empty or false where no value is given."""
    return Row(**{str(column): values.get(column, _EMPTY.get(column.type, 0)) for column in table.columns})


def one_of_one(row: Row, in_all: int = 1) -> Row:
    """The row with the number of all rows, as queries for the first rows return it."""
    return Row(**row.asDict(), **{IN_ALL: in_all})


def agreement(
    algorithm: str, reader: str, metric: str, checked: int, agreed: int, unknown: int = 0, reason: str | None = None
) -> Row:
    """A row of the query `fidelity_by_reason`; a reason was given once."""
    t = FIDELITY
    counts = {t.checked: checked, t.agreed: agreed, t.unknown: unknown, "reason": reason, "times": reason and 1}
    return Row(**{t.algorithm: algorithm, t.reader: reader, t.metric: metric, **counts})


def findings(
    rows: Mapping[Query, list[Row]] | None = None,
    lanes: Mapping[str, Sequence[str]] | None = None,
    refused: Mapping[str, str] | None = None,
) -> Findings:
    """The findings of a small capture without faults, with these rows of further queries."""
    always: dict[Query, list[Row]] = {query: [] for query in (*CONTENT_QUERIES, fidelity_by_reason)}
    always[captured_files] = [one_of_one(row_of(CAPTURES, path="/captures/a.pcap", packets=9))]
    always[requests_by_api] = [Row(api_name="FETCH", count=7, answered=7)]
    always[connections_by_protocol] = [Row(protocol="kafka", connections=2, doubled_packets=0, one_sided=0)]
    always[quality_row] = [row_of(CAPTURE_QUALITY, exchanges=7, fetches=7)]
    always[fidelity_by_reason] = [agreement("fetch_max_bytes", "consumer", "fetches_with_records", 200, 199, 3)]
    return Findings({**always, **(rows or {})}, lanes or {}, refused or {}, {}, KAFKA)


def known(run_id: str = "run", cluster_id: str | None = None) -> KnownRun:
    """The run of the findings."""
    told = {"run_id": run_id, "cluster_id": cluster_id, "scenario_json": '{"captured": {}, "replay": {}}'}
    row = row_of(RUNS, capture_id="capture", refetch_version="0.0", **told)
    listed = Row(**{RUNS.run_id: run_id, RUNS.capture_id: "capture", RUNS.run_at: AT, "replays": ["fetch_max_bytes"]})
    return KnownRun((row,), (listed,))


def verdict(found: Findings, *made: Recommendation, of: KnownRun | None = None) -> Verdict:
    """A run with its findings and these recommendations."""
    return Verdict(of or known(), found, made)


def sentence(found: Findings, number: int) -> str:
    """The answer to a question, which the findings must hold."""
    told = answer_question(found, BY_NUMBER[number])
    assert told.is_answered, told.sentence
    return told.sentence
