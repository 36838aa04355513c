"""Captures of fetches that open and use sessions, and the results of their replay."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS
from tests.unit.replay.session_cache.event_rows import Gold, fetch_row, partition_row, rows_of_events
from udfs.replay.session_cache.settings import CURRENT, SessionLanes, cache_settings

MINUTES_2 = 120_000
SHARD_IDS = 268_435_455


class Fetch(NamedTuple):
    """A client's fetch of `size` partitions, all of which the capture shows, also within a session.

    is_emptied: the response has no partitions because a quota is exceeded; it has a throttle time, too.
    """

    ms: int
    client: str
    size: int
    privileged: bool = False
    session_id: int = 0
    epoch: int = 0
    granted: int = 0
    error: int = 0
    wait_us: int | None = 1
    life: int = 0
    version: int = 18
    is_cut: bool = False  # after its session and epoch
    is_epoch_cut: bool = False  # before them
    broker: str = "1"
    throttle_ms: int = 0
    is_emptied: bool = False
    called: str = ""  # the client id, if it is not `client`


def captured(*fetches: Fetch) -> pa.RecordBatch:
    """The fetches as a capture shows them."""
    rows = []
    for number, fetch in enumerate(fetches):
        us = 1000 * fetch.ms
        connection = hash_of(fetch.client) + fetch.life
        key = {
            "broker": fetch.broker, "connection_id": connection, "exchange_no": number, "request_time": us,
            "life": fetch.life,
        }  # fmt: skip
        answered = None if fetch.wait_us is None else us + fetch.wait_us
        is_cut = fetch.is_cut or fetch.is_epoch_cut
        session = (None, None) if fetch.is_epoch_cut else (fetch.session_id, fetch.epoch)
        rows.append(
            fetch_row(**key, client_id=fetch.called or fetch.client, response_time=answered, session_id=session[0],
                      session_epoch=session[1], is_cut=is_cut, fetch_error=fetch.error,
                      is_follower=None if is_cut else fetch.privileged, api_version=fetch.version,
                      throttle_time_ms=fetch.throttle_ms)
        )  # fmt: skip
        rows.extend(
            partition_row(**key, position=p, partition=p, response_session_id=fetch.granted,
                          is_returned=fetch.epoch == 0 and not fetch.is_emptied)
            for p in range(fetch.size if fetch.error == 0 and not is_cut else 0)
        )  # fmt: skip
    return rows_of_events(rows)


def hash_of(client: str) -> int:
    return int.from_bytes(client.encode()[:6], "big")


def lanes(slots: int, shards: int = 1, eviction_ms: int = MINUTES_2, rules: int = CURRENT) -> SessionLanes:
    """One lane. slots: of all shards together."""
    return SessionLanes(("lane",), cache_settings(slots, shards, eviction_ms, rules))


def evictions(gold: Gold) -> list[tuple[str, str]]:
    """(evictor, victim) of each eviction."""
    e = SESSION_EVICTIONS
    return sorted((row[e.evictor], row[e.victim]) for row in gold[e.name] for _ in range(row[e.evictions]))


def total(gold: Gold, column: str) -> int:
    return sum(row[column] for row in gold[SESSION_CACHE.name])


def reasons(gold: Gold) -> dict[str, dict[str, int]]:
    """Reasons by metric, over all clients."""
    counts: dict[str, dict[str, int]] = {}
    for row in gold[FIDELITY.name]:
        for reason, count in row[FIDELITY.reasons]:
            of_metric = counts.setdefault(row[FIDELITY.metric], {})
            of_metric[reason] = of_metric.get(reason, 0) + count
    return counts


def ids(*shards: int) -> list[int]:
    """A session id in each of these shards, of a cache with eight."""
    return [shard * SHARD_IDS + 7 for shard in shards]
