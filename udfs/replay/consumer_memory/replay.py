"""The pass over consumers, brokers and producers: it replays the messages that take memory, in every lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from schemas.tables.values import BROKER, CONSUMER, PRODUCER
from udfs.columns.arrays import Records
from udfs.facts.arrow_tables import pack_tables
from udfs.replay.consumer_memory.channels import replay_units
from udfs.replay.consumer_memory.consumers import ConsumerEvents, replay_pools
from udfs.replay.consumer_memory.events import KeptExchanges
from udfs.replay.consumer_memory.fetch_queue.replay import librdkafka_consumers, replay_consumer_queue
from udfs.replay.consumer_memory.fetch_queue.rows import queue_rows
from udfs.replay.consumer_memory.fidelity import verdicts_on_consumers
from udfs.replay.consumer_memory.handling import handled_requests
from udfs.replay.consumer_memory.pool_ranges import broker_range_rows, consumer_range_rows
from udfs.replay.consumer_memory.producer.batch_size import with_batch_size
from udfs.replay.consumer_memory.producer.batches import read_produced, sent_by
from udfs.replay.consumer_memory.producer.drawn_pace import replicated
from udfs.replay.consumer_memory.producer.events import ProducerEvents
from udfs.replay.consumer_memory.producer.replay import replay_producer
from udfs.replay.consumer_memory.producer.rows import producer_memory_rows, producer_range_rows, verdicts_on_producers
from udfs.replay.consumer_memory.request_releases import with_releases
from udfs.replay.consumer_memory.rows import broker_memory_rows, client_fidelity_rows, consumer_memory_rows
from udfs.replay.consumer_memory.settings import UNBOUNDED, MemoryLanes
from udfs.replay.consumer_memory.traces import handled_by, traces_of_requests, with_wakes
from udfs.replay.consumer_memory.units import Parts, Units, units_together

if TYPE_CHECKING:
    from udfs.replay.consumer_memory.rows import Rows


def replay_memory(batches: Iterable[pa.RecordBatch], lanes: MemoryLanes, run_id: str) -> Iterator[pa.RecordBatch]:
    """Packed rows of gold tables from rows of MEMORY_EVENTS in the order of UNITS."""
    yield from pack_tables(rows_of_units(with_releases(batches), lanes, run_id))


def rows_of_units(batches: Iterable[pa.RecordBatch], lanes: MemoryLanes, run_id: str) -> Rows:
    """The rows of one set of units after the other; the units of a set are replayed together."""
    own = lanes.with_captured_traffic
    replays = {CONSUMER: (replay_consumers, lanes), BROKER: (replay_brokers, own), PRODUCER: (replay_producers, own)}
    for units, parts in units_together(batches, run_id, len(lanes.names)):
        replay, of_side = replays[units.side]
        yield from replay(units, parts, of_side)


def replay_consumers(units: Units, parts: Parts, lanes: MemoryLanes) -> Rows:
    """The rows of consumers."""
    events = ConsumerEvents(lanes.window)
    for rows, unit in parts:
        events.add(rows, unit)
    consumers = events.consumers(lanes.fetch_limits)
    settings = seeded(lanes.consumer, units, lanes)
    for replayed in replay_pools(consumers, lanes, settings):
        yield from consumer_memory_rows(units, consumers, lanes, replayed)
        yield from consumer_range_rows(units, consumers, lanes, replayed, settings)
    own = lanes.with_captured_traffic
    queues = [replay_consumer_queue(consumers, unit, own) for unit in librdkafka_consumers(consumers).tolist()]
    yield from queue_rows(units, consumers, queues, own)
    on_queues = [(queue.unit, queue.decisions) for queue in queues]
    yield from client_fidelity_rows(units, [*verdicts_on_consumers(consumers), *on_queues])


def replay_brokers(units: Units, parts: Parts, lanes: MemoryLanes) -> Rows:
    """The rows of brokers."""
    events = KeptExchanges()
    for rows, unit in parts:
        events.add(rows, unit)
    exchanges, count = handled_requests(events.gathered.records), len(units)
    traces = traces_of_requests(exchanges, count)
    settings = seeded(lanes.pools_of_brokers(units.names), units, lanes)
    if (settings["size"] < UNBOUNDED).any():
        traces = with_wakes(traces)
    replayed = replay_units(traces, settings, lanes.window)
    handled = handled_by(exchanges[lanes.window.has(exchanges["requested_at"])], count)
    yield from broker_memory_rows(units, traces, replayed, lanes, handled, events.left_out(count))
    yield from broker_range_rows(units, traces, replayed, lanes, settings)


def replay_producers(units: Units, parts: Parts, lanes: MemoryLanes) -> Rows:
    """The rows of producers. Those that are not Kafka's own Java client, or may be several processes, have rows of
    `fidelity` only.
    """
    events = ProducerEvents()
    for rows, unit in parts:
        events.add(rows, unit)
    produced = read_produced(events.gathered.records, len(units), lanes.window)
    is_replayed = events.is_java & events.is_told_apart & (produced.producers["batches"] > 0)
    sent = {unit: sent_by(produced, unit) for unit in np.flatnonzero(is_replayed).tolist()}
    buffers = {unit: with_batch_size(lanes.producer, of.batches, lanes.default_batch_size) for unit, of in sent.items()}
    replayed = {unit: replay_producer(of, buffers[unit]) for unit, of in sent.items()}
    ranges = {unit: replicated(of, buffers[unit], units.names[unit]) for unit, of in sent.items()}
    if sent:
        yield from producer_memory_rows(units, produced, replayed, buffers, lanes, events.left_out())
        yield from producer_range_rows(units, replayed, ranges, lanes)
    yield from client_fidelity_rows(units, verdicts_on_producers(produced, replayed, events.is_java))


def seeded(settings: Records, units: Units, lanes: MemoryLanes) -> Records:
    """The lanes' settings for each unit, with a seed from the names of unit and lane: POOL_SETTINGS[units, lanes].

    So a unit's results do not depend on the other units of a replay. settings: POOL_SETTINGS[lanes], or
    POOL_SETTINGS[units, lanes] if units differ.
    """
    by_unit = np.array(np.broadcast_to(settings, (len(units), len(lanes.names))))
    for unit, (name, address) in enumerate(zip(units.names, units.addresses, strict=True)):
        by_unit["seed"][unit] = [seed_from_names(units.side, name, address, lane) for lane in lanes.names]
    return by_unit


def seed_from_names(*names: str) -> int:
    """A number that depends only on the names."""
    return int.from_bytes(blake2b("\0".join(names).encode(), digest_size=8).digest(), "big", signed=True)
