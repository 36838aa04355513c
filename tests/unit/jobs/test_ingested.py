"""When `pipeline` keeps an earlier ingest: for the same files, read by the same decoder, if all tables are there."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import jobs.ingest
from jobs.captures.capture_index import index_file
from jobs.captures.capture_plan import plan_capture
from jobs.gates.rule_files import default_gates
from jobs.ingest import is_ingested
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.version import decoder_version
from schemas.tables.silver_quality import CAPTURE_QUALITY
from udfs.facts.pseudonyms import Pseudonyms
from udfs.facts.record_sampling import RecordSampling

RULES = default_gates().quarantine_id


class Captures:
    """Takes the place of the rows of `captures` in a lake."""

    def __init__(self, *rows: tuple[str, str]) -> None:
        self.rows = rows

    def select(self, *_: str) -> Captures:
        return self

    def collect(self) -> list[tuple[str, str]]:
        return list(self.rows)


@pytest.mark.parametrize(
    ("path", "written_by", "missing", "is_kept"),
    [
        ("", decoder_version(None, None, quarantine_id=RULES), None, True),
        ("", decoder_version(None, RecordSampling(), quarantine_id=RULES), None, True),
        ("", "0.1.0+of-an-earlier-day", None, False),
        ("", decoder_version(Pseudonyms(b"a secret key of ours"), None, quarantine_id=RULES), None, False),
        ("", decoder_version(None, None, quarantine_id="other rules"), None, False),
        ("", decoder_version(None, None, quarantine_id=RULES, brokers={"10.0.0.1:9092": "1"}), None, False),
        ("", decoder_version(None, None, quarantine_id=RULES, earlier="0.1.0+of-the-night-before"), None, False),
        ("elsewhere/", decoder_version(None, None, quarantine_id=RULES), None, False),
        ("", decoder_version(None, None, quarantine_id=RULES), CAPTURE_QUALITY, False),
    ],
    ids=[
        "same",
        "more than is asked for",
        "other decoder",
        "under a key",
        "other rules",
        "brokers were stated",
        "a set was continued",
        "other path",
        "a table is lost",
    ],
)
def test_an_earlier_ingest_is_kept_only_if_nothing_differs(
    repository: Path, monkeypatch: pytest.MonkeyPatch, path: str, written_by: str, missing: Any, is_kept: bool
) -> None:
    capture = repository / "tests/captures/mixed.pcap.zst"
    rows = Captures((f"{path}{capture}", written_by))
    monkeypatch.setattr(jobs.ingest, "has_table", lambda spark, lake, table: table is not missing)
    monkeypatch.setattr(jobs.ingest, "stored_rows", lambda *_: rows)
    run = Run(resolve_scenario(None, [], []), (capture,), "lake", datetime(2026, 1, 31, tzinfo=UTC))
    session: Any = None
    assert is_ingested(session, run, plan_capture((index_file(str(capture)),), 2)) is is_kept


@pytest.mark.parametrize(
    ("written_by", "is_kept"), [(None, False), (RecordSampling(), True), (RecordSampling(every=1), True)]
)
def test_sizes_of_records_that_a_replay_needs_are_read_if_the_lake_lacks_them(
    repository: Path, monkeypatch: pytest.MonkeyPatch, written_by: RecordSampling | None, is_kept: bool
) -> None:
    capture = repository / "tests/captures/mixed.pcap.zst"
    monkeypatch.setattr(jobs.ingest, "has_table", lambda *_: True)
    monkeypatch.setattr(
        jobs.ingest,
        "stored_rows",
        lambda *_: Captures((str(capture), decoder_version(None, written_by, quarantine_id=RULES))),
    )
    scenario = resolve_scenario(None, ["batch.size=16384"], [])
    run = Run(scenario, (capture,), "lake", datetime(2026, 1, 31, tzinfo=UTC))
    session: Any = None
    assert is_ingested(session, run, plan_capture((index_file(str(capture)),), 2)) is is_kept
