"""A replay of the second night continues from the state at the end of the first night. It gives what one replay of
both nights gives.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.cli import run_command
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_sessions import SESSION_EVICTIONS
from schemas.tables.silver import CAPTURES
from tests.lakes import queried, table_rows
from tests.unit.capture.capture_files import microseconds, sample_capture, store

SCENARIO = """
captured: {max.incremental.fetch.session.cache.slots: 8}
replay: {session_cache: {max.incremental.fetch.session.cache.slots: [16]}}
"""
DEPENDS_ON_THE_CACHE = ("session_grants", "session_shards", "session_partitions")
"""Metrics that are unknown as long as a broker's sessions, and the shard whose turn it is, are unknown."""


@pytest.mark.usefixtures("spark", "tables_alone")
def test_the_sessions_of_the_night_before_are_in_the_cache(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link_type, packets = sample_capture(repository, "crowded")
    cut = len(packets) // 2
    begin = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds(packets[cut]))
    first, second, both = (
        store(tmp_path / f"{name}.pcap", link_type, part)
        for name, part in (("first", packets[:cut]), ("second", packets[cut:]), ("both", packets))
    )
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    whole, lake = str(tmp_path / "whole"), str(tmp_path / "lake")
    replay = ["replay", f"--scenario={tmp_path}/scenario.yaml"]
    assert run_command(["ingest", f"--captures={both}", f"--lake={whole}"]) == 0
    assert run_command([*replay, f"--lake={whole}", f"--from={begin.isoformat()}"]) == 0
    for capture in (first, second):
        assert run_command(["ingest", f"--captures={capture}", f"--lake={lake}", "--continue"]) == 0
    assert run_command([*replay, f"--lake={lake}"]) == 0

    of_whole, of_lake = (table_rows(of, SESSION_EVICTIONS, without=["run_id"]) for of in (whole, lake))
    assert of_whole
    for by_whole, by_lake in zip(of_whole, of_lake, strict=True):
        assert by_whole[:-1] == by_lake[:-1]
        assert abs(by_whole[-1] - by_lake[-1]) <= 1  # of the session whose first response was pending at the cut
    t = FIDELITY
    for row in queried(lake, t, t.metric, t.checked, t.agreed, t.unknown):
        assert row[t.checked] == row[t.agreed]
        assert row[t.unknown] == 0 or row[t.metric] not in DEPENDS_ON_THE_CACHE

    (of_first,) = {row[CAPTURES.continues] for row in queried(lake, CAPTURES, CAPTURES.continues)} - {None}
    assert run_command(["prune", f"--capture={of_first}", f"--lake={lake}"]) == 0
    capsys.readouterr()
    assert run_command([*replay, f"--lake={lake}"]) == 0
    assert f"capture set {of_first} is gone, which this one goes on from" in capsys.readouterr().err
    rows = queried(lake, t, t.metric, t.unknown)
    assert any(row[t.unknown] for row in rows if row[t.metric] == "session_grants")
