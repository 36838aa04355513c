"""The output for a chunk of packets: requests, responses, and ranges of bytes that belong to no frame."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.capture.framing import FRAME
from udfs.columns.arrays import Ints, Record, Records
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import allocating_kernel, kernel

LOSS = np.dtype(
    [(name, np.int64) for name in ("connection", "direction", "stream_offset", "bytes", "reason", "time", "packet")],
    align=True,
)
REQUESTS, RESPONSES, LOSSES = range(3)
FEWEST_ROWS = 64


class ChunkOutput(NamedTuple):
    """Requests, responses and losses of a chunk. Rows after the count of their kind are free."""

    requests: Records  # FRAME
    responses: Records  # FRAME
    losses: Records  # LOSS
    counts: Ints  # [3], by REQUESTS, RESPONSES, LOSSES
    blank: Records  # FRAME[1], zeros


def new_output(requests: Records, packets: int) -> ChunkOutput:
    """The output of a chunk before the chunk is read. It has the requests that earlier chunks left open, FRAME[n].

    packets: how many the chunk has; there is room for one request and one response per packet.
    """
    all_requests = np.empty(len(requests) + packets, FRAME)
    all_requests[: len(requests)] = requests
    return ChunkOutput(
        requests=all_requests,
        responses=np.empty(packets, FRAME),
        losses=np.zeros(FEWEST_ROWS, LOSS),
        counts=np.array([len(requests), 0, 0], np.int64),
        blank=np.zeros(1, FRAME),
    )


@kernel
def is_output_full(output: ChunkOutput) -> bool:
    """Whether any kind has no free row left."""
    counts = output.counts
    return bool(
        counts[REQUESTS] == len(output.requests)
        or counts[RESPONSES] == len(output.responses)
        or counts[LOSSES] == len(output.losses)
    )


@allocating_kernel
def with_free_row(rows: Records, used: int) -> Records:
    """The rows with at least one free row after those in use: the same array, or a larger copy of it.

    rows: kind[n], of any kind of record. used: how many of them are in use.
    """
    if used < len(rows):
        return rows
    larger = np.zeros(max(2 * used, FEWEST_ROWS), rows.dtype)
    for row in range(used):
        larger[row] = rows[row]
    return larger


@allocating_kernel
def with_free_rows(output: ChunkOutput) -> ChunkOutput:
    """The output with at least one free row of each kind; rows move to larger arrays if there was none."""
    return ChunkOutput(
        with_free_row(output.requests, output.counts[REQUESTS]),
        with_free_row(output.responses, output.counts[RESPONSES]),
        with_free_row(output.losses, output.counts[LOSSES]),
        output.counts,
        output.blank,
    )


@kernel
def blank_frame(output: ChunkOutput, frames: Records, kind: int) -> Record:
    """The next free row of `frames`, set to zeros; the caller has checked that there is one.

    frames: FRAME[n], the requests or responses of `output`. kind: REQUESTS or RESPONSES, accordingly.
    """
    frames[output.counts[kind]] = output.blank[0]
    return frames[output.counts[kind]]


@kernel
def close_requests(output: ChunkOutput, first: int, end: int) -> None:
    """Mark the requests [first, end) as no longer waiting for a response."""
    for i in range(first, end):
        output.requests[i].is_open = 0


@kernel
def report_loss(output: ChunkOutput, conn: Record, side: int, direction: Record) -> None:
    """Write the range that a side has skipped, if any, as one loss. The caller has checked that there is a free row."""
    if direction.lost_from == UNKNOWN:
        return
    loss = output.losses[output.counts[LOSSES]]
    loss.connection, loss.direction, loss.stream_offset = conn.index, side, direction.lost_from
    loss.bytes, loss.reason = direction.lost_bytes, direction.lost_reason
    loss.time, loss.packet = direction.lost_time, direction.lost_packet
    direction.lost_from = UNKNOWN
    output.counts[LOSSES] += 1
