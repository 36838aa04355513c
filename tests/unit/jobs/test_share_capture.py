"""Share groups of a live cluster with three share sessions per broker: decoded, and replayed as captured."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.open_capture import open_capture
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_shares import SHARE_LIMITS, SHARE_SESSIONS
from schemas.wire.errors import SHARE_SESSION_LIMIT_REACHED, SHARE_SESSION_NOT_FOUND
from tests.unit.replay.session_cache.share_rows import Gold, share_gold, share_lanes
from udfs.replay.session_cache.share_sessions.silver_events import (
    SHARE_COLUMNS,
    SHARE_CONNECTION_COLUMNS,
    connection_events,
    share_connections,
    share_events,
)
from udfs.replay.shared.dealing import with_texts_once

Tables = dict[str, pa.Table]


@pytest.fixture(scope="module")
def tables(repository: Path) -> Tables:
    capture = open_capture(repository / "tests/captures/share_groups/few_sessions.pcap.zst", threads=1)
    return dict(capture.tables("share_fetches", "share_partitions", "connections", "exchanges"))


@pytest.fixture(scope="module")
def gold(tables: Tables) -> Gold:
    fetches, connections = tables["share_fetches"], tables["connections"].select(SHARE_CONNECTION_COLUMNS)
    known = share_connections(fetches["connection_id"].to_numpy(), connections)
    requests = map(with_texts_once, fetches.select(SHARE_COLUMNS).to_batches())
    ends = map(with_texts_once, connections.to_batches())
    batches = [*share_events(requests, known), *connection_events(ends, known)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    rows.sort(key=lambda row: [row[name] for name in ("broker", "time", "kind", "connection_id", "exchange_no")])
    return share_gold(rows, share_lanes(3, 2, 8))


def test_every_message_of_a_share_group_is_decoded(tables: Tables) -> None:
    shared = [row for row in tables["exchanges"].to_pylist() if (row["api_name"] or "").startswith("SHARE_")]
    assert Counter(row["api_name"] for row in shared) == {
        "SHARE_FETCH": 1160, "SHARE_ACKNOWLEDGE": 21, "SHARE_GROUP_HEARTBEAT": 104,
    }  # fmt: skip
    assert {row["decode_fault"] for row in shared} == {None}
    assert {row["group_id"] for row in shared} == {"g1", "g2", "g3"}


def test_the_acquired_records_of_a_fetch_are_those_of_all_its_partitions(tables: Tables) -> None:
    records = Counter[tuple[int, int]]()
    for row in tables["share_partitions"].to_pylist():
        if row["entry"] == "returned" and row["first_offsets"]:
            ranges = zip(row["first_offsets"], row["last_offsets"], strict=True)
            records[row["connection_id"], row["exchange_no"]] += sum(last - first + 1 for first, last in ranges)
    fetches = tables["share_fetches"].to_pylist()
    of_fetches = {(row["connection_id"], row["exchange_no"]): row["acquired_records"] for row in fetches}
    assert {key: n for key, n in of_fetches.items() if n} == records
    assert sum(records.values()) > 3000


def test_the_captured_limit_gives_every_grant_and_error_of_the_capture(gold: Gold) -> None:
    agreed = {(row["metric"], row["agreed"] == row["checked"], row["unknown"]) for row in gold[FIDELITY.name]}
    assert agreed == {(metric, True, 0) for metric in ("share_grants", "share_errors", "share_requests")}
    rows = [row for row in gold[SHARE_SESSIONS.name] if row["scenario"] == "limit=3"]
    names = ("requests", "created", "not_found", "wrong_epoch")
    assert [sum(row[name] for row in rows) for name in names] == [
        sum(row[f"captured_{name}"] for row in rows) for name in names
    ]


def test_the_capture_shows_the_limit_and_how_many_sessions_would_have_been_enough(tables: Tables, gold: Gold) -> None:
    limits = [row for row in gold[SHARE_LIMITS.name] if row["scenario"] == "limit=3"]
    assert {(row["sessions_at_least"], row["sessions_at_most"]) for row in limits} == {(3, 3)}
    assert max(row["needed_sessions"] for row in limits) == 7
    enough = [row for row in gold[SHARE_SESSIONS.name] if row["scenario"] == "limit=8"]
    assert sum(row["refused"] for row in enough) == 0
    errors = Counter(row["error_code"] for row in tables["share_fetches"].to_pylist())
    assert (errors[SHARE_SESSION_LIMIT_REACHED], errors[SHARE_SESSION_NOT_FOUND]) == (177, 4)
