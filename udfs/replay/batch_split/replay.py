"""The pass over producers: it puts together what each sent, judges it, and sends it again in every lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.split_reasons import SPLITS
from schemas.tables.steps import SENT
from schemas.tables.table import Table
from udfs.capture.packets import PACKETS
from udfs.columns.arrays import Records
from udfs.columns.arrow_columns import concatenate_batches
from udfs.facts.arrow_tables import pack_tables
from udfs.replay.batch_split.drawn_pace import drawn_sim, observed_stretch
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.fidelity import ProducerFidelity
from udfs.replay.batch_split.held_records import HeldRecords, read_held, recompressed
from udfs.replay.batch_split.lanes import Measure, not_measured, replay_stretch
from udfs.replay.batch_split.possible_estimates.order import times_in
from udfs.replay.batch_split.possible_estimates.state import new_memory
from udfs.replay.batch_split.producer import Producer, with_replications
from udfs.replay.batch_split.rows import producer_rows
from udfs.replay.batch_split.settings import SplitLanes
from udfs.replay.batch_split.state import TopicRules, new_sim, read_only_capture
from udfs.replay.batch_split.timing import capture_at_times, soonest_times, timed_batches
from udfs.replay.shared.lanes import CAPTURED
from udfs.replay.shared.rows_by_key import by_key

CLIENT_KEY = (SENT.client_id, SENT.client_address)
STRETCH_RECORDS = 1 << 18
"""How many records of a producer are in memory at once: a stretch. Estimates carry over from one stretch to the next.
Batches being filled at the end of a stretch are sent then, so one batch of each partition ends too early."""

IS_SENT = "is_sent"
"""The column that is true in rows of SENT and false in packets; each kind of row has nulls in the other's columns."""
PACKET_ORDER = ("connection", "sort_ns", "file_no", "packet_no")
PACKET_COLUMNS = [name for name in PACKETS.names if name != "bucket"]


def replay_splits(
    batches: Iterable[pa.RecordBatch], lanes: SplitLanes, run_id: str, most: int = STRETCH_RECORDS
) -> Iterator[pa.RecordBatch]:
    """Packed rows of gold tables from rows of SENT, sorted by client and by append_from.

    most: how many records make a stretch.
    """
    yield from pack_tables(rows_of_producers(batches, lanes, run_id, most))


def replay_with_records(batches: Iterable[pa.RecordBatch], lanes: SplitLanes, run_id: str) -> Iterator[pa.RecordBatch]:
    """Packed rows of gold tables from rows that are sorted by client, then by IS_SENT: first the packets of a
    producer's connections, which hold the records that its lanes may compress anew, then what it sent.

    Packets are in the order of PACKETS, rows of SENT in that of `replay_splits`.
    """
    yield from pack_tables(rows_with_records(batches, lanes, run_id))


def rows_with_records(
    batches: Iterable[pa.RecordBatch], lanes: SplitLanes, run_id: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The gold rows of `replay_with_records`, producer by producer."""
    held = HeldRecords()
    for (*_, is_sent), parts in by_key(batches, (*CLIENT_KEY, IS_SENT)):
        if is_sent:
            sent = (part.select([*map(str, SENT.columns)]) for part in parts)
            yield from rows_of_producers(sent, lanes, run_id, STRETCH_RECORDS, held)
            held = HeldRecords()
        else:
            held = read_held(part.select(PACKET_COLUMNS) for part in parts)


def rows_of_producers(
    batches: Iterable[pa.RecordBatch], lanes: SplitLanes, run_id: str, most: int, held: HeldRecords | None = None
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The gold rows of producers, one after the other.

    held: the records, if all rows are of one producer; without them sizes come from the model in every lane.
    """
    memory = new_memory()
    for (client_id, client_address), parts in by_key(batches, CLIENT_KEY):
        producer = Producer(client_id, client_address, lanes, ProducerFidelity(memory, lanes.window))
        for rows in cut_stretches(parts, most):
            if rows[SENT.append_from][0].as_py() < lanes.window.end:
                replay_rows(producer, rows, held)
        yield from producer_rows(producer, run_id)


def cut_stretches(parts: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """A producer's rows in stretches, which do not depend on how the parts were split. Each stretch, except the last,
    has at least `most` records.
    """
    held: list[pa.RecordBatch] = []
    for part in parts:
        rows = concatenate_batches([*held, part])
        while (cut := cut_at(rows, most)) < rows.num_rows:
            yield rows.slice(0, cut)
            rows = rows.slice(cut)
        held = [rows]
    yield from held


def cut_at(rows: pa.RecordBatch, most: int) -> int:
    """How many rows the first stretch has: the fewest that have `most` records, or all rows."""
    sizes: Any = rows[SENT.record_sizes]  # a ListArray
    counts = np.diff(sizes.offsets.to_numpy().astype(np.int64))
    return min(int(np.searchsorted(np.cumsum(counts), most)) + 1, rows.num_rows)


def replay_rows(producer: Producer, rows: pa.RecordBatch, held: HeldRecords | None) -> None:
    """Judge a stretch of what a producer sent, rows of SENT, and send it again in every lane."""
    sent = producer.read(rows)
    settings = producer.settings(sent)
    producer.fidelity.count_unread(sent)
    if not producer.is_java or not producer.is_told_apart:
        producer.fidelity.count_unchecked(
            sent, SPLITS.several_processes if producer.is_java else SPLITS.not_a_java_client
        )
        return
    order = producer.fidelity.judge(sent, settings, producer.max_message_bytes[CAPTURED], producer.stored_codecs)
    if len(sent.capture.batches) == 0:
        return
    producer.make_room(settings)
    producer.note_sent(sent)
    measure = None if held is None else recompressed(held, rows, sent.capture, producer.lanes.levels).size
    producer.fidelity.compare_sizes(sent, measure)
    send_again(producer, sent, settings, order, measure or not_measured)


def send_again(producer: Producer, sent: Sent, settings: Records, order: Records, measure: Measure) -> None:
    """Send a stretch again: in every lane at captured pace, in the captured lane with every batch closed at the
    earliest possible time, and in every lane with pace drawn anew.

    settings: SPLIT_SETTINGS[lanes], with those from `with_replications`. order: the order of closes and splits, from
    `ProducerFidelity.judge`.
    """
    linger_us, times = int(settings["linger_us"][CAPTURED]), times_in(order, sent)
    capture = capture_at_times(sent, times, linger_us)
    limits = with_replications(producer.max_message_bytes, producer.replications)
    rules, window = TopicRules(limits, producer.stored_codecs), producer.lanes.window
    sim = new_sim(capture, settings, rules, estimates=producer.estimates, outcomes=producer.outcomes, window=window)
    producer.spans += replay_stretch(sim, range(producer.at_once), measure)
    closed_at_once = capture._replace(batches=timed_batches(sent, soonest_times(sent, times, linger_us), linger_us))
    lane_at_once = range(producer.at_once, producer.at_once + 1)
    replay_stretch(sim._replace(capture=read_only_capture(closed_at_once)), lane_at_once, measure)
    captured = observed_stretch(capture)
    for replication in range(producer.replications):
        drawn = drawn_sim(sim, captured, producer.draws(replication), window)
        replay_stretch(drawn, producer.lanes_of(replication))
