"""--captured states what is in force on one broker alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.cli import run_command
from schemas.tables.gold_sessions import SESSION_SLOTS
from tests.conftest import REPOSITORY
from tests.lakes import queried

CAPTURE = REPOSITORY / "tests/captures/starve.pcap.zst"
SLOTS = "max.incremental.fetch.session.cache.slots"


@pytest.mark.usefixtures("tables_alone")
def test_a_broker_that_the_capture_shows_has_its_own_slots_and_no_other_broker_can_have_some(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, lake = tmp_path / "sessions.yaml", tmp_path / "lake"
    scenario.write_text(f"replay: {{session_cache: {{{SLOTS}: [80]}}}}\n")

    def pipeline(*captured: str) -> int:
        fixed = (f"--captures={CAPTURE}", f"--scenario={scenario}", f"--lake={lake}")
        return run_command(["pipeline", *fixed, *(f"--captured={stated}" for stated in captured)])

    assert pipeline(f"broker.7.{SLOTS}=16") == 2
    assert f"--captured: broker.7.{SLOTS}: the capture shows the brokers 1, 2, 3" in capsys.readouterr().err
    assert pipeline(f"{SLOTS}=40", f"broker.2.{SLOTS}=16") == 0
    s = SESSION_SLOTS
    found = {(row[s.broker], row[s.scenario]): row[s.slots] for row in queried(str(lake), s)}
    assert found == {
        (broker, lane): 80 if lane != "captured" else 16 if broker == "2" else 40
        for broker in ("1", "2", "3")
        for lane in ("captured", f"broker.{SLOTS}=80")
    }
