"""Consumers: what they exchanged as captured and, under other fetch limits, in closed loop; replayed in every lane.

Lanes that share their fetch limits share what is exchanged, and are one replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.fidelity_reasons import DRAINED
from schemas.tables.steps import MEMORY_EVENTS
from udfs.columns.arrays import Bools, Floats, Ints, Records, read_only
from udfs.columns.records import GrowingRecords, with_room
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.channels import replay_units
from udfs.replay.consumer_memory.draining import FETCHED, PARTITION, VERDICTS, Fetches, follow_partitions
from udfs.replay.consumer_memory.events import (
    LEFT_OUT,
    OF_PARTITION,
    OF_TAKEOVER,
    TAKEOVER,
    Exchanges,
    partition_events_of,
    takeovers_of,
)
from udfs.replay.consumer_memory.given_up import drop_given_up, not_taken, when_dropped
from udfs.replay.consumer_memory.responses import ClosedLoop, hold_given_up, in_closed_loop
from udfs.replay.consumer_memory.settings import MemoryLanes
from udfs.replay.consumer_memory.state import Replayed, Traces
from udfs.replay.consumer_memory.takeovers import drop_lost, taken_over, when_lost
from udfs.replay.consumer_memory.traces import traces_of_responses
from udfs.replay.consumer_memory.units import Counted, resized
from udfs.replay.shared.caps import MOST_EXCHANGES
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.int_map import IntMap, new_map, roomy
from udfs.replay.shared.lanes import AS_CAPTURED, CAPTURED


@dataclass
class ConsumerEvents:
    """The rows of several client processes so far. takeovers: TAKEOVER, MOST_EXCHANGES of each process.

    The next four are as in Fetches; `partitions` has room for others.
    """

    exchanges: Exchanges = field(default_factory=Exchanges)
    takeovers: GrowingRecords = field(default_factory=lambda: GrowingRecords(TAKEOVER))
    closed: ClosedLoop = field(default_factory=ClosedLoop)
    partitions: Records = field(default_factory=lambda: np.zeros(0, PARTITION))
    partition_numbers: IntMap = field(default_factory=new_map)
    broker_numbers: IntMap = field(default_factory=new_map)
    fetched: Records = field(default_factory=lambda: np.zeros(0, FETCHED))
    verdicts: Ints = field(default_factory=lambda: np.zeros((0, VERDICTS), np.int64))
    _takeovers_counted: Counted = field(default_factory=Counted)

    def add(self, rows: pa.RecordBatch, unit: Ints) -> None:
        """Take rows of MEMORY_EVENTS, which follow those before. unit: int64[rows]."""
        exchange, kind = self.exchanges.add(rows, unit), int_column(rows, MEMORY_EVENTS.kind, 0)
        of_partition = np.isin(kind, (MemoryEvent.PARTITION, MemoryEvent.BATCH, MemoryEvent.TAKEN_OVER))
        of_partition &= exchange != LEFT_OUT
        self._resize(int(unit[-1]) + 1)
        if of_partition.any():
            self._follow(rows, unit, exchange, of_partition)
        is_closed = (kind == MemoryEvent.RESPONSES) | (kind == MemoryEvent.GIVEN_UP)
        if is_closed.any():
            self.closed.add(rows.filter(pa.array(is_closed)), unit[is_closed])

    def _resize(self, units: int) -> None:
        self.fetched, self.verdicts = resized(self.fetched, units, 0), resized(self.verdicts, units, 0)

    def _follow(self, rows: pa.RecordBatch, unit: Ints, exchange: Ints, which: Bools) -> None:
        """Take the rows of kinds PARTITION, BATCH and TAKEN_OVER."""
        kept = rows.select([*OF_PARTITION]).filter(pa.array(which))
        events = partition_events_of(kept, unit[which], exchange[which])
        is_takeover = events["kind"] == MemoryEvent.TAKEN_OVER
        if is_takeover.any():
            of_takeover = rows.select([*OF_TAKEOVER]).filter(pa.array(which)).filter(pa.array(is_takeover))
            events["lost_at"][is_takeover] = self._take_over(takeovers_of(of_takeover, events["unit"][is_takeover]))
        used = int(self.partition_numbers.used[0])
        self.partitions = with_room(self.partitions, used, len(events))
        self.partition_numbers = roomy(self.partition_numbers, len(events))
        self.broker_numbers = roomy(self.broker_numbers, len(events))
        follow_partitions(
            read_only(events),
            Fetches(
                exchanges=self.exchanges.gathered.records,
                partitions=self.partitions,
                partition_numbers=self.partition_numbers,
                broker_numbers=self.broker_numbers,
                fetched=self.fetched,
                verdicts=self.verdicts,
            ),
        )

    def _take_over(self, takeovers: Records) -> Ints:
        """Keep takeovers; returns when each partition was lost (us): int64[n]."""
        takeovers["lost_at"] = when_lost(takeovers, self.exchanges.gathered.records)
        place = self._takeovers_counted.places(takeovers["unit"], np.ones(len(takeovers), np.bool_))
        self.takeovers.add(takeovers[place < MOST_EXCHANGES])
        return takeovers["lost_at"]

    def captured(self) -> Captured:
        """What the processes exchanged, once all of their rows have come."""
        exchanges = self.exchanges.gathered.records
        partitions = self.partitions[: int(self.partition_numbers.used[0])]
        holder = not_taken(partitions)["holder"]
        dropped_at = when_dropped(exchanges, holder)
        self._count(DRAINED.given_up, exchanges["unit"][holder[dropped_at != NEVER]])
        self._count(DRAINED.not_fetched_again, exchanges["unit"][holder[dropped_at == NEVER]])
        self._count(DRAINED.taken_over, exchanges["unit"][taken_over(partitions)["holder"]])
        drop_lost(exchanges, partitions)
        drop_given_up(exchanges, holder, dropped_at)
        return Captured(
            exchanges, self.takeovers.records, self.fetched, self.verdicts, self.exchanges.left_out(len(self.fetched))
        )

    def _count(self, word: str, unit: Ints) -> None:
        """Count a verdict for each of these units."""
        np.add.at(self.verdicts[:, DRAINED.codes[word]], unit, 1)


@dataclass(frozen=True)
class Captured:
    """What several client processes exchanged, as captured.

    exchanges: EXCHANGE, each unit's in the order of their requests, with what they hold and until when. takeovers:
    TAKEOVER. fetched: FETCHED[units]. verdicts: int64[units, VERDICTS], on partitions. left_out: int64[units],
    exchanges that there was no room for.
    """

    exchanges: Records
    takeovers: Records
    fetched: Records
    verdicts: Ints
    left_out: Ints

    @cached_property
    def consumers(self) -> Ints:
        """The units that are consumers: int64[n]. One that fetched nothing, or as a follower, is none."""
        is_answered = self.exchanges["complete_at"] != NEVER
        answered = np.bincount(self.exchanges["unit"][is_answered], minlength=len(self.fetched))
        return np.flatnonzero((self.fetched["brokers"] > 0) & (answered > 0))

    @cached_property
    def answered(self) -> Records:
        """EXCHANGE[n]: those of consumers that were answered."""
        of_consumer = np.isin(self.exchanges["unit"], self.consumers)
        return self.exchanges[of_consumer & (self.exchanges["complete_at"] != NEVER)]

    @cached_property
    def max_bytes(self) -> Ints:
        """The largest fetch.max.bytes that each unit asked for: int64[units]."""
        found = np.zeros(len(self.fetched), np.int64)
        np.maximum.at(found, self.exchanges["unit"], self.exchanges["max_bytes"])
        return found


@dataclass(frozen=True)
class Consumers:
    """Client processes under every fetch limit of a scenario. limits: FETCH_LIMITS, those in force first."""

    captured: Captured
    closed: ClosedLoop
    limits: Records
    _closed_traces: dict[int, Traces] = field(default_factory=dict)

    @property
    def units(self) -> int:
        """How many processes there are, those that are no consumers included."""
        return len(self.captured.fetched)

    @cached_property
    def captured_traces(self) -> Traces:
        """What they exchanged as captured."""
        return traces_of_responses(self.captured.answered, self.units)

    def closed_traces(self, fetch_number: int) -> Traces:
        """What the closed loop exchanges under the fetch limits of this number."""
        if fetch_number not in self._closed_traces:
            responses = self.responses_under(fetch_number)
            given_up = self.closed.given_up_under(fetch_number)
            hold_given_up(responses, given_up, self.captured.takeovers, self.captured.exchanges)
            exchanges = in_closed_loop(self.captured.answered, responses, self.max_bytes(fetch_number))
            self._closed_traces[fetch_number] = traces_of_responses(exchanges, self.units)
        return self._closed_traces[fetch_number]

    def traces(self, fetch_number: int) -> Traces:
        """What lanes with the fetch limits of this number are replayed from: with those in force, the capture."""
        return self.captured_traces if fetch_number == CAPTURED else self.closed_traces(fetch_number)

    def responses_under(self, fetch_number: int) -> Records:
        """RESPONSE[n]: the closed loop's responses of consumers under the fetch limits of this number."""
        found = self.closed.responses_under(fetch_number)
        return found[np.isin(found["unit"], self.captured.consumers)]

    def max_bytes(self, fetch_number: int) -> Ints:
        """The largest fetch.max.bytes that each unit asks for: int64[units]."""
        return chosen(self.limits["max_bytes"][fetch_number], self.captured.max_bytes)

    def memory_bound(self, fetch_number: int) -> Ints:
        """KIP-74's bound, min(brokers x fetch.max.bytes, partitions x max.partition.fetch.bytes): int64[units]."""
        fetched, limits = self.captured.fetched, self.limits[fetch_number]
        max_bytes = self.max_bytes(fetch_number)
        if fetch_number != CAPTURED:
            max_bytes = np.minimum(max_bytes, limits["broker_max_bytes"])
        partition_max_bytes = chosen(limits["partition_max_bytes"], fetched["partition_max_bytes"])
        return np.minimum(fetched["brokers"] * max_bytes, fetched["partitions"] * partition_max_bytes)

    def record_bytes(self, fetch_number: int) -> Ints:
        """The bytes of records in the responses of each unit: int64[units]."""
        if fetch_number == CAPTURED:
            return self.captured.fetched["record_bytes"]
        responses, found = self.responses_under(fetch_number), np.zeros(self.units, np.int64)
        np.add.at(found, responses["unit"], responses["record_bytes"])
        return found

    def left_out(self, fetch_number: int) -> Ints:
        """Exchanges and responses of each unit that there was no room for: int64[units]."""
        if fetch_number == CAPTURED:
            return self.captured.left_out
        closed = [self.closed.left_out[unit, fetch_number] for unit in range(self.units)]
        return self.captured.left_out + np.array(closed, np.int64)


def chosen(limit: int, captured: Ints) -> Ints:
    """What a limit is for each unit, the captured value where a lane leaves that: int64[units]."""
    return captured if limit == AS_CAPTURED else np.full(len(captured), limit)


@dataclass(frozen=True)
class LanesReplayed:
    """Lanes with the same fetch limits, replayed for several units.

    lanes: int64[n], their numbers. traces: what they were replayed from. speed: float64[units, n], throughput as a
    share of the captured lane's, nan where that is 0.
    """

    fetch_number: int
    lanes: Ints
    traces: Traces
    replayed: Replayed
    speed: Floats


def span_us(outcomes: Records) -> Ints:
    """How long each lane took (us), in the shape of OUTCOME."""
    return outcomes["ended_at"] - outcomes["began_at"]


def speed_of(outcomes: Records, what: str) -> Floats:
    """Bytes or records per us, in the shape of OUTCOME."""
    return outcomes[what] / np.maximum(span_us(outcomes), 1)


def relative(speed: Floats, base: Floats) -> Floats:
    """The speeds as shares of a base of each unit, nan where that is 0: float64[units, lanes]. base: float64[units]."""
    return np.divide(speed, base[:, None], out=np.full(speed.shape, np.nan), where=base[:, None] > 0)


def replays_of(consumers: Consumers, lanes: MemoryLanes, settings: Records) -> Iterator[LanesReplayed]:
    """Replay consumers in every lane. settings: POOL_SETTINGS[units, lanes].

    Throughput under other fetch limits is in records, since cut batches come twice, and relative to the closed loop
    under the limits in force and without a bound, since that has a pace of its own.
    """
    numbers = lanes.fetch_number
    base = closed_speed(consumers, settings) if (numbers != CAPTURED).any() else np.zeros(consumers.units)
    for fetch_number in np.unique(numbers).tolist():
        which, traces = np.flatnonzero(numbers == fetch_number), consumers.traces(fetch_number)
        replayed = replay_units(traces, settings[:, which])
        if fetch_number == CAPTURED:
            speed = speed_of(replayed.outcomes, "bytes")
            speed = relative(speed, speed[:, 0])
        else:
            speed = relative(speed_of(replayed.outcomes, "records"), base)
        yield LanesReplayed(fetch_number, which, traces, replayed, speed)


def closed_speed(consumers: Consumers, settings: Records) -> Floats:
    """Records per us of each unit's closed loop in the captured lane: float64[units]."""
    replayed = replay_units(consumers.closed_traces(CAPTURED), settings[:, [CAPTURED]])
    return speed_of(replayed.outcomes, "records")[:, CAPTURED]
