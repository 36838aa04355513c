"""Consumers: their exchanges as captured and, under other fetch limits, in closed loop; replayed in every lane.

Lanes with the same fetch limits have the same exchanges, and are replayed together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.memory_reasons import DRAINED
from schemas.tables.steps_memory import MEMORY_EVENTS
from udfs.columns.arrays import Bools, Floats, Ints, Records
from udfs.columns.records import GrowingRecords
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.channels import replay_units
from udfs.replay.consumer_memory.draining import ClientFetches, follow_fetch_events, no_fetches, with_units
from udfs.replay.consumer_memory.events import (
    LEFT_OUT,
    PARTITION_COLUMNS,
    TAKEOVER,
    KeptExchanges,
    partition_events_of,
    takeovers_of,
)
from udfs.replay.consumer_memory.given_up import drop_given_up, partitions_not_taken, when_dropped
from udfs.replay.consumer_memory.responses import ClosedLoop, hold_given_up, in_closed_loop
from udfs.replay.consumer_memory.settings import MemoryLanes
from udfs.replay.consumer_memory.state import Traces, UnitOutcomes
from udfs.replay.consumer_memory.takeovers import drop_lost, partitions_taken_over, when_lost
from udfs.replay.consumer_memory.traces import traces_of_responses
from udfs.replay.consumer_memory.units import Counted, resize_to_units
from udfs.replay.shared.caps import MOST_EXCHANGES
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.lanes import AS_CAPTURED, CAPTURED
from udfs.replay.shared.window import WHOLE, Window


@dataclass
class ConsumerEvents:
    """What the rows of several client processes have shown so far.

    takeovers: TAKEOVER[n], at most MOST_EXCHANGES of each process. is_told_apart: bool[units], whether it is known that
    each is one process.
    """

    window: Window = WHOLE
    exchanges: KeptExchanges = field(default_factory=KeptExchanges)
    fetches: ClientFetches = field(default_factory=no_fetches)
    takeovers: GrowingRecords = field(default_factory=lambda: GrowingRecords(TAKEOVER))
    closed: ClosedLoop = field(default_factory=ClosedLoop)
    is_told_apart: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    _takeovers_counted: Counted = field(default_factory=Counted)

    def add(self, rows: pa.RecordBatch, unit: Ints) -> None:
        """Take rows of MEMORY_EVENTS, in their order. unit: int64[rows]."""
        exchange, kind = self.exchanges.add(rows, unit), int_column(rows, MEMORY_EVENTS.kind, 0)
        units = int(unit[-1]) + 1
        self.fetches = with_units(self.fetches, units)
        self.is_told_apart = resize_to_units(self.is_told_apart, units, True)
        np.logical_and.at(self.is_told_apart, unit, int_column(rows, MEMORY_EVENTS.is_told_apart, 1) == 1)
        is_partition = np.isin(kind, (MemoryEvent.PARTITION, MemoryEvent.BATCH, MemoryEvent.TAKEN_OVER))
        is_partition &= exchange != LEFT_OUT
        if is_partition.any():
            kept = rows.select([*PARTITION_COLUMNS]).filter(pa.array(is_partition))
            self._follow(kept, unit[is_partition], exchange[is_partition])
        is_closed = np.isin(kind, (MemoryEvent.RESPONSES, MemoryEvent.GIVEN_UP, MemoryEvent.IN_LOOP))
        if is_closed.any():
            self.closed.add(rows.filter(pa.array(is_closed)), unit[is_closed])

    def _follow(self, rows: pa.RecordBatch, unit: Ints, exchange: Ints) -> None:
        """Take rows of kinds PARTITION, BATCH and TAKEN_OVER."""
        events = partition_events_of(rows, unit, exchange, self.window)
        exchanges = self.exchanges.gathered.records
        is_takeover = events["kind"] == MemoryEvent.TAKEN_OVER
        if is_takeover.any():
            takeovers = takeovers_of(rows.filter(pa.array(is_takeover)), unit[is_takeover])
            takeovers["lost_at"] = events["lost_at"][is_takeover] = when_lost(takeovers, exchanges)
            place = self._takeovers_counted.places(takeovers["unit"], np.ones(len(takeovers), np.bool_))
            self.takeovers.add(takeovers[place < MOST_EXCHANGES])
        self.fetches = follow_fetch_events(events, exchanges, self.fetches)

    def consumers(self, limits: Records) -> Consumers:
        """The exchanges of the processes, once all of their rows have come. limits: FETCH_LIMITS[limits]."""
        exchanges, partitions = self.exchanges.gathered.records, self.fetches.known_partitions
        fetched, verdicts, unit = self.fetches.fetched, self.fetches.verdicts, exchanges["unit"]
        holder, lost = partitions_not_taken(partitions)["holder"], partitions_taken_over(partitions)["holder"]
        dropped_at = when_dropped(exchanges, holder)
        for word, holders in {
            DRAINED.given_up: holder[dropped_at != NEVER],
            DRAINED.not_fetched_again: holder[dropped_at == NEVER],
            DRAINED.taken_over: lost,
        }.items():
            counted = holders[self.window.has(exchanges["requested_at"][holders])]
            np.add.at(verdicts[:, DRAINED.codes[word]], unit[counted], 1)
        drop_lost(exchanges, partitions)
        drop_given_up(exchanges, holder, dropped_at)
        return Consumers(
            exchanges=exchanges,
            fetched=fetched,
            verdicts=verdicts,
            left_out=self.exchanges.left_out(len(fetched)),
            takeovers=self.takeovers.records,
            is_told_apart=self.is_told_apart,
            closed=self.closed,
            limits=limits,
            window=self.window,
        )


@dataclass(frozen=True)
class Consumers:
    """The exchanges of several client processes, as captured and under every fetch limit of a scenario.

    exchanges: EXCHANGE[n], each unit's in the order of their requests, with the memory that they hold and until when.
    fetched: FETCHED[units]. verdicts: int64[units, VERDICTS], on partitions. left_out: int64[units], exchanges for
    which there was no room. takeovers: TAKEOVER[n]. is_told_apart: bool[units], whether it is known that each is one
    process. limits: FETCH_LIMITS[limits], those in force first.
    """

    exchanges: Records
    fetched: Records
    verdicts: Ints
    left_out: Ints
    takeovers: Records
    is_told_apart: Bools
    closed: ClosedLoop
    limits: Records
    window: Window = WHOLE

    @cached_property
    def numbers(self) -> Ints:
        """The units that are consumers: int64[n]. A unit that fetched nothing in the window, or fetched as a follower,
        is not one.
        """
        is_answered = self.exchanges["complete_at"] != NEVER
        answered = np.bincount(self.exchanges["unit"][is_answered], minlength=self.units)
        return np.flatnonzero((self.fetched["brokers"] > 0) & (answered > 0))

    @cached_property
    def answered(self) -> Records:
        """The exchanges of consumers that were answered: EXCHANGE[n]."""
        is_consumer = np.isin(self.exchanges["unit"], self.numbers)
        is_kept = is_consumer & (self.exchanges["complete_at"] != NEVER)
        return self.exchanges if is_kept.all() else self.exchanges[is_kept]

    @property
    def units(self) -> int:
        """How many processes there are, including those that are not consumers."""
        return len(self.fetched)

    @cached_property
    def captured_traces(self) -> Traces:
        """The traces of the captured exchanges."""
        return traces_of_responses(self.answered, self.units)

    def closed_traces(self, fetch_number: int) -> Traces:
        """The traces of the closed loop's exchanges under the fetch limits of this number."""
        responses, given_up = self.responses_under(fetch_number), self.closed.given_up_under(fetch_number)
        hold_given_up(responses, given_up, self.takeovers, self.exchanges)
        exchanges = in_closed_loop(
            self.answered, responses, self.closed.looped.records, self.max_bytes(fetch_number), self.window.begin,
            self.traffic_speed(fetch_number),
        )  # fmt: skip
        return traces_of_responses(exchanges, self.units)

    @cached_property
    def unchanged_traces(self) -> Traces:
        """The traces of the closed loop's exchanges under the fetch limits in force."""
        return self.closed_traces(CAPTURED)

    def traces(self, fetch_number: int) -> Traces:
        """The traces that lanes with the fetch limits of this number replay: the captured ones for those in force."""
        return self.captured_traces if fetch_number == CAPTURED else self.closed_traces(fetch_number)

    def responses_under(self, fetch_number: int) -> Records:
        """CLOSED_RESPONSE[n]: the closed loop's responses of consumers under the fetch limits of this number."""
        responses = self.closed.responses_under(fetch_number)
        return responses[np.isin(responses["unit"], self.numbers)]

    def traffic_speed(self, fetch_number: int) -> float:
        """The factor by which records are produced faster than captured."""
        return float(self.limits["speed"][fetch_number])

    def is_compared(self, fetch_number: int) -> Bools:
        """Whether the closed loop replays each unit as one consumer, so that its throughput can be compared with that
        at the captured settings: bool[units].
        """
        replayed = np.bincount(self.responses_under(fetch_number)["unit"], minlength=self.units) > 0
        return replayed & (self.limits["consumers"][fetch_number] == 1)

    def partitions(self, fetch_number: int) -> Ints:
        """How many partitions each unit fetches, or the consumer that has most of them, if several share those of the
        unit: int64[units].
        """
        return -(-self.fetched["partitions"] // self.limits["consumers"][fetch_number])

    def max_bytes(self, fetch_number: int) -> Ints:
        """The largest fetch.max.bytes that each unit asks for: int64[units]."""
        captured = np.zeros(self.units, np.int64)
        np.maximum.at(captured, self.exchanges["unit"], self.exchanges["max_bytes"])
        return limits_by_unit(self.limits["max_bytes"][fetch_number], captured)

    def memory_bound(self, fetch_number: int) -> Ints:
        """KIP-74's bound, min(brokers x fetch.max.bytes, partitions x max.partition.fetch.bytes): int64[units]."""
        fetched, limits = self.fetched, self.limits[fetch_number]
        max_bytes = self.max_bytes(fetch_number)
        if fetch_number != CAPTURED:
            max_bytes = np.minimum(max_bytes, limits["broker_max_bytes"])
        partition_max_bytes = limits_by_unit(limits["partition_max_bytes"], fetched["partition_max_bytes"])
        return np.minimum(fetched["brokers"] * max_bytes, self.partitions(fetch_number) * partition_max_bytes)

    def record_bytes(self, fetch_number: int) -> Ints:
        """The bytes of records in the responses of each unit: int64[units]."""
        if fetch_number == CAPTURED:
            return self.fetched["record_bytes"]
        responses, record_bytes = self.responses_under(fetch_number), np.zeros(self.units, np.int64)
        responses = responses[self.window.has(responses["requested_at"])]
        np.add.at(record_bytes, responses["unit"], responses["record_bytes"])
        return record_bytes

    def all_left_out(self, fetch_number: int) -> Ints:
        """Exchanges and responses of each unit for which there was no room: int64[units]."""
        if fetch_number == CAPTURED:
            return self.left_out
        closed = [self.closed.left_out[unit, fetch_number] for unit in range(self.units)]
        return self.left_out + np.array(closed, np.int64)


def limits_by_unit(limit: int, captured: Ints) -> Ints:
    """A limit for each unit, int64[units]: the captured value if lanes leave it unchanged, otherwise `limit`."""
    return captured if limit == AS_CAPTURED else np.full(len(captured), limit)


@dataclass(frozen=True)
class LanesReplayed:
    """Lanes with the same fetch limits, replayed for several units.

    lanes: int64[n], their numbers. traces: the traces that they replayed. speed: float64[units, n], throughput as a
    share of the captured lane's, nan if that is 0. clock: the factor by which the capture's clock, to which `replayed`
    keeps, is faster than the clients' clock.
    """

    fetch_number: int
    lanes: Ints
    traces: Traces
    replayed: UnitOutcomes
    speed: Floats
    clock: float


def span_us(outcomes: Records) -> Ints:
    """How long each lane took (us): int64, in the shape of the outcomes."""
    return outcomes["ended_at"] - outcomes["began_at"]


def depleted_shares(outcomes: Records) -> Floats:
    """The share of the time during which the pool had refused memory: float64, in the shape of the outcomes."""
    return outcomes["depleted_us"] / np.maximum(span_us(outcomes), 1)


def speed_of(outcomes: Records, amount: str) -> Floats:
    """Throughput per us: float64, in the shape of the outcomes. amount: the field to count, `bytes` or `records`."""
    return outcomes[amount] / np.maximum(span_us(outcomes), 1)


def relative_speeds(speed: Floats, base: Floats) -> Floats:
    """The speeds as shares of each unit's base speed, nan if that is 0: float64[units, lanes].

    speed: float64[units, lanes]. base: float64[units].
    """
    return np.divide(speed, base[:, None], out=np.full(speed.shape, np.nan), where=base[:, None] > 0)


def replay_pools(consumers: Consumers, lanes: MemoryLanes, settings: Records) -> Iterator[LanesReplayed]:
    """Replay consumers in every lane. settings: POOL_SETTINGS[units, lanes].

    Under other fetch limits or with other traffic, throughput is counted in records, because a batch that was cut off
    comes twice. It is relative to the captured lane of the closed loop, because the closed loop has a pace of its own.
    """
    numbers = lanes.fetch_number
    base = closed_speed(consumers, settings) if (numbers != CAPTURED).any() else np.zeros(consumers.units)
    for fetch_number in np.unique(numbers).tolist():
        alike, traces = np.flatnonzero(numbers == fetch_number), consumers.traces(fetch_number)
        replayed = replay_units(traces, settings[:, alike], consumers.window)
        clock = consumers.traffic_speed(fetch_number)
        if fetch_number == CAPTURED:
            speed = speed_of(replayed.outcomes, "bytes")
            speed = relative_speeds(speed, speed[:, 0])
        else:
            speed = relative_speeds(clock * speed_of(replayed.outcomes, "records"), base)
            speed[~consumers.is_compared(fetch_number)] = np.nan
        yield LanesReplayed(fetch_number, alike, traces, replayed, speed, clock)


def closed_speed(consumers: Consumers, settings: Records) -> Floats:
    """Records per us of each unit's closed loop in the captured lane: float64[units]. settings: POOL_SETTINGS[units,
    lanes].
    """
    replayed = replay_units(consumers.unchanged_traces, settings[:, [CAPTURED]], consumers.window)
    return speed_of(replayed.outcomes, "records")[:, CAPTURED]
