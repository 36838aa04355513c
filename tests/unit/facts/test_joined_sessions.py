"""Fetches in sessions that are captured in part are reconstructed as in a capture of the whole sessions."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.open_capture import open_capture
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from tests.conftest import REPOSITORY
from tests.unit.capture.capture_files import sample_capture, store
from tests.unit.capture.packet_builders import Packet

Fetches = dict[tuple[str, str, int], list[dict[str, Any]]]
"""The rows of a fetch's partitions in the order in which the broker reads, by server, client and correlation id."""


def fetches_of(capture: Path) -> Fetches:
    """The fetches in a capture."""
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
    """For each partition of a fetch with records, what was read of it, in the order of reading."""
    f = FETCH_PARTITIONS
    return [
        (row[f.topic_id] or row[f.topic], row[f.partition], row[f.fetch_offset], row[f.partition_max_bytes], got)
        for row in rows
        if (got := row[f.returned_bytes])
    ]


def without_the_first(packets: list[Packet], share: float) -> list[Packet]:
    return packets[int(share * len(packets)) :]


def without_any(packets: list[Packet], share: float) -> list[Packet]:
    chance = random.Random(7)  # noqa: S311  (not for secrets)
    return [packet for packet in packets if chance.random() >= share]


@pytest.mark.parametrize("name", ["starve", "mixed"])
@pytest.mark.parametrize(
    ("lacking", "share"),
    [
        (without_the_first, 0.3),
        (without_the_first, 0.5),
        (without_the_first, 0.7),
        (without_any, 0.01),
        (without_any, 0.05),
    ],
)
def test_fetches_of_sessions_captured_in_part_read_what_the_whole_capture_shows(
    name: str, lacking: Callable[[list[Packet], float], list[Packet]], share: float, tmp_path: Path
) -> None:
    f = FETCH_PARTITIONS
    link_type, packets = sample_capture(REPOSITORY, name)
    whole = fetches_of(store(tmp_path / "whole.pcap", link_type, packets))
    part = fetches_of(store(tmp_path / "part.pcap", link_type, lacking(packets, share)))
    joined = {key: rows for key, rows in part.items() if not all(row[f.session_known] for row in rows)}
    readable = {key: rows for key, rows in joined.items() if all(row[f.readable_known] for row in rows)}
    assert len(readable) > 0.7 * len(joined) > 20
    assert {key: with_records(rows) for key, rows in readable.items()} == {
        key: with_records(whole[key]) for key in readable
    }
