"""A user's own rule on the rows of an ingest: what it refuses is in quarantine, and no byte is lost."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.cli import run_command
from jobs.lake import read_table
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import CONNECTIONS, EXCHANGES, QUARANTINE

MINE = """\
silver:
  no_metadata:
    table: exchanges
    expression: api_name <> 'METADATA'
    severity: critical
    reason: Nobody asks for metadata here.
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("gated") / "lake")


@pytest.fixture(scope="module")
def told(spark: SparkSession, repository: Path, lake: str) -> tuple[int, str]:
    """Exit code and stderr of an ingest under that rule."""
    rules = Path(lake).parent / "mine.yaml"
    rules.write_text(MINE, encoding="utf-8")
    capture = repository / "tests/captures/starve.pcap.zst"
    with redirect_stderr(io.StringIO()) as err:
        code = run_command(["ingest", f"--captures={capture}", f"--lake={lake}", f"--gates={rules}"])
    return code, err.getvalue()


def test_a_users_rule_refuses_with_3_and_names_what(told: tuple[int, str]) -> None:
    code, err = told
    assert code == 3
    lines = err.splitlines()
    (rule,) = [i for i, line in enumerate(lines) if line.startswith("  critical: no_metadata: ")]
    assert "rows of exchanges. Nobody asks for metadata here." in lines[rule]
    assert [line.startswith("    connection_id=") for line in lines[rule + 1 : rule + 4]] == [True, True, True]


@pytest.mark.usefixtures("told")
def test_every_byte_stays_accounted_for(spark: SparkSession, lake: str) -> None:
    x, q, c = EXCHANGES, QUARANTINE, CONNECTIONS
    kept = read_table(spark, lake, x)
    out = read_table(spark, lake, q).where(F.col(q.refused_from) == x.name)
    assert kept.where(F.col(x.api_name) == "METADATA").count() == 0
    assert {row[0] for row in out.select(q.reason).distinct().collect()} == {"no_metadata"}
    framed = read_table(spark, lake, c).agg(F.sum(c.framed_bytes)).collect()[0][0]
    in_exchanges = kept.agg(F.sum(F.col(x.request_bytes) + F.col(x.response_bytes))).collect()[0][0]
    in_quarantine = out.agg(F.sum(q.bytes)).collect()[0][0]
    assert in_quarantine > 0
    assert in_exchanges + in_quarantine == framed


@pytest.mark.usefixtures("told")
def test_the_results_say_what_each_rule_found(spark: SparkSession, lake: str) -> None:
    t = GATE_RESULTS
    rows = {(row[t.rule], row[t.table_name]): row for row in read_table(spark, lake, t).collect()}
    refused = rows["no_metadata", EXCHANGES.name]
    out = read_table(spark, lake, QUARANTINE).where(F.col(QUARANTINE.refused_from).isNotNull()).count()
    assert (refused[t.rows_refused], refused[t.passed], len(refused[t.examples])) == (out, False, 3)
    assert refused[t.rows_checked] == out + read_table(spark, lake, EXCHANGES).count()
    assert all(row[t.passed] for (rule, _), row in rows.items() if rule != "no_metadata")
