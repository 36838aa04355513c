"""The outcomes that an aim of `find` can name: results of a replay's lanes, from the replay's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from schemas.tables import algorithms
from schemas.tables.gold import FETCH_FAIRNESS, FETCH_RANGES
from schemas.tables.gold_limits import PARTITION_LIMIT_HEADROOM, PARTITION_LIMITS
from schemas.tables.gold_memory import (
    BROKER_MEMORY,
    BROKER_MEMORY_RANGES,
    CONSUMER_MEMORY,
    CONSUMER_MEMORY_RANGES,
    LIBRDKAFKA_QUEUE,
    PRODUCER_MEMORY,
    PRODUCER_MEMORY_RANGES,
)
from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_RANGES
from schemas.tables.table import Column, Table
from schemas.tables.values import BROKER, CONSUMER, PRODUCER

Unit = Literal["bytes", "ms", "count", "share", "days"]


@dataclass(frozen=True)
class Outcome:
    """The result of a lane in one number: an aggregate of the lane's rows in a table.

    columns: what is added up in a row. aggregate: over the rows, so over clients, brokers, topics and time; `rows`
    counts the rows that are not 0. per: the column by which the sum in a row is divided; the row has no value if that
    is 0. where: the rows that count, by column. ranges: the table has ranges, and the median and p90 of the
    replications count. side: whose settings it is about, None for all. missing_is_worst: null means a time that never
    ends.
    """

    name: str
    algorithm: str
    table: Table
    columns: tuple[Column, ...]
    aggregate: Literal["most", "least", "total", "rows"]
    unit: Unit
    doc: str
    side: str | None = None
    per: Column | None = None
    where: tuple[tuple[Column, str], ...] = ()
    is_smaller_better: bool = True
    ranges: bool = False
    missing_is_worst: bool = False


def _with_range(
    of: tuple[str, Table], name: str, metric: str | Column, aggregate: Literal["most", "total"], unit: Unit, doc: str
) -> Outcome:  # fmt: skip
    """An outcome with a range. of: the algorithm, and its table of ranges."""
    algorithm, r = of
    where = ((r.metric, str(metric)),)
    return Outcome(name, algorithm, r, (r.p50,), aggregate, unit, doc=doc, where=where, ranges=True)


def _fetch(name: str, metric: str, aggregate: Literal["most", "total"], unit: Unit, doc: str) -> Outcome:
    of = algorithms.FETCH_MAX_BYTES, FETCH_RANGES
    return replace(_with_range(of, name, metric, aggregate, unit, doc), missing_is_worst=True)


def _split(name: str, metric: str, aggregate: Literal["most", "total"], unit: Unit, doc: str) -> Outcome:
    return _with_range((algorithms.BATCH_SPLIT, BATCH_SPLIT_RANGES), name, metric, aggregate, unit, doc)


def _closed(name: str, column: Column, aggregate: Literal["total", "rows"], unit: Unit, doc: str) -> Outcome:
    f = FETCH_FAIRNESS
    return Outcome(
        name, algorithms.FETCH_MAX_BYTES, f, (column,), aggregate, unit, doc=doc, where=((f.mode, "closed"),)
    )  # fmt: skip


def _pool(
    side: str, name: str, column: Column, aggregate: Literal["most", "total"], unit: Unit, doc: str
) -> Outcome:  # fmt: skip
    """An outcome of the pools of one side, with a range."""
    of = algorithms.CONSUMER_MEMORY, _RANGES[side]
    return replace(_with_range(of, f"{side}_{name}", column, aggregate, unit, doc), side=side)


def _pools(side: str) -> tuple[Outcome, ...]:
    """The outcomes that the pools of all sides have in common."""
    whose, t = _WHAT_WAITS[side], PRODUCER_MEMORY  # all tables of pools have these columns
    return (
        _pool(side, "used", t.used_bytes_max, "most", "bytes", f"Most bytes in use by one {side}"),
        _pool(side, "waits", t.waits, "total", "count", f"How many {whose} wait for memory"),
        _pool(side, "longest_wait", t.wait_ms_max, "most", "ms",
              f"Longest time that one of the {whose} waits for memory"),
    )  # fmt: skip


_RANGES = {CONSUMER: CONSUMER_MEMORY_RANGES, BROKER: BROKER_MEMORY_RANGES, PRODUCER: PRODUCER_MEMORY_RANGES}
_WHAT_WAITS = {CONSUMER: "responses of consumers", BROKER: "requests to brokers", PRODUCER: "batches of producers"}
_C, _P, _B = CONSUMER_MEMORY, PRODUCER_MEMORY, BROKER_MEMORY
_S, _D, _L, _H = SESSION_CACHE, BATCH_SPLIT, PARTITION_LIMITS, PARTITION_LIMIT_HEADROOM
_SESSIONS, _SPLITS, _LIMITS = algorithms.SESSION_CACHE, algorithms.BATCH_SPLIT, algorithms.PARTITION_LIMITS

OUTCOMES: tuple[Outcome, ...] = (
    _fetch("catch_up", "catch_up_ms", "most", "ms", "Time until the slowest reader has read its backlog"),
    _fetch("held", "held_bytes", "most", "bytes",
           "Most record bytes that one reader holds (received, and not yet taken by the application); equal runs "
           "differ by more than its range"),
    _fetch("longest_wait", "longest_wait_ms", "most", "ms",
           "Longest time in which a partition gets nothing although it has records"),
    _fetch("end_lag", "end_lag_bytes", "most", "bytes",
           "Most bytes that one reader has not yet read when the capture ends"),
    _fetch("requests", "requests", "total", "count", "Fetches of all readers"),
    _closed("waiting", FETCH_FAIRNESS.empty_though_available, "rows", "count",
            "Partitions that get nothing in some fetch although they have records"),
    _closed("cut_tails", FETCH_FAIRNESS.cut_tail_bytes, "total", "bytes",
            "Bytes that are fetched twice, because a batch was cut"),
    *_pools(CONSUMER), *_pools(BROKER), *_pools(PRODUCER),
    Outcome("consumer_stuck", algorithms.CONSUMER_MEMORY, _C, (_C.stuck_connections, _C.larger_than_pool), "total",
            "count", doc="Connections of consumers that wait forever, and responses larger than the pool",
            side=CONSUMER),
    Outcome("consumer_pace", algorithms.CONSUMER_MEMORY, _C, (_C.throughput_ratio,), "least", "share",
            doc="Bytes per second of the slowest consumer, relative to the captured lane", side=CONSUMER,
            is_smaller_better=False),
    Outcome("consumer_queue", algorithms.CONSUMER_MEMORY, LIBRDKAFKA_QUEUE, (LIBRDKAFKA_QUEUE.bound_bytes,), "most",
            "bytes", doc="Most bytes that the queue of one librdkafka consumer can hold", side=CONSUMER),
    Outcome("broker_failed", algorithms.CONSUMER_MEMORY, _B, (_B.larger_than_limit,), "total", "count",
            doc="Requests to brokers that are larger than socket.request.max.bytes", side=BROKER),
    Outcome("producer_failed", algorithms.CONSUMER_MEMORY, _P, (_P.exhausted, _P.larger_than_buffer), "total", "count",
            doc="Batches of producers that get no memory", side=PRODUCER),
    Outcome("harmed", _SESSIONS, _S, (_S.refused, _S.not_found), "total", "count",
            doc="Fetches that are refused a session, and fetches whose session is gone: what harms clients that still "
                "fetch"),
    Outcome("refused_sessions", _SESSIONS, _S, (_S.refused,), "total", "count",
            doc="Full fetches that are refused a session"),
    Outcome("evicted", _SESSIONS, _S, (_S.evicted,), "total", "count", doc="Sessions that are evicted for another"),
    Outcome("not_found", _SESSIONS, _S, (_S.not_found,), "total", "count", doc="Fetches whose session is gone"),
    Outcome("full_fetches", _SESSIONS, _S, (_S.full_fetches,), "total", "count",
            doc="Fetches that name all their partitions, and those that only close a session"),
    Outcome("cached_partitions", _SESSIONS, _S, (_S.cached_partitions,), "most", "count",
            doc="Most partitions in the sessions of one broker"),
    Outcome("session_bytes", _SESSIONS, _S, (_S.request_bytes, _S.response_bytes), "total", "bytes",
            doc="Bytes of Fetch requests and responses on the wire"),
    _split("split_rate", "split_rate", "most", "share",
           "Splits relative to batches, for the producer and topic with the largest share"),
    Outcome("over_limit", _SPLITS, _D, (_D.over_limit,), "most", "share",
            doc="Share of batches larger than max.message.bytes, for the producer and topic with the largest share",
            per=_D.batches),
    _split("splits", "splits", "total", "count", "Batches that are split"),
    Outcome("failed", _SPLITS, _D, (_D.failed_batches,), "total", "count",
            doc="Batches that are too large and are not, or cannot be, split"),
    _split("batches", "batches", "total", "count", "Batches sent for the first time"),
    Outcome("sent", _SPLITS, _D, (_D.bytes_sent,), "total", "bytes", doc="Bytes of all batches sent"),
    _split("resent", "bytes_resent", "total", "bytes", "Bytes sent again because of splits"),
    Outcome("largest_batch", _SPLITS, _D, (_D.batch_bytes_max,), "most", "bytes", doc="Size of the largest batch"),
    Outcome("refused", _LIMITS, _L, (_L.refused_by_broker_limit, _L.refused_by_cluster_limit, _L.refused_before),
            "total", "count", doc="Changes to topics that fail because of a limit"),
    Outcome("failed_requests", _LIMITS, _L, (_L.produces_failed, _L.fetches_failed), "total", "count",
            doc="Produce and Fetch requests for topics that do not exist because of a limit"),
    Outcome("headroom", _LIMITS, _H, (_H.headroom,), "least", "count",
            doc="Replicas that the limit still allows at the end", is_smaller_better=False),
    Outcome("days_left", _LIMITS, _H, (_H.headroom,), "least", "days",
            doc="Days until a limit is reached at the captured growth", per=_H.growth_per_day, is_smaller_better=False),
)  # fmt: skip
"""In the order in which they are listed: for each algorithm, what most aims are about comes first."""


def outcomes_of(algorithm: str) -> Mapping[str, Outcome]:
    """The outcomes of one algorithm by name."""
    return {outcome.name: outcome for outcome in OUTCOMES if outcome.algorithm == algorithm}
