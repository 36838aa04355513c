"""A consumer process in every lane: lanes that share their fetch limits share what is exchanged, and are one replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from schemas.tables.steps import MEMORY_EVENTS
from udfs.columns.arrays import Floats, Ints
from udfs.replay.consumer_memory.channels import replay_unit
from udfs.replay.consumer_memory.draining import GIVEN_UP, RESPONSE, Exchanges
from udfs.replay.consumer_memory.producer.captured_times import Buffered
from udfs.replay.consumer_memory.responses import ClosedLoop, closed_exchanges
from udfs.replay.consumer_memory.state import Bounds, Sim, Trace
from udfs.replay.consumer_memory.traces import Gathered, answered, trace_of_responses
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.lanes import AS_CAPTURED, CAPTURED


@dataclass
class Consumed:
    """A process's rows so far: as captured, and of the closed loop.

    traces: what is exchanged in closed loop by number of the fetch limits, as far as that was asked for.
    """

    captured: Gathered = field(default_factory=Gathered)
    closed: ClosedLoop = field(default_factory=ClosedLoop)
    traces: dict[int, Trace] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take some rows of MEMORY_EVENTS, which follow those before in time."""
        self.captured.add(batch)
        kind = int_column(batch, MEMORY_EVENTS.kind, 0)
        responses = batch.filter(pa.array((kind == RESPONSE) | (kind == GIVEN_UP)))
        if responses.num_rows:
            self.closed.add(responses)

    @cached_property
    def answered(self) -> Exchanges:
        """The exchanges of the capture that were answered, once all rows have come."""
        return answered(self.captured)

    @cached_property
    def captured_trace(self) -> Trace:
        """The same as the replay takes it."""
        return trace_of_responses(self.answered)

    def trace(self, number: int, limits: FetchLanes) -> Trace:
        """What is exchanged under the fetch limits of this number: under the captured ones what the capture shows."""
        return self.captured_trace if number == CAPTURED else self.closed_trace(number, limits)

    def closed_trace(self, number: int, limits: FetchLanes) -> Trace:
        """What the closed loop exchanges under the fetch limits of this number."""
        if number not in self.traces:
            most = self.max_bytes(number, limits)
            self.traces[number] = trace_of_responses(
                closed_exchanges(self.captured, self.answered, self.closed, number, most)
            )
        return self.traces[number]

    def max_bytes(self, number: int, limits: FetchLanes) -> int:
        """The largest fetch.max.bytes asked for."""
        return chosen(limits.consumer.max_bytes, number, self.captured.max_bytes)

    def bound(self, number: int, limits: FetchLanes) -> int:
        """KIP-74's bound: min(brokers x fetch.max.bytes, partitions x max.partition.fetch.bytes)."""
        captured = self.captured
        most = self.max_bytes(number, limits)
        if number != CAPTURED:
            most = min(most, int(limits.consumer.broker_max_bytes[number]))
        of_partition = chosen(
            limits.consumer.partition_max_bytes, number, captured.numbers["partition_max_bytes"]
        )  # fmt: skip
        return min(len(captured.brokers) * most, len(captured.partition_index) * of_partition)


def chosen(values: Ints, number: int, captured: int) -> int:
    """A lane's value, or the captured one where it leaves that."""
    return captured if values[number] == AS_CAPTURED else int(values[number])


@dataclass(frozen=True)
class LanesReplayed:
    """Lanes with the same fetch limits, and their replay.

    names: by lane. speed: float64[lanes], throughput as a share of the captured lane's, nan where that is 0.
    record_bytes: in the responses.
    """

    number: int
    names: tuple[str, ...]
    sim: Sim
    speed: Floats
    bound: int
    record_bytes: int
    left_out: int


def span_us(sim: Sim | Buffered) -> Ints:
    """How long each lane took."""
    return sim.runs["end"] - sim.usages["start"]


def speeds(sim: Sim, what: str) -> Floats:
    """Bytes or records per us, by lane."""
    return sim.runs[what] / np.maximum(span_us(sim), 1)


def replays_of(
    consumed: Consumed, names: tuple[str, ...], bounds: Bounds, numbers: Ints, limits: FetchLanes
) -> Iterator[LanesReplayed]:
    """Replay a process in every lane. numbers: int64[lanes], the fetch limits of each.

    Throughput under other limits is in records, for cut batches come twice, and is held against the closed loop under
    the captured limits without a bound, for it has its own pace.
    """
    base = unhindered(consumed, bounds, limits) if (numbers != CAPTURED).any() else 0.0
    for number in np.unique(numbers).tolist():
        lanes = np.flatnonzero(numbers == number)
        sim = replay_unit(consumed.trace(number, limits), Bounds(*(column[lanes] for column in bounds)))
        if number == CAPTURED:
            speed = ratio(speeds(sim, "bytes"), speeds(sim, "bytes")[0])
            record_bytes, left_out = consumed.captured.numbers["record_bytes"], 0
        else:
            speed = ratio(speeds(sim, "records"), base)
            record_bytes = int(consumed.closed.responses(number).returned.sum())
            left_out = consumed.closed.left_out[number]
        yield LanesReplayed(
            number, tuple(names[lane] for lane in lanes.tolist()), sim, speed, consumed.bound(number, limits),
            record_bytes, consumed.captured.left_out + left_out,
        )  # fmt: skip


def unhindered(consumed: Consumed, bounds: Bounds, limits: FetchLanes) -> float:
    """Records per us of the closed loop under the captured limits and the captured lane's bound."""
    return float(speeds(replay_unit(consumed.closed_trace(CAPTURED, limits), first_lane(bounds)), "records")[0])


def first_lane(bounds: Bounds) -> Bounds:
    """The captured lane alone."""
    return Bounds(*(column[:1] for column in bounds))


def ratio(values: Floats, base: float) -> Floats:
    """The values in terms of the base, nan where that is 0."""
    return values / base if base > 0 else np.full(len(values), np.nan)
