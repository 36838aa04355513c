"""The outcome of producers under quotas, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY, PRODUCER_THROTTLES
from schemas.tables.quota_reasons import THROTTLES
from schemas.tables.table import Table
from schemas.tables.values import PRODUCER
from udfs.columns.arrays import Ints, Records
from udfs.columns.arrow_columns import dictionary_column, repeated_text_column
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import US_PER_MS
from udfs.facts.arrow_tables import make_rows
from udfs.replay.fetch_max_bytes.producer_quota.events import CapturedProducers
from udfs.replay.fetch_max_bytes.producer_quota.fidelity import counted
from udfs.replay.fetch_max_bytes.producer_quota.settings import ProducerLanes
from udfs.replay.shared.fidelity_rows import AGREED, NO_REASON, FidelityCounts, count_cases, fidelity_rows

WORDS = {AGREED: NO_REASON} | {code: word for word, code in THROTTLES.codes.items()}
(METRIC,) = THROTTLES.metrics
SUMMED = {
    "requests": "requests", "bytes": "bytes", "throttled_requests": "throttled", "throttle_time_ms": "throttle_ms",
    "expired_requests": "expired",
}  # fmt: skip
"""For each column the field of THROTTLING that is summed over connections."""


@dataclass(frozen=True)
class Throttled:
    """The outcome of producers that share quotas.

    outcomes: THROTTLING[lanes, connections]. blocked_us: int64[lanes, processes]. replayed_ms, shown, verdicts:
    int64[n], as written by `judge_throttles`, in the order of the unit's requests.
    """

    captured: CapturedProducers
    outcomes: Records
    blocked_us: Ints
    replayed_ms: Ints
    shown: Ints
    verdicts: Ints


@dataclass(frozen=True)
class ProducerAtBroker:
    """A producer at a broker: the numbers of both, of its connections there, and of its requests there that count,
    int64[m] each.
    """

    process: int
    broker: int
    connections: Ints
    requests: Ints


def producer_tables(of: Throttled, lanes: ProducerLanes, run_id: str) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of producers that share quotas; none if no request is in the window."""
    pairs = list(producers_at_brokers(of.captured))
    if not pairs:
        return
    yield PRODUCER_THROTTLES, throttle_rows(of, pairs, lanes, run_id)
    yield FIDELITY, fidelity_rows(list(throttle_fidelity(of, pairs)), algorithms.FETCH_MAX_BYTES, run_id)


def producers_at_brokers(captured: CapturedProducers) -> Iterator[ProducerAtBroker]:
    """Each producer at each broker to which it sends a request that counts."""
    connections, requests = captured.unit.connections, captured.unit.requests
    places = np.column_stack([connections["process"], connections["broker"]])
    pairs, pair_of = np.unique(places, axis=0, return_inverse=True)
    of_request = np.where(requests["counts"] == 1, pair_of.ravel()[requests["connection"]], NONE)
    for (process, broker), own, counting in zip(
        pairs.tolist(), rows_of_each(pair_of.ravel(), len(pairs)), rows_of_each(of_request, len(pairs)), strict=True
    ):
        if len(counting):
            yield ProducerAtBroker(process, broker, own, counting)


def rows_of_each(number: Ints, count: int) -> list[Ints]:
    """For each number from 0 to `count` - 1 the rows that have it. number: int64[rows], or NONE."""
    order = np.argsort(number, kind="stable")
    return np.split(order, np.searchsorted(number[order], np.arange(count + 1)))[1:-1]


def throttle_rows(
    of: Throttled, pairs: Sequence[ProducerAtBroker], lanes: ProducerLanes, run_id: str
) -> pa.RecordBatch:
    """Rows of `producer_throttles`: one for each producer, broker and lane."""
    t, n = PRODUCER_THROTTLES, len(lanes.names)
    rows = len(pairs) * n
    clients = [of.captured.clients[pair.process] for pair in pairs]

    def per_pair(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
        return pa.array([value for value in values for _ in range(n)], kind)

    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, rows),
            t.scenario: dictionary_column(pa.array(lanes.names, pa.string()), np.tile(np.arange(n), len(pairs))),
            t.client_id: per_pair([client_id for client_id, _ in clients], pa.string()),
            t.client_address: per_pair([address for _, address in clients], pa.string()),
            t.broker: per_pair([of.captured.brokers[pair.broker] for pair in pairs], pa.string()),
            t.user: per_pair([lanes.users.get(client) for client in clients], pa.string()),
            t.byte_rate: pa.array(
                [quota and quota.rate for client in clients for quota in lanes.quotas_of(client)], pa.int64()
            ),
            **lane_columns(of, pairs),
            **{c: per_pair(values, pa.int64()) for c, values in captured_columns(of, pairs).items()},
            t.captured_sending_ms: per_pair([captured_sending_ms(of, pair) for pair in pairs], pa.float64()),
        },
    )


def lane_columns(of: Throttled, pairs: Sequence[ProducerAtBroker]) -> dict[str, pa.Array[Any]]:
    """The columns with the outcome of each producer at each broker in each lane."""
    t, outcomes = PRODUCER_THROTTLES, np.asarray(of.outcomes)
    own = [outcomes[:, pair.connections] for pair in pairs]
    had = [part["requests"] > 0 for part in own]
    last = [np.where(of_lane, part["last_us"], 0).max(axis=1) for part, of_lane in zip(own, had, strict=True)]
    first = [
        np.where(of_lane, part["first_us"], part["first_us"].max()).min(axis=1)
        for part, of_lane in zip(own, had, strict=True)
    ]
    sums = {column: np.concatenate([part[name].sum(axis=1) for part in own]) for column, name in SUMMED.items()}
    most = {name: np.concatenate([part[name].max(axis=1) for part in own]) for name in ("throttle_ms_max", "behind_us")}
    blocked = np.concatenate([of.blocked_us[:, pair.process] for pair in pairs])
    return {
        **{column: pa.array(values) for column, values in sums.items()},
        t.throttle_time_max_ms: pa.array(most["throttle_ms_max"]),
        t.sending_ms: pa.array((np.concatenate(last) - np.concatenate(first)) / US_PER_MS),
        t.behind_ms_max: pa.array(most["behind_us"] / US_PER_MS),
        t.blocked_ms: pa.array(blocked / US_PER_MS),
    }


def captured_columns(of: Throttled, pairs: Sequence[ProducerAtBroker]) -> dict[str, list[int | None]]:
    """The columns with what the capture shows of each producer at each broker."""
    t, throttle = PRODUCER_THROTTLES, np.maximum(of.captured.unit.requests["throttle_ms"], 0)
    columns: dict[str, list[int | None]] = {
        t.captured_throttled_requests: [int((throttle[pair.requests] > 0).sum()) for pair in pairs],
        t.captured_throttle_time_ms: [int(throttle[pair.requests].sum()) for pair in pairs],
        t.captured_throttle_time_max_ms: [int(throttle[pair.requests].max()) for pair in pairs],
        t.replayed_throttle_time_ms: [int(of.replayed_ms[pair.requests].sum()) for pair in pairs],
        t.shown_byte_rate: [shown_rate(of.shown[pair.requests]) for pair in pairs],
    }
    return columns


def shown_rate(shown: Ints) -> int | None:
    """The median of the quotas that throttle times show, bytes/s; None if they show none."""
    rates = shown[shown != NONE]
    return int(np.median(rates)) if len(rates) else None


def captured_sending_ms(of: Throttled, pair: ProducerAtBroker) -> float:
    """The time from a producer's first request at a broker until its last one was answered."""
    requests = of.captured.unit.requests
    first, last = requests["arrived_us"][pair.requests].min(), requests["recorded_us"][pair.requests].max()
    return float(last - first) / US_PER_MS


def throttle_fidelity(of: Throttled, pairs: Sequence[ProducerAtBroker]) -> Iterator[FidelityCounts]:
    """The fidelity counts of each producer at each broker."""
    for pair in pairs:
        client_id, address = of.captured.clients[pair.process]
        given = {WORDS[code]: count for code, count in counted(of.verdicts, pair.requests).items()}
        yield count_cases(METRIC, given, THROTTLES)._replace(
            broker=of.captured.brokers[pair.broker], client_id=client_id, client_address=address, reader=PRODUCER
        )
