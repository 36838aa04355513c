"""The second half of a capture, if it continues the first half, has the rows that the whole capture has."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.values import CONTINUED, DOES_NOT_FIT, NOT_THERE
from tests.unit.capture.capture_files import Tables, rows_in_order, sample_capture, store, tables_of
from tests.unit.facts.earlier_sets import earlier_set
from udfs.facts.continued_connections import EarlierSet

Rows = list[dict[str, Any]]
Whole = tuple[int, list[Any]]
FROM_THE_BEGIN = {"exchange_no", "connection_id"}
"""Columns that count from the beginning of a capture."""


@pytest.fixture(scope="module")
def whole(repository: Path) -> Whole:
    link_type, packets = sample_capture(repository, "starve")
    return link_type, list(packets)


def decoded(
    folder: Path, link_type: int, packets: list[Any], earlier: EarlierSet | None = None, **chunk_size: int
) -> Tables:
    return tables_of(rows_in_order([store(folder / f"{len(packets)}.pcap", link_type, packets)]), earlier, **chunk_size)


def first_request(tables: Tables) -> datetime:
    times = [row[EXCHANGES.request_time] for row in tables[EXCHANGES.name]]
    return min(time for time in times if time is not None)


def rows_since(rows: Rows, since: datetime) -> Counter[str]:
    """The rows of requests that came at this time or later."""
    times = ((row, row[EXCHANGES.request_time]) for row in rows)
    return Counter(
        repr([(name, value) for name, value in sorted(row.items()) if name not in FROM_THE_BEGIN])
        for row, time in times
        if time is not None and time >= since
    )


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("chunk", [{}, {"rows": 7, "payload_bytes": 1}])
def test_the_second_half_of_a_capture_has_the_rows_of_the_whole(
    whole: Whole, tmp_path: Path, share: float, chunk: dict[str, int]
) -> None:
    link_type, packets = whole
    cut = int(len(packets) * share)
    expected = decoded(tmp_path, link_type, packets)
    earlier = earlier_set(decoded(tmp_path, link_type, packets[:cut]))
    begun_anew = decoded(tmp_path, link_type, packets[cut:])
    going_on = decoded(tmp_path, link_type, packets[cut:], earlier, **chunk)
    since = first_request(going_on)
    for table in (FETCH_PARTITIONS, EXCHANGES):
        rows = rows_since(expected[table.name], since)
        assert rows_since(going_on[table.name], since) == rows
        assert rows_since(begun_anew[table.name], since) != rows
    assert CONTINUED in {row[CONNECTIONS.continuation] for row in going_on[CONNECTIONS.name]}
    assert {row[CONNECTIONS.continuation] for row in begun_anew[CONNECTIONS.name]} == {None}


def test_nothing_is_taken_over_from_a_set_whose_requests_are_not_followed(whole: Whole, tmp_path: Path) -> None:
    link_type, packets = whole
    cut = len(packets) // 2
    second = packets[cut:]
    begun_anew = decoded(tmp_path, link_type, second)
    later = decoded(tmp_path, link_type, second, earlier_set(begun_anew))  # goes on from itself
    assert {row[CONNECTIONS.continuation] for row in later[CONNECTIONS.name]} & {CONTINUED, DOES_NOT_FIT} == {
        DOES_NOT_FIT
    }
    since = first_request(begun_anew)
    for table in (FETCH_PARTITIONS, EXCHANGES):
        assert rows_since(later[table.name], since) == rows_since(begun_anew[table.name], since)


def test_a_connection_that_the_earlier_set_lacks_says_so(whole: Whole, tmp_path: Path) -> None:
    link_type, packets = whole
    nothing = earlier_set({name: [] for name in decoded(tmp_path, link_type, packets[:10])})
    later = decoded(tmp_path, link_type, packets[len(packets) // 2 :], nothing)
    words = {row[CONNECTIONS.continuation]: row[CONNECTIONS.began_before_capture] for row in later[CONNECTIONS.name]}
    assert words == {None: False, NOT_THERE: True}
