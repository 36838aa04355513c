"""The outcome of producers under quotas, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY, PRODUCER_THROTTLE_RANGES, PRODUCER_THROTTLES
from schemas.tables.quota_reasons import THROTTLES
from schemas.tables.table import Table
from schemas.tables.values import PRODUCER
from udfs.columns.arrays import Floats, Ints, Records
from udfs.columns.arrow_columns import dictionary_column, repeated_text_column
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER, US_PER_MS
from udfs.facts.arrow_tables import make_rows
from udfs.replay.fetch_max_bytes.producer_quota.drawn_pace import QuotaReplications
from udfs.replay.fetch_max_bytes.producer_quota.events import CapturedProducers
from udfs.replay.fetch_max_bytes.producer_quota.fidelity import counted
from udfs.replay.fetch_max_bytes.producer_quota.settings import ProducerLanes
from udfs.replay.shared.fidelity_rows import AGREED, NO_REASON, FidelityCounts, count_cases, fidelity_rows
from udfs.replay.shared.range_rows import range_columns
from udfs.replay.shared.replications import quantiles

WORDS = {AGREED: NO_REASON} | {code: word for word, code in THROTTLES.codes.items()}
(METRIC,) = THROTTLES.metrics
SUMMED = {
    "requests": "requests", "bytes": "bytes", "throttled_requests": "throttled", "throttle_time_ms": "throttle_ms",
    "expired_requests": "expired",
}  # fmt: skip
"""For each column the field of THROTTLING that is summed over connections."""
_T = PRODUCER_THROTTLES
RANGED = tuple(map(str, (
    _T.throttled_requests, _T.throttle_time_ms, _T.throttle_time_max_ms, _T.sending_ms, _T.behind_ms_max, _T.blocked_ms,
    _T.expired_requests,
)))  # fmt: skip
"""The columns of `producer_throttles` that have a range."""


@dataclass(frozen=True)
class Throttled:
    """The outcome of producers that share quotas.

    outcomes: THROTTLING[lanes, connections]. blocked_us: int64[lanes, processes]. ranges: the same at drawn paces.
    replayed_ms, shown, verdicts: int64[n], as written by `judge_throttles`, in the order of the unit's requests.
    """

    captured: CapturedProducers
    outcomes: Records
    blocked_us: Ints
    ranges: QuotaReplications
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
    yield PRODUCER_THROTTLE_RANGES, range_rows(of, pairs, lanes, run_id)
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
    clients = [of.captured.clients[pair.process] for pair in pairs]

    def per_pair(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
        return pa.array([value for value in values for _ in range(n)], kind)

    return make_rows(
        t,
        {
            **key_columns(of, pairs, lanes, run_id),
            t.user: per_pair([lanes.users.get(client) for client in clients], pa.string()),
            t.byte_rate: pa.array(
                [quota and quota.rate for client in clients for quota in lanes.quotas_of(client)], pa.int64()
            ),
            **{c: pa.array(values.ravel()) for c, values in figures_of(of.outcomes, of.blocked_us, pairs).items()},
            **{c: per_pair(values, pa.int64()) for c, values in captured_columns(of, pairs).items()},
            t.captured_sending_ms: per_pair([captured_sending_ms(of, pair) for pair in pairs], pa.float64()),
        },
    )


def key_columns(
    of: Throttled, pairs: Sequence[ProducerAtBroker], lanes: ProducerLanes, run_id: str, times: int = 1
) -> dict[str, pa.Array[Any]]:
    """The columns of the run and of each producer, broker and lane, in this order; all of them `times` times."""
    t, n = PRODUCER_THROTTLES, len(lanes.names)  # its table of ranges has these columns, too
    pair = np.tile(np.repeat(np.arange(len(pairs)), n), times)
    clients = [of.captured.clients[pair.process] for pair in pairs]
    names = {
        t.client_id: [client_id for client_id, _ in clients],
        t.client_address: [address for _, address in clients],
        t.broker: [of.captured.brokers[pair.broker] for pair in pairs],
    }
    return {
        t.run_id: repeated_text_column(run_id, len(pair)),
        t.scenario: dictionary_column(pa.array(lanes.names, pa.string()), np.tile(np.arange(n), len(pairs) * times)),
        **{column: dictionary_column(pa.array(values, pa.string()), pair) for column, values in names.items()},
    }


def range_rows(of: Throttled, pairs: Sequence[ProducerAtBroker], lanes: ProducerLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `producer_throttle_ranges`: one for each figure, producer, broker and lane."""
    t, rows = PRODUCER_THROTTLE_RANGES, len(pairs) * len(lanes.names)
    values = figures_of(of.outcomes, of.blocked_us, pairs)
    again = figures_of(of.ranges.outcomes, of.ranges.blocked_us, pairs)
    counts = np.tile(of.ranges.counts, len(pairs) * len(RANGED))
    drawn = [np.moveaxis(again[name], 1, 0).reshape(-1, rows) for name in RANGED]
    return make_rows(
        t,
        {
            **key_columns(of, pairs, lanes, run_id, len(RANGED)),
            t.metric: dictionary_column(pa.array(RANGED, pa.string()), np.repeat(np.arange(len(RANGED)), rows)),
            **range_columns(
                np.concatenate([values[name].ravel() for name in RANGED]).astype(np.float64),
                quantiles(np.concatenate(drawn, axis=1), counts),
                counts,
            ),
        },
    )


def figures_of(outcomes: Records, blocked_us: Ints, pairs: Sequence[ProducerAtBroker]) -> dict[str, Ints | Floats]:
    """The results of each producer at each broker, by column: [pairs, ...].

    outcomes: THROTTLING[..., connections]. blocked_us: int64[..., processes].
    """
    t, own = PRODUCER_THROTTLES, [np.asarray(outcomes)[..., pair.connections] for pair in pairs]
    sums = {column: np.stack([part[name].sum(axis=-1) for part in own]) for column, name in SUMMED.items()}
    return {
        **sums,
        str(t.throttle_time_max_ms): np.stack([part["throttle_ms_max"].max(axis=-1) for part in own]),
        str(t.sending_ms): np.stack([sending_us(part) for part in own]) / US_PER_MS,
        str(t.behind_ms_max): np.stack([part["behind_us"].max(axis=-1) for part in own]) / US_PER_MS,
        str(t.blocked_ms): np.stack([blocked_us[..., pair.process] for pair in pairs]) / US_PER_MS,
    }


def sending_us(outcomes: Records) -> Ints:
    """The time from the first request until the last one is answered: int64[...], us. outcomes: THROTTLING[...,
    connections], of one producer at one broker.
    """
    had = outcomes["requests"] > 0
    first = np.where(had, outcomes["first_us"], NEVER).min(axis=-1)
    time: Ints = np.where(had, outcomes["last_us"], ALWAYS).max(axis=-1) - first
    return time


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
