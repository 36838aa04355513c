"""A user's own rule on the rows of an ingest: the refused rows are in quarantine, and no byte is lost."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.cli import run_command
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import CONNECTIONS, EXCHANGES, QUARANTINE
from tests.lakes import queried

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
    """The exit code and stderr of an ingest with the rule MINE."""
    rules = Path(lake).parent / "mine.yaml"
    rules.write_text(MINE, encoding="utf-8")
    capture = repository / "tests/captures/starve.pcap.zst"
    with redirect_stderr(io.StringIO()) as err:
        code = run_command(["ingest", f"--captures={capture}", f"--lake={lake}", f"--gates={rules}"])
    return code, err.getvalue()


def test_a_users_rule_ends_the_job_with_3_and_names_what_it_refused(told: tuple[int, str]) -> None:
    code, err = told
    assert code == 3
    lines = err.splitlines()
    (rule,) = [i for i, line in enumerate(lines) if line.startswith("  critical: no_metadata: ")]
    assert "rows of exchanges. Nobody asks for metadata here." in lines[rule]
    assert [line.startswith("    connection_id=") for line in lines[rule + 1 : rule + 4]] == [True, True, True]


@pytest.mark.usefixtures("told")
def test_every_byte_stays_accounted_for(lake: str) -> None:
    x, q, c = EXCHANGES, QUARANTINE, CONNECTIONS
    kept = queried(lake, x)
    out = queried(lake, q, where=f"{q.refused_from} = '{x.name}'")
    assert "METADATA" not in {row[x.api_name] for row in kept}
    assert {row[q.reason] for row in out} == {"no_metadata"}
    framed = sum(row[c.framed_bytes] for row in queried(lake, c))
    in_exchanges = sum((row[x.request_bytes] or 0) + (row[x.response_bytes] or 0) for row in kept)
    in_quarantine = sum(row[q.bytes] for row in out)
    assert in_quarantine > 0
    assert in_exchanges + in_quarantine == framed


@pytest.mark.usefixtures("told")
def test_the_results_say_what_each_rule_found(lake: str) -> None:
    t = GATE_RESULTS
    rows = {(row[t.rule], row[t.table_name]): row for row in queried(lake, t)}
    refused = rows["no_metadata", EXCHANGES.name]
    out = len(queried(lake, QUARANTINE, where=f"{QUARANTINE.refused_from} IS NOT NULL"))
    assert (refused[t.rows_refused], refused[t.passed], len(refused[t.examples])) == (out, False, 3)
    assert refused[t.rows_checked] == out + len(queried(lake, EXCHANGES))
    assert all(row[t.passed] for (rule, _), row in rows.items() if rule != "no_metadata")
