"""The outcomes of brokers' share sessions, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_shares import SHARE_LIMITS, SHARE_MEMBERS, SHARE_SESSIONS
from schemas.tables.session_reasons import SHARES
from schemas.tables.table import Table
from schemas.tables.values import CONSUMER
from udfs.columns.arrays import Ints, Records
from udfs.columns.arrow_columns import dictionary_column, repeated_text_column
from udfs.columns.time_units import US_PER_MS
from udfs.facts.arrow_tables import make_rows
from udfs.replay.session_cache.dispatch import BUCKET_US
from udfs.replay.session_cache.settings import ShareLanes
from udfs.replay.session_cache.share_sessions.share_fidelity import SHARE_METRICS
from udfs.replay.session_cache.share_sessions.state import CAPTURED_SHARE_SUMS, SHARE_SUMS
from udfs.replay.shared.fidelity_rows import FidelityCounts, count_codes, fidelity_rows
from udfs.replay.shared.key_numbers import client_of


class ShareBuckets(NamedTuple):
    """Some buckets of time, in order. numbers: int64[n], the begin of each, in lengths of a bucket since 1970."""

    numbers: Ints
    captured: Records  # CAPTURED_SHARES[n]
    outcomes: Records  # SHARE_OUTCOME[n, lanes]


@dataclass(frozen=True)
class ShareResult:
    """The outcome of a broker's replay. The last lane is the one without a limit.

    members: group and member id of each number; clients: the client ids. shown: the fewest sessions that the captured
    broker can have allowed, and the most, None if it refused none.
    """

    name: str
    members: Sequence[str]
    clients: Sequence[str]
    buckets: Sequence[ShareBuckets]
    fullest: Ints
    lane_members: Records
    shown_members: Records
    shown: tuple[int, int | None]
    verdicts: Ints


def share_tables(result: ShareResult, lanes: ShareLanes, run_id: str) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of a broker, once all its events were replayed; none if the window has no request of a share group."""
    if not result.verdicts.any():
        return
    yield SHARE_SESSIONS, session_rows(result, lanes, run_id)
    yield SHARE_MEMBERS, member_rows(result, lanes, run_id)
    yield SHARE_LIMITS, limit_rows(result, lanes, run_id)
    yield FIDELITY, fidelity_rows(list(share_fidelity(result)), algorithms.SESSION_CACHE, run_id)


def joined_buckets(parts: Sequence[ShareBuckets]) -> ShareBuckets:
    """All buckets, each once. If a bucket is in two parts, counts are added up, and the later sessions held stay."""
    numbers = np.concatenate([part.numbers for part in parts])
    captured = np.concatenate([np.asarray(part.captured) for part in parts])
    outcomes = np.concatenate([np.asarray(part.outcomes) for part in parts])
    first = np.flatnonzero(np.append(True, np.diff(numbers) != 0))
    last = np.append(first[1:], len(numbers)) - 1
    summed, counted = outcomes[last], captured[first]
    for name in SHARE_SUMS:
        summed[name] = np.add.reduceat(outcomes[name], first, axis=0)
    for name in CAPTURED_SHARE_SUMS:
        counted[name] = np.add.reduceat(captured[name], first)
    return ShareBuckets(numbers[first], counted, summed)


def session_rows(result: ShareResult, lanes: ShareLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `share_sessions`: one for each bucket and lane."""
    t, n = SHARE_SESSIONS, len(lanes.names)
    buckets = joined_buckets(result.buckets)
    outcomes = np.asarray(buckets.outcomes)[:, :n].ravel()
    rows, times = len(outcomes), len(buckets.numbers)
    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, rows),
            t.scenario: dictionary_column(pa.array(lanes.names, pa.string()), np.tile(np.arange(n), times)),
            t.broker: repeated_text_column(result.name, rows),
            t.bucket_start: np.repeat(buckets.numbers * BUCKET_US, n),
            t.live_sessions: outcomes["live_sessions"],
            **{name: outcomes[name] for name in SHARE_SUMS},
            **{f"captured_{name}": np.repeat(buckets.captured[name], n) for name in CAPTURED_SHARE_SUMS},
        },
    )


def member_rows(result: ShareResult, lanes: ShareLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `share_members`: one for each member with a request in the window, and lane."""
    t, n = SHARE_MEMBERS, len(lanes.names)
    is_there = result.verdicts[: len(result.members)].any(axis=(1, 2))
    members = np.flatnonzero(is_there)
    outcomes = np.asarray(result.lane_members)[members, :n].ravel()
    groups, ids = zip(*(client_of(result.members[member]) for member in members.tolist()), strict=True)
    clients = [result.clients[client] for client in result.shown_members["client"][members].tolist()]
    rows = len(outcomes)

    def of_members(texts: Sequence[str]) -> pa.Array[pa.StringScalar]:
        return pa.array(np.repeat(np.array(texts, object), n), pa.string())

    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, rows),
            t.scenario: dictionary_column(pa.array(lanes.names, pa.string()), np.tile(np.arange(n), len(members))),
            t.broker: repeated_text_column(result.name, rows),
            t.group_id: of_members(groups),
            t.client_id: of_members(clients),
            t.member_id: of_members(ids),
            t.requests: outcomes["requests"],
            t.created: outcomes["created"],
            t.refused: outcomes["refused"],
            t.waited_ms: outcomes["waited_us"] // US_PER_MS,
        },
    )


def limit_rows(result: ShareResult, lanes: ShareLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `share_limits`: one for each lane."""
    t, n = SHARE_LIMITS, len(lanes.names)
    at_least, at_most = result.shown
    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, n),
            t.scenario: pa.array(lanes.names, pa.string()),
            t.broker: repeated_text_column(result.name, n),
            t.max_share_sessions: lanes.settings["limit"].copy(),
            t.most_sessions: result.fullest[:n].copy(),
            t.needed_sessions: np.full(n, result.fullest[-1]),
            t.sessions_at_least: np.full(n, at_least),
            t.sessions_at_most: pa.array([at_most] * n, pa.int64()),
        },
    )


def share_fidelity(result: ShareResult) -> Iterator[FidelityCounts]:
    """The fidelity counts of each client and metric, over all members of the client."""
    clients = result.shown_members["client"][: len(result.members)]
    for client, name in enumerate(result.clients):
        of_client = result.verdicts[: len(result.members)][clients == client].sum(axis=0)
        for metric in np.flatnonzero(of_client.any(axis=1)).tolist():
            yield count_codes(SHARE_METRICS[metric], of_client[metric], SHARES)._replace(
                broker=result.name, client_id=name, reader=CONSUMER
            )
