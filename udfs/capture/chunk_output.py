"""What has been made out of a chunk of packets: requests, responses, and ranges of bytes that were given up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.capture.framing import FRAME
from udfs.capture.segments import UNKNOWN
from udfs.columns.arrays import Ints, Record, Records
from udfs.kernels.kernel import allocating_kernel, kernel

LOSS = np.dtype(
    [(name, np.int64) for name in ("connection", "direction", "stream_offset", "bytes", "reason", "time", "packet")],
    align=True,
)
REQUESTS, RESPONSES, LOSSES = range(3)
FEWEST_ROWS = 64


class Found(NamedTuple):
    """Rows by kind; those behind the count of their kind are room for more."""

    requests: Records  # FRAME
    responses: Records  # FRAME
    losses: Records  # LOSS
    counts: Ints  # [3], by REQUESTS, RESPONSES, LOSSES
    blank: Records  # FRAME[1], zeros


def found_before(requests: Records, packets: int) -> Found:
    """Nothing but the requests, FRAME[n], that earlier chunks left open; with room for a frame a packet."""
    room = np.empty(len(requests) + packets, FRAME)
    room[: len(requests)] = requests
    counts = np.array([len(requests), 0, 0], np.int64)
    return Found(room, np.empty(packets, FRAME), np.zeros(FEWEST_ROWS, LOSS), counts, np.zeros(1, FRAME))


@kernel
def is_full(found: Found) -> bool:
    """Whether there is no room for one more of each kind."""
    counts = found.counts
    return bool(
        counts[REQUESTS] == len(found.requests)
        or counts[RESPONSES] == len(found.responses)
        or counts[LOSSES] == len(found.losses)
    )


@allocating_kernel
def grown(rows: Records, used: int) -> Records:
    """`rows` if there is room for one more behind the `used` ones, else a copy that has."""
    if used < len(rows):
        return rows
    larger = np.zeros(max(2 * used, FEWEST_ROWS), rows.dtype)
    for row in range(used):
        larger[row] = rows[row]
    return larger


@allocating_kernel
def with_room(found: Found) -> Found:
    """The same with room for one more of each kind."""
    return Found(
        grown(found.requests, found.counts[REQUESTS]),
        grown(found.responses, found.counts[RESPONSES]),
        grown(found.losses, found.counts[LOSSES]),
        found.counts,
        found.blank,
    )


@kernel
def blank_frame(found: Found, frames: Records, kind: int) -> Record:
    """The row behind those of this kind, REQUESTS or RESPONSES, for which there must be room: all zero."""
    frames[found.counts[kind]] = found.blank[0]
    return frames[found.counts[kind]]


@kernel
def close_requests(found: Found, first: int, end: int) -> None:
    """Let the requests [first, end) wait for no answer any more."""
    for i in range(first, end):
        found.requests[i].is_open = 0


@kernel
def report_loss(found: Found, conn: Record, side: int, direction: Record) -> None:
    """Write the range that was skipped, if any, as one loss, for which there must be room."""
    if direction.lost_from == UNKNOWN:
        return
    loss = found.losses[found.counts[LOSSES]]
    loss.connection, loss.direction, loss.stream_offset = conn.index, side, direction.lost_from
    loss.bytes, loss.reason = direction.lost_bytes, direction.lost_reason
    loss.time, loss.packet = direction.lost_time, direction.lost_packet
    direction.lost_from = UNKNOWN
    found.counts[LOSSES] += 1
