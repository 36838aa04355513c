"""A replayed reader's outcome, as rows of the gold tables that the open and the closed loop have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS
from schemas.tables.reason import FidelityReasons
from schemas.tables.table import Table
from udfs.columns.arrays import Bools, Floats, Ints, Records
from udfs.columns.arrow_columns import arrow_array, repeated_text_column
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import US_PER_MS
from udfs.facts.arrow_tables import Values, make_rows
from udfs.replay.fetch_max_bytes.fairness import jain_index
from udfs.replay.fetch_max_bytes.settings import Reader
from udfs.replay.fetch_max_bytes.state import Sums
from udfs.replay.shared.fidelity_rows import count_cases, fidelity_rows
from udfs.replay.shared.histogram import quantile_within
from udfs.replay.shared.lanes import AS_CAPTURED

OPEN_LOOP, CLOSED_LOOP = "open", "closed"
"""Values of the column `mode`."""


class Labels(NamedTuple):
    """The run and the reader of some rows. partitions: broker, topic and partition of each, by number. user: the user
    that the reader is to quotas; None if no lane has a quota of users, or the user is not known.
    """

    run_id: str
    lanes: tuple[str, ...]
    reader: Reader
    partitions: list[tuple[str, str, str]]
    user: str | None = None

    @property
    def broker_names(self) -> list[str]:
        """The brokers from which the reader fetched."""
        return sorted({broker for broker, _, _ in self.partitions})

    @property
    def brokers(self) -> int:
        """How many brokers the reader fetched from."""
        return len(self.broker_names)

    @property
    def distinct_partitions(self) -> int:
        """How many different partitions the reader fetched; a partition fetched from several brokers counts once."""
        return len({(topic, partition) for _, topic, partition in self.partitions})

    def columns(self, table: Table, rows: int) -> dict[str, Values]:
        """The columns of a table that say the run and the reader of its rows."""
        texts = {
            "run_id": self.run_id,
            "client_id": self.reader.client_id,
            "client_address": self.reader.client_address,
            "reader": self.reader.kind,
        }
        return {getattr(table, name): repeated_text_column(text, rows) for name, text in texts.items()}


class ReaderOutcome(NamedTuple):
    """A reader's outcome in one mode.

    requests, memory_bound: int64[lanes]. All further fields are of the closed loop only. backlog: int64[partitions],
    bytes. catch_up_ms: float64[partitions, lanes], nan if the backlog is never read. given_up: int64[partitions], 1 if
    the reader gave up the backlog. finished: bool[lanes], everything was read. left_out: captured fetches that the
    closed loop leaves out. throttle_ms: int64[lanes], how long a quota holds the reader back. fetchers: int64[lanes],
    the number of a follower's fetchers, NONE in a lane that could not be followed.
    """

    mode: str
    sums: Sums
    requests: Ints
    memory_bound: Ints
    backlog: Ints | None = None
    catch_up_ms: Floats | None = None
    given_up: Ints | None = None
    finished: Bools | None = None
    left_out: int = 0
    throttle_ms: Ints | None = None
    fetchers: Ints | None = None


class LaneBounds(NamedTuple):
    """The bounds of a reader in each lane of closed loop.

    memory_bound: int64[lanes], KIP-74's bound, in bytes. fetchers: as in ReaderOutcome.
    """

    memory_bound: Ints
    fetchers: Ints | None = None


def memory_bounds(
    labels: Labels, limits_at: Callable[[str | None], Records], max_bytes: int, partition_max_bytes: int
) -> Ints:
    """KIP-74, int64[lanes]: N parallel fetches take at most min(N x max_bytes, partitions x partition max bytes).

    limits_at: FETCH_LIMITS[lanes] of a broker. max_bytes, partition_max_bytes: the largest that the reader asked for.
    """
    limits = limits_at(None)
    of_response = np.where(limits["max_bytes"] == AS_CAPTURED, max_bytes, limits["max_bytes"])
    of_partition = np.where(
        limits["partition_max_bytes"] == AS_CAPTURED, partition_max_bytes, limits["partition_max_bytes"]
    )
    of_all = np.zeros(len(limits), np.int64)
    for broker in labels.broker_names:
        of_all += np.minimum(of_response, limits_at(broker)["broker_max_bytes"])
    return np.minimum(of_all, labels.distinct_partitions * of_partition)


def verdict_rows(
    labels: Labels, verdicts: Iterable[tuple[str, str, str, int]], reasons: FidelityReasons
) -> pa.RecordBatch:
    """Rows of `fidelity`. verdicts: broker, metric, word, and how many verdicts there are with that word."""
    groups: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for broker, metric, word, count in verdicts:
        groups[broker, metric][word] = count
    client_id, client_address, kind = labels.reader
    columns = [
        count_cases(metric, words, reasons)._replace(
            broker=broker, client_id=client_id, client_address=client_address, reader=kind
        )
        for (broker, metric), words in groups.items()
    ]
    return fidelity_rows(columns, algorithms.FETCH_MAX_BYTES, labels.run_id)


def null_for_nan(values: Floats) -> pa.Array[Any]:
    """Numbers, null for nan. values: float64[rows]."""
    return arrow_array(values, ~np.isnan(values))


def shares_of_sum(values: Ints) -> Floats:
    """Each value's share of the sum over the first axis, 0 if the sum is 0: float64[values.shape].

    values: int64[n, ...].
    """
    total = values.sum(axis=0)
    return np.where(total > 0, values / np.maximum(total, 1), 0.0)


def fairness_rows(labels: Labels, outcome: ReaderOutcome) -> pa.RecordBatch:
    """Rows of `fetch_fairness`: one for each lane and partition."""
    lanes, partitions = len(labels.lanes), len(labels.partitions)
    n, sums, t = lanes * partitions, outcome.sums.partitions[:partitions], FETCH_FAIRNESS
    brokers, topics, numbers = zip(*labels.partitions, strict=True)

    def by_lane(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values.T.reshape(-1)

    def in_each_lane(values: Ints | None) -> pa.Array[Any]:
        return pa.nulls(n, pa.int64()) if values is None else arrow_array(np.tile(values, lanes))

    of_closed_loop: dict[str, Values] = {
        t.backlog_bytes: in_each_lane(outcome.backlog),
        t.catch_up_ms: (
            pa.nulls(n, pa.float64()) if outcome.catch_up_ms is None else null_for_nan(by_lane(outcome.catch_up_ms))
        ),
        t.is_given_up: in_each_lane(outcome.given_up).cast(pa.bool_()),
    }
    return make_rows(
        t,
        {
            **labels.columns(t, n),
            t.scenario: pa.array(np.repeat(np.array(labels.lanes, object), partitions), pa.string()),
            t.mode: repeated_text_column(outcome.mode, n),
            t.broker: pa.array(brokers * lanes, pa.string()),
            t.topic: pa.array(topics * lanes, pa.string()),
            t.partition: np.tile(np.array(list(map(int, numbers)), np.int32), lanes),
            t.requests: by_lane(sums["requests"]),
            t.bytes: by_lane(sums["returned"]),
            t.available_bytes: by_lane(sums["available"]),
            t.share_of_bytes: by_lane(shares_of_sum(sums["returned"])),
            t.share_of_available: by_lane(shares_of_sum(sums["available"])),
            t.empty_though_available: by_lane(sums["empty"]),
            t.longest_wait_requests: by_lane(sums["longest_requests"]),
            t.longest_wait_ms: by_lane(sums["longest_us"] / US_PER_MS),
            t.first_batch_overrides: by_lane(sums["overrides"]),
            t.cut_tail_bytes: by_lane(sums["cut_tail"]),
            t.unknown_requests: by_lane(sums["unknown"]),
            **of_closed_loop,
        },
    )


def fetch_consumer_rows(labels: Labels, outcome: ReaderOutcome) -> pa.RecordBatch:
    """Rows of `fetch_consumers`: one for each lane."""
    n, t = len(labels.lanes), FETCH_CONSUMERS
    sums, responses = outcome.sums.partitions[: len(labels.partitions)], outcome.sums.responses
    given_up = 0 if outcome.given_up is None else int(outcome.given_up.sum())
    return make_rows(
        t,
        {
            **labels.columns(t, n),
            t.scenario: pa.array(list(labels.lanes), pa.string()),
            t.mode: repeated_text_column(outcome.mode, n),
            t.requests: outcome.requests,
            t.partitions: np.full(n, labels.distinct_partitions),
            t.brokers: np.full(n, labels.brokers),
            t.fetchers: pa.nulls(n, pa.int64())
            if outcome.fetchers is None
            else arrow_array(outcome.fetchers, outcome.fetchers != NONE),
            t.bytes: sums["returned"].sum(axis=0),
            t.jain_index: pa.array([jain_index(served_shares(sums[:, lane])) for lane in range(n)], pa.float64()),
            **response_quantiles(outcome.sums),
            t.response_bytes_max: arrow_array(responses["largest"].copy(), responses["largest"] > 0),
            t.memory_bound_bytes: outcome.memory_bound,
            t.empty_though_available: sums["empty"].sum(axis=0),
            t.first_batch_overrides: responses["overrides"],
            t.cut_tail_bytes: sums["cut_tail"].sum(axis=0),
            t.unknown_requests: responses["unknown"],
            t.catch_up_ms: slowest_catch_ups(outcome, n),
            t.given_up: np.full(n, given_up),
            t.left_out: np.full(n, outcome.left_out),
            t.throttle_time_ms: arrow_array(outcome.throttle_ms)
            if outcome.throttle_ms is not None
            else pa.nulls(n, pa.int64()),
            t.user: pa.array([labels.user] * n, pa.string()),
            t.read_all: pa.nulls(n, pa.bool_()) if outcome.finished is None else pa.array(outcome.finished),
        },
    )


def served_shares(sums: Records) -> Floats:
    """returned / available of the partitions that had records. sums: PARTITION_SUMS[partitions]."""
    had = sums["available"] > 0
    return sums["returned"][had] / sums["available"][had]


def response_quantiles(sums: Sums) -> dict[str, pa.Array[Any]]:
    """The columns with quantiles of the sizes of responses."""
    t, largest = FETCH_CONSUMERS, sums.responses["largest"].tolist()
    return {
        name: pa.array(
            [quantile_within(sizes, share, most) for sizes, most in zip(sums.sizes, largest, strict=True)], pa.int64()
        )
        for name, share in ((t.response_bytes_p50, 0.5), (t.response_bytes_p95, 0.95), (t.response_bytes_p99, 0.99))
    }


def slowest_catch_ups(outcome: ReaderOutcome, lanes: int) -> pa.Array[Any]:
    """catch_up_ms of each lane: the time until every backlog that was not given up was read."""
    if outcome.catch_up_ms is None or outcome.given_up is None:
        return pa.nulls(lanes, pa.float64())
    return null_for_nan(outcome.catch_up_ms[outcome.given_up == 0].max(axis=0, initial=0))
