"""When a client has taken the records of a response (it is drained), as its next fetches show.

A consumer asks for more of a partition once it has taken all records that it got of it
(AbstractFetch.fetchablePartitions, Kafka 4.4). If it does not, it has lost the partition to another member of its group
(see takeovers), or given it up (see given_up).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.memory_reasons import DRAINED
from udfs.columns.arrays import Ints, Record, Records, read_only
from udfs.columns.records import int_fields, with_free_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.units import resize_to_units
from udfs.replay.shared.fidelity_rows import AGREED
from udfs.replay.shared.int_map import ABSENT, IntMap, new_map, place_of_key, put_key, with_room_for
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

OFFSETS_UNKNOWN, ANOTHER_CONNECTION = DRAINED.codes[DRAINED.offsets_unknown], DRAINED.codes[DRAINED.another_connection]
FETCHED_BEFORE_END = DRAINED.codes[DRAINED.fetched_before_end]
FETCHED_BEYOND_END = DRAINED.codes[DRAINED.fetched_beyond_end]
TAKEN_OVER = DRAINED.codes[DRAINED.taken_over]
VERDICTS = 1 + len(DRAINED.codes)
LEAST_RECORD_OVERHEAD = 7
"""Bytes of a record besides key, value and headers: its length, attributes, two deltas, and the lengths of these."""
UNIT_MIX = -3335678366873096957
"""An odd number. Its multiples make the same key differ between units."""

DRAINED_PARTITION = int_fields(
    "holder",  # the exchange whose records of the partition are not drained, or NONE
    "end_offset",  # behind the last whole batch of these records, or NONE
    "cut_end_offset",  # behind a batch that came only in part, or NONE
    "lost_at",  # us: when the client lost it to another member of its group
    "taken_over_at",  # us: when that member first fetched it; NEVER: nobody took it over
    "is_counted",  # 1: FETCHED.partitions counts it
)
"""A partition of a client, as its responses and fetches have shown it so far."""
FETCHED = int_fields(
    "brokers", "partitions", "record_bytes",
    "partition_max_bytes",  # the greatest max.partition.fetch.bytes
    "compressed_batches",
    "unmeasured_batches",  # those of them whose uncompressed size is not known
    "bytes_saved",  # by the compression of the others
)  # fmt: skip
"""Sums over all that a client fetched in the window."""


class ClientFetches(NamedTuple):
    """What the fetches of several clients have shown so far.

    partitions: DRAINED_PARTITION[room]. partition_numbers, broker_numbers: the number of each partition and broker, by
    unit and key. fetched: FETCHED[units]. verdicts: int64[units, VERDICTS], how often each was given.
    """

    partitions: Records
    partition_numbers: IntMap
    broker_numbers: IntMap
    fetched: Records
    verdicts: Ints

    @property
    def known_partitions(self) -> Records:
        """The partitions that have a number: DRAINED_PARTITION[n]."""
        return self.partitions[: int(self.partition_numbers.used[0])]


def no_fetches() -> ClientFetches:
    """The ClientFetches at the begin: no unit has fetched anything."""
    return ClientFetches(
        partitions=np.zeros(0, DRAINED_PARTITION),
        partition_numbers=new_map(),
        broker_numbers=new_map(),
        fetched=np.zeros(0, FETCHED),
        verdicts=np.zeros((0, VERDICTS), np.int64),
    )


def with_units(fetches: ClientFetches, units: int) -> ClientFetches:
    """The fetches, with room for `units` units."""
    return fetches._replace(
        fetched=resize_to_units(fetches.fetched, units, 0), verdicts=resize_to_units(fetches.verdicts, units, 0)
    )


def follow_fetch_events(events: Records, exchanges: Records, fetches: ClientFetches) -> ClientFetches:
    """What the fetches have shown after these events.

    events: PARTITION_EVENT[n], those of a unit in time order. exchanges: EXCHANGE[m], all exchanges to which the events
    belong or that they drain; written in place.
    """
    used, more = len(fetches.known_partitions), len(events)
    after = fetches._replace(
        partitions=with_free_records(fetches.partitions, used, more),
        partition_numbers=with_room_for(fetches.partition_numbers, more),
        broker_numbers=with_room_for(fetches.broker_numbers, more),
    )
    follow_partitions(read_only(events), exchanges, after)
    return after


@kernel
def number_if_new(numbers: IntMap, unit: int, key: int) -> bool:
    """Give a unit's key the next number if it has none; returns whether it had none."""
    mixed = key ^ unit * UNIT_MIX
    if numbers.values[place_of_key(numbers, mixed)] != ABSENT:
        return False
    put_key(numbers, mixed, numbers.used[0])
    return True


@kernel
def number_of_unit(numbers: IntMap, unit: int, key: int) -> int:
    """The number of a unit's key, which has one."""
    return numbers.values[place_of_key(numbers, key ^ unit * UNIT_MIX)]


@kernel
def verdict_on_offset(partition: Record, fetch_offset: int, is_same_connection: bool) -> int:
    """Whether the next fetch of a partition begins where the response ended: behind its last whole batch, or within the
    batch that was cut off. Kafka's clients take nothing of such a batch; kafka-go takes its records that came whole.
    """
    if partition.end_offset == NONE:
        return OFFSETS_UNKNOWN
    if fetch_offset == partition.end_offset or partition.end_offset < fetch_offset < partition.cut_end_offset:
        return AGREED
    if not is_same_connection:
        return ANOTHER_CONNECTION
    return FETCHED_BEFORE_END if fetch_offset < partition.end_offset else FETCHED_BEYOND_END


@kernel
def drain_partition(partition: Record, exchanges: Records, event: Record) -> int:
    """Fetch a partition again: its records in the holder are drained, or the partition was lost. Returns the verdict on
    the fetch offset.

    exchanges: EXCHANGE[n]; the holder is written.
    """
    holder, fetch = exchanges[partition.holder], exchanges[event.exchange]
    verdict = verdict_on_offset(partition, event.fetch_offset, holder.connection == fetch.connection)
    if verdict != AGREED and partition.taken_over_at != NEVER:
        verdict = TAKEN_OVER
        holder.lost_at = max(holder.lost_at, partition.lost_at)
        holder.taken_over_at = max(holder.taken_over_at, partition.taken_over_at)
    else:
        holder.drained_at = max(holder.drained_at, fetch.requested_at)
    holder.undrained -= 1
    partition.holder = NONE
    return verdict


@kernel
def on_batch(partition: Record, exchange: Record, event: Record, fetched: Record) -> None:
    """Count a batch of the partition in a response."""
    exchange.records += event.records
    if event.end_offset != NONE and event.is_compressed == 1 and event.uncompressed_bytes == NONE:
        exchange.unmeasured += 1
    elif event.end_offset != NONE:
        size = event.uncompressed_bytes if event.is_compressed == 1 else event.size
        exchange.value_bytes += max(size - RECORD_BATCH_OVERHEAD - LEAST_RECORD_OVERHEAD * event.records, 0)
    if partition.holder == event.exchange:
        partition.end_offset = max(partition.end_offset, event.end_offset)
        partition.cut_end_offset = max(partition.cut_end_offset, event.cut_end_offset)
    if event.is_compressed == 1 and event.counts == 1:
        fetched.compressed_batches += 1
        if event.uncompressed_bytes == NONE:
            fetched.unmeasured_batches += 1
        else:
            fetched.bytes_saved += event.uncompressed_bytes - event.size


@kernel
def on_fetch(fetches: ClientFetches, partition: Record, exchanges: Records, event: Record) -> None:
    """A fetch names the partition: it drains the records that came before, and may bring more.

    exchanges: EXCHANGE[n]; the fetch's own exchange and the holder are written.
    """
    exchange, fetched = exchanges[event.exchange], fetches.fetched[event.unit]
    if event.fetch_offset != NONE and partition.holder != NONE:
        fetches.verdicts[event.unit, drain_partition(partition, exchanges, event)] += event.counts
    if event.fetch_offset != NONE:
        exchange.asked += 1
    if event.returned_bytes > 0:
        exchange.undrained += 1
        exchange.partitions += 1
        exchange.record_bytes += event.returned_bytes
        partition.holder, partition.taken_over_at = event.exchange, NEVER
        partition.end_offset, partition.cut_end_offset = NONE, NONE
    if event.counts == 0:
        return
    if number_if_new(fetches.broker_numbers, event.unit, event.broker_key):
        fetched.brokers += 1
    fetched.record_bytes += event.returned_bytes
    fetched.partition_max_bytes = max(fetched.partition_max_bytes, event.partition_max_bytes)


@kernel
def follow_partitions(events: Records, exchanges: Records, fetches: ClientFetches) -> None:
    """Let fetches drain the records that came before, and hold those that they got, in arrays with room for all.

    events: PARTITION_EVENT[n], those of a unit in time order. exchanges: EXCHANGE[m], all exchanges to which the events
    belong or that they drain; written in place.
    """
    for row in range(len(events)):
        event = events[row]
        is_first = number_if_new(fetches.partition_numbers, event.unit, event.partition_key)
        partition = fetches.partitions[number_of_unit(fetches.partition_numbers, event.unit, event.partition_key)]
        if is_first:
            partition.holder, partition.taken_over_at, partition.is_counted = NONE, NEVER, 0
        if partition.is_counted < event.counts:
            fetches.fetched[event.unit].partitions += 1
            partition.is_counted = 1
        if event.kind == MemoryEvent.BATCH:
            on_batch(partition, exchanges[event.exchange], event, fetches.fetched[event.unit])
        elif event.kind == MemoryEvent.PARTITION:
            on_fetch(fetches, partition, exchanges, event)
        elif partition.taken_over_at == NEVER:
            partition.taken_over_at, partition.lost_at = event.time, event.lost_at
