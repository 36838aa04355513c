"""A capture that begins in the middle of fetch sessions shows the same of their fetches as one from their beginning."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from jobs.open_capture import open_capture
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from tests.conftest import REPOSITORY
from tests.unit.capture.capture_files import sample_capture, store

Fetches = dict[tuple[str, str, int], list[dict[str, Any]]]
"""By server, client and correlation id the rows of a fetch's partitions, in the order in which the broker reads."""


def fetches_of(name: str, folder: Path, share_lacking: float) -> Fetches:
    """The fetches that a capture shows which lacks a share of its packets at the beginning."""
    link_type, packets = sample_capture(REPOSITORY, name)
    capture = store(folder / "cut.pcap", link_type, packets[int(share_lacking * len(packets)) :])
    c, x, f = CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
    tables = open_capture(capture, threads=1).tables(c.name, x.name, f.name)
    ends = {row[c.connection_id]: (row[c.server], row[c.client]) for row in tables[c.name].to_pylist()}
    numbers = {(row[x.connection_id], row[x.exchange_no]): row[x.correlation_id] for row in tables[x.name].to_pylist()}
    fetches: Fetches = defaultdict(list)
    for row in tables[f.name].to_pylist():
        of = row[f.connection_id]
        fetches[(*ends[of], numbers[of, row[f.exchange_no]])].append(row)
    return {key: sorted(rows, key=lambda row: row[f.read_position] or 0) for key, rows in fetches.items()}


def with_records(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What was read of a fetch's partitions, in the order of reading."""
    f = FETCH_PARTITIONS
    return [
        (row[f.topic_id] or row[f.topic], row[f.partition], row[f.fetch_offset], row[f.partition_max_bytes], got)
        for row in rows
        if (got := row[f.returned_bytes])
    ]


@pytest.mark.parametrize("share_lacking", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("name", ["starve", "mixed"])
def test_sessions_from_before_a_capture_read_what_they_are_known_to_read(
    name: str, share_lacking: float, tmp_path: Path
) -> None:
    f = FETCH_PARTITIONS
    whole, cut = fetches_of(name, tmp_path, 0), fetches_of(name, tmp_path, share_lacking)
    both = {key: (whole[key], rows) for key, rows in cut.items() if all(row[f.readable_known] for row in whole[key])}
    joined = {key: pair for key, pair in both.items() if not all(row[f.session_known] for row in pair[1])}
    readable = {key: pair for key, pair in joined.items() if all(row[f.readable_known] for row in pair[1])}
    assert len(readable) > 0.9 * len(joined) > 20
    assert {key: with_records(rows) for key, (_, rows) in readable.items()} == {
        key: with_records(rows) for key, (rows, _) in readable.items()
    }
