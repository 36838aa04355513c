"""The lanes of a producer, each from the first record of a stretch to its last batch.

A batch may have to be measured when it is closed: its records are compressed, which a kernel cannot do. The lane then
stops at that event, gets the size, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from udfs.columns.arrays import Records
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.accumulator import append_record, close_as_captured, leave_partition, seal_full
from udfs.replay.batch_split.partition_queue import comes_after_sent
from udfs.replay.batch_split.sender import handle_next_event, waits_to_close
from udfs.replay.batch_split.sender_events import CLOSED, KIND, KIND_BITS, OF_BATCH
from udfs.replay.batch_split.state import MODELLED, NOT_BEGUN, NOT_CLOSED, ProducerSim, codec_of
from udfs.replay.shared.event_heap import INDEX

Measure = Callable[[int, int, int], int]
"""Bytes of a batch of the records [first, end) in a codec; MODELLED if the records are not held."""
SAMPLING = 0x9E3779B1
"""Spreads the numbers of records, which alone decide which batches are measured."""


@kernel
def has_to_be_measured(sim: ProducerSim, lane: int) -> bool:
    """Whether the next event closes a batch whose records have to be compressed first; it is noted in `progress`."""
    every, code = sim.settings[lane].measured_every, sim.heap.code[0]
    kind, first = code & INDEX & KIND, (code & INDEX) >> KIND_BITS
    if every == 0 or code & ~INDEX != OF_BATCH or kind != CLOSED or sim.ready[first].size != NOT_CLOSED:
        return False
    codec = codec_of(sim, lane, first)
    if codec == 0 or waits_to_close(sim, first) or comes_after_sent(sim, first, sim.heap.time[0]):
        return False
    if (first * SAMPLING >> 16) % every != 0:
        return False
    sim.progress[0].unmeasured, sim.progress[0].codec = first, codec
    return True


@kernel
def handle_events_until(sim: ProducerSim, lane: int, time: int) -> bool:
    """Handle the events up to a time. False if Python has to do something first, as `replay_lanes` says."""
    while sim.heap.events[0] and sim.heap.time[0] <= time:
        if sim.progress[0].spans == len(sim.spans) or has_to_be_measured(sim, lane):
            return False
        handle_next_event(sim, lane)
    return True


@kernel
def begin_lane(sim: ProducerSim) -> None:
    """Begin a lane with nothing appended, filled or queued."""
    sim.progress[0].appended = sim.heap.events[0] = 0
    for topic in range(len(sim.current)):
        sim.current[topic] = NONE
    for partition in range(len(sim.filling)):
        filling = sim.filling[partition]
        filling.count = filling.is_overdue = filling.last_closed = filling.part = 0
        filling.queued = filling.refused = filling.left = NONE


@kernel
def replay_lane(sim: ProducerSim, lane: int) -> bool:
    """Append every record, and close every batch. Batches being filled at the end are sent, as when a client closes.
    Events after the window are left out.

    False if it did not get to the end, as in `handle_events_until`.
    """
    progress = sim.progress[0]
    while progress.appended < len(sim.capture.append_order):
        record = sim.capture.append_order[progress.appended]
        if sim.capture.records[record].time > progress.last:
            return handle_events_until(sim, lane, progress.last)
        if not handle_events_until(sim, lane, sim.capture.records[record].time):
            return False
        leave_partition(sim, lane, record)
        append_record(sim, lane, record)
        close_as_captured(sim, lane, record)
        progress.appended += 1
    for partition in range(len(sim.filling)):
        filling = sim.filling[partition]
        if filling.count:
            seal_full(sim, lane, partition, sim.capture.records[filling.first + filling.count - 1].time)
    return handle_events_until(sim, lane, progress.last)


@kernel
def replay_lanes(sim: ProducerSim, end: int) -> bool:
    """Go on with the current lane and the lanes after it, up to before lane `end`.

    False if Python has to measure a batch (`progress.unmeasured`) or, if none is noted, to take away spans; the caller
    does so and calls it again.
    """
    progress = sim.progress[0]
    while progress.lane < end:
        if progress.appended == NOT_BEGUN:
            begin_lane(sim)
        if not replay_lane(sim, progress.lane):
            return False
        progress.lane += 1
        progress.appended = NOT_BEGUN
    return True


def not_measured(first: int, end: int, codec: int) -> int:
    """The Measure for records that are not held."""
    return MODELLED


def replay_stretch(sim: ProducerSim, lanes: range, measure: Measure = not_measured) -> list[Records]:
    """Replay some lanes.

    Returns the full spans of their timelines, SPLIT_SPAN[spans], lane by lane in time order.
    """
    progress, spans = sim.progress[0], list[Records]()
    progress["lane"], progress["appended"], progress["spans"], progress["unmeasured"] = lanes.start, NOT_BEGUN, 0, NONE
    while not replay_lanes(sim, lanes.stop):
        first = int(progress["unmeasured"])
        if first == NONE:
            spans.append(sim.spans[: progress["spans"]].copy())
            progress["spans"] = 0
        else:
            ready = sim.ready[first]
            ready["size"] = measure(first, int(ready["end"]), int(progress["codec"]))
            progress["unmeasured"] = NONE
    return [*spans, sim.spans[: progress["spans"]].copy()]
