"""Consumers in racks: the command says what they read across racks, and what they would with KIP-392."""

from __future__ import annotations

import html
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.replay import main
from jobs.run import Output, Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold_racks import RACK_READS
from schemas.tables.silver import FETCH_PARTITIONS
from tests.e2e.conftest import RUN_AT
from tests.lakes import queried

T, F = RACK_READS, FETCH_PARTITIONS
STATED = [*(f"broker.{n}.broker.rack=az{n}" for n in (1, 2, 3)), "address.127.0.0.0/8.client.rack=az1"]


@pytest.fixture(scope="module")
def run(repository: Path, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Run:
    """A run on the capture, with racks that the scenario states."""
    folder = tmp_path_factory.mktemp("racks")
    of = replace(
        resolve_scenario(None, (), STATED), replay={"fetch_max_bytes": {"consumer.fetch.max.bytes": (1 << 20,)}}
    )
    capture = repository / "tests/captures/mixed.pcap.zst"
    made = Run(of, (capture,), str(folder / "lake"), RUN_AT, output=Output(folder / "report.html"))
    ingest(spark, made)
    return made


@pytest.fixture(scope="module")
def screen(run: Run) -> str:
    """What the replay prints."""
    with redirect_stdout(StringIO()) as printed:
        main(run)
    return " ".join(printed.getvalue().split())


def test_every_byte_of_consumers_is_read_from_some_broker(run: Run, screen: str) -> None:
    reads = queried(run.lake, T)
    fetched = queried(run.lake, F, where=f"{F.reader} = 'consumer'")
    assert sum(row[T.bytes] for row in reads) == sum(row[F.returned_bytes] or 0 for row in fetched) > 0
    assert {(row[T.client_rack], row[T.broker_rack], row[T.broker] == row[T.leader]) for row in reads} == {
        ("az1", f"az{n}", True) for n in (1, 2, 3)
    }


def test_a_partition_with_a_replica_in_the_consumers_rack_is_read_there(run: Run, screen: str) -> None:
    reads = [row for row in queried(run.lake, T) if row[T.unknown_for] is None]
    assert reads
    assert {row[T.preferred] for row in reads if row[T.leader] == "1"} == {"1"}
    assert all(row[T.preferred] in ("1", row[T.leader]) for row in reads)


def test_screen_and_page_say_what_crosses_racks(run: Run, screen: str) -> None:
    reads = [row for row in queried(run.lake, T) if row[T.unknown_for] is None]
    across = sum(row[T.bytes] for row in reads if row[T.broker_rack] != "az1")
    assert f"READS consumers read {across / 1024:,.1f} KiB across racks" in screen
    assert run.output.page is not None
    assert "across racks" in html.unescape(run.output.page.read_text(encoding="utf-8"))
