"""Which lanes of a producer are replayed by its captured times, and which in closed loop.

Captured times show when memory is held as long as no batch has to wait for memory. They also show it in the captured
lane, because they contain that lane's waits. If a batch of a busy producer would wait in another lane, all later
batches come at other times than captured, so the lane is replayed in closed loop. A producer is busy if its requests
were behind others of their connection for some of their time. A producer that is not busy sends its lingering batches
when it waits: these requests are far smaller than any whose time the capture shows, so it is replayed by captured
times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Records, read_only
from udfs.columns.arrays import stretch_edges as edges_of
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import US_PER_MS
from udfs.replay.consumer_memory.producer.batches import Produced
from udfs.replay.consumer_memory.producer.buffer_pool import BUFFERS, new_waiters
from udfs.replay.consumer_memory.producer.captured_times import replay_lanes
from udfs.replay.consumer_memory.producer.state import (
    BUFFER_OUTCOME,
    BUILT,
    PIECE,
    SENDER_CONNECTION,
    STREAM,
    THREADS,
    LoopSim,
    heap_of,
    new_sim,
)
from udfs.replay.consumer_memory.producer.threads import loop_lanes
from udfs.replay.consumer_memory.usage import Meter, new_meter
from udfs.replay.shared.lanes import CAPTURED
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

MOST_PIECES, MOST_PIECES_OF_BATCH = 1 << 20, 64
"""About the most pieces of a producer, and the most pieces of a batch."""
BUSY = 0.1
"""A producer is busy if its requests were behind others for this share of their time under way; see VALIDATION.md."""


class Replayed(NamedTuple):
    """A producer in all lanes. outcomes: BUFFER_OUTCOME[lanes]. in_loop: bool[lanes], the lane is replayed in closed
    loop.

    late: how many captured batches the closed loop of the captured settings begins too late; NONE if no lane needs the
    closed loop.
    """

    outcomes: Records
    in_loop: Bools
    late: int


def replay_producer(sent: Produced, settings: Records, pieces: Records | None = None) -> Replayed:
    """Replay a producer in every lane. If a lane is replayed in closed loop, this outcome replaces the outcome by
    captured times.

    sent: of one producer. settings: BUFFER_SETTINGS[lanes]. pieces: PIECE[n] if the pace is drawn. Captured times
    contain the waits of the captured lane, so it needs no closed loop; at a drawn pace it may.
    """
    outcomes, meter, share_behind = no_outcomes(settings), new_meter(sent.window), sent.producers["share_behind"][0]
    replay_lanes(new_sim(sent.batches, settings, meter, outcomes))
    in_loop = (outcomes["waits"] + outcomes["waits_before"] > 0) & (share_behind >= BUSY)
    in_loop[CAPTURED] &= pieces is not None
    if not in_loop.any():
        return Replayed(outcomes, in_loop, NONE)
    lanes, looped = np.flatnonzero(in_loop), no_outcomes(settings)
    loop = new_loop(sent, pieces_of(sent.batches) if pieces is None else pieces, settings, meter, looped)
    loop_lanes(loop, read_only(np.union1d(CAPTURED, lanes)))
    outcomes[lanes] = looped[lanes]
    return Replayed(outcomes, in_loop, int(looped["late"][CAPTURED]))


def no_outcomes(settings: Records) -> Records:
    """BUFFER_OUTCOME[lanes] before anything has happened. settings: BUFFER_SETTINGS[lanes]."""
    return np.zeros(len(settings), BUFFER_OUTCOME)


def pieces_of(batches: Records) -> Records:
    """The batches in pieces: PIECE[pieces], in time order. The pieces of a batch have about the same size, and are
    evenly spaced between the times of its first and its last record. batches: BUFFERED_BATCH[n].
    """
    n, appended_at = len(batches), batches["appended_at"]
    most = int(np.clip(MOST_PIECES // max(n, 1), 1, MOST_PIECES_OF_BATCH))
    count = np.clip(batches["records"], 1, most)
    first, batch = edges_of(count), np.repeat(np.arange(n), count)
    place = np.arange(first[-1]) - first[batch]
    duration_us = np.maximum(batches["filled_at"] - US_PER_MS - appended_at, 0)
    due_at = appended_at[batch] + duration_us[batch] * place // np.maximum(count - 1, 1)[batch]
    whole = np.maximum(batches["size"] - RECORD_BATCH_OVERHEAD, 1)[batch]
    size = whole * (place + 1) // count[batch] - whole * place // count[batch]
    pieces = new_records(PIECE, len(batch), due_at=due_at, size=size, batch=batch, is_first=place == 0)
    return pieces[np.argsort(due_at, kind="stable")]


def streams_and_connections(sent: Produced) -> tuple[Records, Records]:
    """(STREAM[streams], SENDER_CONNECTION[connections]) of one producer."""
    connection, numbers = sent.stream_connections, np.arange(int(sent.producers["end_connection"][0]) + 1)
    stream_edges = np.searchsorted(connection, numbers)
    request_edges = np.searchsorted(sent.requests["connection"], numbers)
    connections = new_records(
        SENDER_CONNECTION,
        len(numbers) - 1,
        first_stream=stream_edges[:-1],
        end_stream=stream_edges[1:],
        first_request=request_edges[:-1],
        end_request=request_edges[1:],
    )
    return new_records(STREAM, len(connection), connection=connection), connections


def new_loop(sent: Produced, pieces: Records, settings: Records, meter: Meter, outcomes: Records) -> LoopSim:
    """The closed loop of one producer.

    pieces: PIECE[n], from `pieces_of`. settings: BUFFER_SETTINGS[lanes]. outcomes: BUFFER_OUTCOME[lanes].
    """
    (streams, connections), n = streams_and_connections(sent), len(pieces)
    return LoopSim(
        pieces=read_only(pieces),
        batches=read_only(sent.batches),
        requests=read_only(sent.requests),
        linger_us=np.full(1, sent.producers["linger_us"][0]),
        settings=read_only(settings),
        waiters=new_waiters(n),
        waiting_since=np.zeros(n, np.int64),
        built=np.zeros(n, BUILT),
        streams=streams,
        connections=connections,
        heap=heap_of(4 * n + 2),  # a piece may wait and begin a batch, which lingers, is answered and is released
        threads=np.zeros(1, THREADS),
        pool=np.zeros(1, BUFFERS),
        meter=meter,
        outcomes=outcomes,
        no_outcome=read_only(np.zeros(1, BUFFER_OUTCOME)),
    )
