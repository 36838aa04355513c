"""The pass over producers with their records: first the packets of a producer's connections, then what it sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import NamedTuple

import pyarrow as pa

from schemas.tables.steps import SENT
from udfs.capture.packets import PACKETS
from udfs.replay.fetch.fetch_replay import boundaries
from udfs.replay.splits.held_records import HeldRecords
from udfs.replay.splits.records_in_packets import read_held
from udfs.replay.splits.split_replay import CLIENT, SplitLanes, replay_splits

IS_SENT = "is_sent"
"""Tells rows of SENT, true, from packets: each has nulls in the columns of the other."""
PACKET_ORDER = ("connection", "sort_ns", "file_no", "packet_no")


class Piece(NamedTuple):
    """Rows of one kind and one client."""

    client_id: str
    client_address: str
    is_sent: bool
    rows: pa.RecordBatch


def pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """The rows cut where client or kind changes."""
    for batch in batches:
        starts = boundaries(batch, (*CLIENT, IS_SENT)).tolist()
        for first, end in pairwise(starts):
            client_id, client_address, is_sent = (batch[name][first].as_py() for name in (*CLIENT, IS_SENT))
            yield Piece(client_id, client_address, is_sent, batch.slice(first, end - first))


def replay_with_records(
    batches: Iterable[pa.RecordBatch], lanes: SplitLanes, run_id: str
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """Packed rows of gold tables from rows that are sorted by client, then IS_SENT.

    Packets are in the order of PACKETS, rows of SENT in that of `replay_splits`.
    """
    held = HeldRecords()
    for (_, _, is_sent), group in groupby(pieces(batches), key=lambda piece: piece[:3]):
        if is_sent:
            sent = (piece.rows.select(list(SENT.columns)[1:]) for piece in group)
            yield from replay_splits(sent, lanes, run_id, held=held)
            held = HeldRecords()
        else:
            held = read_held(piece.rows.select(PACKET_COLUMNS) for piece in group)


PACKET_COLUMNS = [name for name in PACKETS.names if name != "bucket"]
