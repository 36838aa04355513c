"""A capture that begins while clients read, as most captures of a running cluster do."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli import run_command
from schemas.tables.gold import FIDELITY
from tests.lakes import queried
from tests.unit.capture.capture_files import sample_capture, store


@pytest.mark.usefixtures("spark", "tables_alone")
def test_consumers_and_followers_are_replayed_from_the_middle_of_their_sessions(
    repository: Path, tmp_path: Path
) -> None:
    link_type, packets = sample_capture(repository, "starve")
    capture, lake = store(tmp_path / "middle.pcap", link_type, packets[len(packets) // 2 :]), str(tmp_path / "lake")
    scenario = tmp_path / "fetches.yaml"
    scenario.write_text("replay: {fetch_max_bytes: {fetch.max.bytes: [64KiB]}}\n")
    assert run_command(["pipeline", f"--captures={capture}", f"--lake={lake}", f"--scenario={scenario}"]) == 0
    t = FIDELITY
    rows = queried(lake, t, t.reader, t.metric, t.checked, t.agreed, t.unknown)
    fetches = [row for row in rows if row[t.metric] in {"fetches_with_records", "empty_fetches"}]
    for reader in ("consumer", "follower"):
        of_reader = [row for row in fetches if row[t.reader] == reader]
        checked, agreed, unknown = (sum(row[c] for row in of_reader) for c in (t.checked, t.agreed, t.unknown))
        assert checked == agreed
        assert checked > unknown
