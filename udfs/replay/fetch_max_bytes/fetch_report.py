"""What a replayed reader comes to, as rows of the gold tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.fidelity_reasons import OPEN_FETCHES
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FIDELITY
from schemas.tables.reason import FidelityReasons
from schemas.tables.table import Table
from udfs.columns.arrow_columns import repeated
from udfs.facts.arrow_tables import rows_of
from udfs.replay.fetch_max_bytes.fairness import ReaderSums, Sums, jain_index
from udfs.replay.fetch_max_bytes.fetch_read import Lanes, Reads
from udfs.replay.fetch_max_bytes.fidelity import AGREED, CODES
from udfs.replay.shared.fidelity_rows import NO_REASON, Compared, compared, fidelity_rows
from udfs.replay.shared.histogram import quantile_within
from udfs.replay.shared.key_numbers import partition_of
from udfs.replay.shared.lanes import AS_CAPTURED

if TYPE_CHECKING:
    from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
    from udfs.replay.fetch_max_bytes.fetch_replay import Replayed

OPEN_LOOP, CLOSED_LOOP = "open", "closed"
REASONS: Mapping[int, str] = {AGREED: NO_REASON} | {code: reason for reason, code in CODES.items()}


@dataclass
class Reader:
    """A consumer or follower, with the largest limits it asked for; two are the same by name, address and kind."""

    client_id: str
    client_address: str
    kind: str
    requests: int = field(default=0, compare=False)
    max_bytes: int = field(default=0, compare=False)
    partition_max_bytes: int = field(default=0, compare=False)

    def note(self, reads: Reads, lanes: Lanes) -> None:
        """Take the limits of some fetches into account."""
        self.max_bytes = max(self.max_bytes, int(reads.max_bytes.max(initial=0)))
        self.partition_max_bytes = max(self.partition_max_bytes, int(reads.partition_max_bytes.max(initial=0)))


@dataclass(frozen=True)
class Totals:
    """What a reader's sums come to in one mode. requests: int64[lanes]. backlog: int64[partitions] bytes, and catch_up:
    float64[partitions, lanes] in ms with nan for never, and finished: int64[lanes], 1 where all was read, and given_up:
    int64[partitions], 1 where the reader gave a backlog up; none of them in open loop. left_out: captured fetches that
    the closed loop does not go on to.
    """

    mode: str
    sums: ReaderSums
    requests: npt.NDArray[np.int64]
    backlog: npt.NDArray[np.int64] | None = None
    catch_up: npt.NDArray[np.float64] | None = None
    finished: npt.NDArray[np.int64] | None = None
    given_up: npt.NDArray[np.int64] | None = None
    left_out: int = 0

    def catch_ups(self, rows: int) -> pa.Array[Any]:
        """catch_up_ms of each lane and partition."""
        return pa.nulls(rows, pa.float64()) if self.catch_up is None else nullable(self.catch_up.T.reshape(-1))

    def slowest(self, lanes: int) -> pa.Array[Any]:
        """catch_up_ms of each lane: until the backlog of every partition was read that was not given up."""
        if self.catch_up is None or self.given_up is None:
            return pa.nulls(lanes, pa.float64())
        return nullable(self.catch_up[self.given_up == 0].max(axis=0, initial=0))


def in_every_lane(values: npt.NDArray[np.int64] | None, lanes: int, partitions: int) -> pa.Array[Any]:
    """What partitions have in whatever lane, in the order of rows; null where that is nothing."""
    return pa.nulls(lanes * partitions, pa.int64()) if values is None else pa.array(np.tile(values, lanes))


def nullable(values: npt.NDArray[np.float64]) -> pa.Array[Any]:
    """Numbers, null for nan."""
    return pa.array(values, pa.float64(), mask=np.isnan(values))


def reader_rows(done: Replayed, lanes: FetchLanes, run_id: str) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of a reader all of whose fetches were replayed."""
    yield FIDELITY, fidelity_rows(fetch_fidelity(done), algorithms.FETCH_MAX_BYTES, run_id)
    if done.index:
        totals = Totals(OPEN_LOOP, done.sums, np.full(len(lanes.names), done.reader.requests))
        yield FETCH_FAIRNESS, fairness_rows(done, totals, lanes, run_id)
        yield FETCH_CONSUMERS, consumer_rows(done, totals, lanes, run_id)


def fetch_fidelity(done: Replayed) -> list[Compared]:
    """What was compared of each broker, fetches with records and empty ones apart."""
    groups: dict[tuple[str, bool], dict[str, int]] = defaultdict(dict)
    for (broker, has_records, code), count in sorted(done.verdicts.items()):
        groups[broker, has_records][REASONS[code]] = count
    return [
        of_reader(
            done.reader, broker, "fetches_with_records" if has_records else "empty_fetches", verdicts, OPEN_FETCHES
        )
        for (broker, has_records), verdicts in groups.items()
    ]


def of_reader(
    reader: Reader, broker: str, metric: str, verdicts: Mapping[str, int], reasons: FidelityReasons
) -> Compared:
    """What was compared of a reader and broker."""
    found = compared(metric, verdicts, reasons)
    return found._replace(
        broker=broker, client_id=reader.client_id, client_address=reader.client_address, reader=reader.kind
    )


def shares(values: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Each value's part of the sum over the first axis; 0 where the sum is."""
    total = values.sum(axis=0)
    return np.where(total > 0, values / np.maximum(total, 1), 0.0)


def fairness_rows(done: Replayed, totals: Totals, lanes: FetchLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `fetch_fairness`: one a lane and partition."""
    n, m = len(lanes.names), len(done.index)
    sums = Sums(*(column[:m] for column in totals.sums.partitions))
    parts = [partition_of(key) for key in done.index]

    def by_lane(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        return values.T.reshape(-1)

    def in_each_lane(column: list[str]) -> pa.Array[Any]:
        return pa.array(column * n, pa.string())

    t = FETCH_FAIRNESS
    return rows_of(
        t,
        {
            t.run_id: repeated(run_id, n * m),
            t.scenario: pa.array(np.repeat(np.array(lanes.names, object), m), pa.string()),
            t.mode: repeated(totals.mode, n * m),
            t.client_id: repeated(done.reader.client_id, n * m),
            t.client_address: repeated(done.reader.client_address, n * m),
            t.reader: repeated(done.reader.kind, n * m),
            t.broker: in_each_lane([broker for broker, _, _ in parts]),
            t.topic: in_each_lane([topic for _, topic, _ in parts]),
            t.partition: np.tile(np.array([int(number) for _, _, number in parts], np.int32), n),
            t.requests: by_lane(sums.requests),
            t.bytes: by_lane(sums.returned),
            t.available_bytes: by_lane(sums.available),
            t.share_of_bytes: by_lane(shares(sums.returned)),
            t.share_of_available: by_lane(shares(sums.available)),
            t.empty_though_available: by_lane(sums.empty),
            t.longest_wait_requests: by_lane(sums.longest_requests),
            t.longest_wait_ms: by_lane(sums.longest_us / 1000),
            t.first_batch_overrides: by_lane(sums.overrides),
            t.cut_tail_bytes: by_lane(sums.cut_tail),
            t.unknown_requests: by_lane(sums.unknown),
            t.backlog_bytes: in_every_lane(totals.backlog, n, m),
            t.catch_up_ms: totals.catch_ups(n * m),
            t.is_given_up: in_every_lane(totals.given_up, n, m).cast(pa.bool_()),
        },
    )


def memory_bounds(done: Replayed, lanes: Lanes) -> npt.NDArray[np.int64]:
    """KIP-74, int64[lanes]: N parallel fetches take at most min(N x max_bytes, partitions x partition max bytes)."""
    reader = done.reader
    max_bytes = np.where(lanes.max_bytes == AS_CAPTURED, reader.max_bytes, lanes.max_bytes)
    most = np.where(lanes.partition_max_bytes == AS_CAPTURED, reader.partition_max_bytes, lanes.partition_max_bytes)
    return np.minimum(brokers_of(done) * np.minimum(max_bytes, lanes.broker_max_bytes), partitions_of(done) * most)


def brokers_of(done: Replayed) -> int:
    """How many brokers the reader fetched from."""
    return len({partition_of(key)[0] for key in done.index})


def partitions_of(done: Replayed) -> int:
    """How many partitions the reader fetched, each once, of however many brokers it did."""
    return len({partition_of(key)[1:] for key in done.index})


def served_shares(sums: Sums, lane: int) -> npt.NDArray[np.float64]:
    """bytes / available_bytes of the partitions that had any."""
    had = sums.available[:, lane] > 0
    return sums.returned[:, lane][had] / sums.available[:, lane][had]


def consumer_rows(done: Replayed, totals: Totals, lanes: FetchLanes, run_id: str) -> pa.RecordBatch:
    """Rows of `fetch_consumers`: one a lane."""
    n, m, sums, responses = len(lanes.names), len(done.index), totals.sums.partitions, totals.sums.responses
    t = FETCH_CONSUMERS
    quantiles: dict[str, pa.Array[Any]] = {
        name: pa.array(
            [quantile_within(responses.sizes[lane], share, int(responses.largest[lane])) for lane in range(n)],
            pa.int64(),
        )
        for name, share in ((t.response_bytes_p50, 0.5), (t.response_bytes_p95, 0.95), (t.response_bytes_p99, 0.99))
    }
    return rows_of(
        t,
        {
            t.run_id: repeated(run_id, n),
            t.scenario: pa.array(list(lanes.names), pa.string()),
            t.mode: repeated(totals.mode, n),
            t.client_id: repeated(done.reader.client_id, n),
            t.client_address: repeated(done.reader.client_address, n),
            t.reader: repeated(done.reader.kind, n),
            t.requests: totals.requests,
            t.partitions: np.full(n, partitions_of(done)),
            t.brokers: np.full(n, brokers_of(done)),
            t.bytes: sums.returned[:m].sum(axis=0),
            t.jain_index: pa.array([jain_index(served_shares(sums, lane)) for lane in range(n)], pa.float64()),
            t.response_bytes_max: pa.array(responses.largest, mask=responses.largest == 0),
            t.memory_bound_bytes: memory_bounds(done, lanes.of(done.reader.kind)),
            t.empty_though_available: sums.empty[:m].sum(axis=0),
            t.first_batch_overrides: responses.overrides,
            t.cut_tail_bytes: sums.cut_tail[:m].sum(axis=0),
            t.unknown_requests: responses.unknown,
            t.catch_up_ms: totals.slowest(n),
            t.given_up: np.full(n, 0 if totals.given_up is None else int(totals.given_up.sum())),
            t.left_out: np.full(n, totals.left_out),
            t.read_all: pa.nulls(n, pa.bool_()) if totals.finished is None else totals.finished == 1,
            **quantiles,
        },
    )
