"""The pass over producers with their records: first the packets of a producer's connections, then what it sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from schemas.tables.steps import SENT
from udfs.capture.packets import PACKETS
from udfs.replay.batch_split.held_records import HeldRecords
from udfs.replay.batch_split.records_in_packets import read_held
from udfs.replay.batch_split.replay import CLIENT, SplitLanes, replay_splits
from udfs.replay.shared.rows_by_key import by_key

IS_SENT = "is_sent"
"""Tells rows of SENT, true, from packets: each has nulls in the columns of the other."""
PACKET_ORDER = ("connection", "sort_ns", "file_no", "packet_no")


def replay_with_records(
    batches: Iterable[pa.RecordBatch], lanes: SplitLanes, run_id: str
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """Packed rows of gold tables from rows that are sorted by client, then IS_SENT.

    Packets are in the order of PACKETS, rows of SENT in that of `replay_splits`.
    """
    held = HeldRecords()
    for (*_, is_sent), parts in by_key(batches, (*CLIENT, IS_SENT)):
        if is_sent:
            sent = (part.select(list(SENT.columns)[1:]) for part in parts)
            yield from replay_splits(sent, lanes, run_id, held=held)
            held = HeldRecords()
        else:
            held = read_held(part.select(PACKET_COLUMNS) for part in parts)


PACKET_COLUMNS = [name for name in PACKETS.names if name != "bucket"]
