"""Captures that follow each other night by night in one lake. Connections that were open at the cut go on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import run_command
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.silver_quality import CAPTURE_QUALITY
from schemas.tables.table import Table
from tests.lakes import queried
from tests.unit.capture.capture_files import sample_capture, store

FROM_THE_BEGIN = {"capture_id", "exchange_no", "connection_id", "request_packet", "response_packet"}
"""Columns that count from the beginning of a capture, or name it."""


def rows_since(lake: str, table: Table, capture_id: str, since: Any) -> Counter[str]:
    columns = [c for c in table.columns if c not in FROM_THE_BEGIN]
    rows = queried(lake, table, *columns, where=f"capture_id = '{capture_id}'")
    time = EXCHANGES.request_time
    kept = [row for row in rows if row[time] is not None and row[time] >= since]
    return Counter(repr([row[c] for c in columns]) for row in kept)


def capture_ids(lake: str) -> dict[str, tuple[str, str | None]]:
    """By file name: the id of the file's capture set, and the id of the set that it continues."""
    t = CAPTURES
    return {
        Path(row[t.path]).name: (row[t.capture_id], row[t.continues])
        for row in queried(lake, t, t.path, t.capture_id, t.continues)
    }


@pytest.mark.usefixtures("spark")
def test_a_night_goes_on_from_the_night_before(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link_type, packets = sample_capture(repository, "starve")
    cut = len(packets) // 2
    first, second, both = (
        store(tmp_path / f"{name}.pcap", link_type, part)
        for name, part in (("first", packets[:cut]), ("second", packets[cut:]), ("both", packets))
    )
    whole, lake = str(tmp_path / "whole"), str(tmp_path / "lake")
    assert run_command(["ingest", f"--captures={both}", f"--lake={whole}"]) == 0
    assert run_command(["ingest", f"--captures={first}", f"--lake={lake}", "--continue"]) == 0
    assert "nothing is continued" in capsys.readouterr().err
    for _ in range(2):  # the second time it is the same set
        assert run_command(["ingest", f"--captures={second}", f"--lake={lake}", "--continue"]) == 0
    ids = capture_ids(lake)
    assert ids["second.pcap"][1] == ids["first.pcap"][0]
    assert len(queried(lake, CAPTURES, CAPTURES.capture_id)) == 2
    x, q, c = EXCHANGES, CAPTURE_QUALITY, CONNECTIONS
    times = queried(lake, x, x.request_time, where=f"capture_id = '{ids['second.pcap'][0]}' AND exchange_no >= 0")
    since = min(row[x.request_time] for row in times)
    for table in (FETCH_PARTITIONS, EXCHANGES):
        expected = rows_since(whole, table, capture_ids(whole)["both.pcap"][0], since)
        assert rows_since(lake, table, ids["second.pcap"][0], since) == expected
    of_second = f"capture_id = '{ids['second.pcap'][0]}'"
    (counts,) = queried(
        lake, q, q.continued_connections, q.fetches_of_unknown_sessions, where=f"{of_second} AND scope = 'capture set'"
    )
    words = Counter(row[c.continuation] for row in queried(lake, c, c.continuation, where=of_second))
    assert counts[q.continued_connections] == words["continued"] > 0
    assert counts[q.fetches_of_unknown_sessions] == 0

    capsys.readouterr()
    wrong = ["ingest", f"--captures={first}", f"--lake={lake}"]
    assert run_command([*wrong, f"--continue={ids['second.pcap'][0]}"]) == 2
    assert "after these captures begin" in capsys.readouterr().err
    assert run_command([*wrong, "--continue=0123"]) == 2
    assert "no such capture set" in capsys.readouterr().err
