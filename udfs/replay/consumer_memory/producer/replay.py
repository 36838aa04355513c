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

from udfs.columns.arrays import Bools, Ints, Records, read_only
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
    Loop,
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


class ProducersReplayed(NamedTuple):
    """Producers in all lanes. outcomes: BUFFER_OUTCOME[units, lanes]. in_loop: bool[units, lanes], the lane is replayed
    in closed loop.

    late: int64[units], how many captured batches the closed loop of the captured settings begins too late; NONE if no
    lane needs the closed loop.
    """

    outcomes: Records
    in_loop: Bools
    late: Ints


def replay_producers(produced: Produced, settings: Records, numbers: Ints) -> ProducersReplayed:
    """Replay producers in every lane. If a lane is replayed in closed loop, this outcome replaces the outcome by
    captured times.

    settings: BUFFER_SETTINGS[lanes]. numbers: int64[n], the numbers of the producers to replay.
    """
    units, lanes, meter = len(produced.producers), len(settings), new_meter(produced.window)
    replayed = ProducersReplayed(
        np.zeros((units, lanes), BUFFER_OUTCOME), np.zeros((units, lanes), np.bool_), np.full(units, NONE)
    )
    for unit in numbers.tolist():
        producer, outcomes = produced.producers[unit], replayed.outcomes[unit]
        batches = produced.batches[producer["first_batch"] : producer["end_batch"]]
        replay_lanes(new_sim(batches, settings, meter, outcomes))
        waits = outcomes["waits"] + outcomes["waits_before"]
        in_loop = (waits > 0) & (producer["share_behind"] >= BUSY)
        in_loop[CAPTURED] = False
        if in_loop.any():
            replayed.in_loop[unit] = in_loop
            replayed.late[unit] = replay_in_loop(produced, unit, settings, meter, replayed)
    return replayed


def replay_in_loop(produced: Produced, unit: int, settings: Records, meter: Meter, replayed: ProducersReplayed) -> int:
    """Replay a producer's lanes that are in closed loop; returns how many batches the captured lane begins too late.

    settings: BUFFER_SETTINGS[lanes].
    """
    lanes, outcomes = np.flatnonzero(replayed.in_loop[unit]), np.zeros(len(settings), BUFFER_OUTCOME)
    loop_lanes(loop_of(produced, unit, settings, meter, outcomes), read_only(np.append(CAPTURED, lanes)))
    replayed.outcomes[unit, lanes] = outcomes[lanes]
    return int(outcomes["late"][CAPTURED])


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


def streams_and_connections(produced: Produced, producer: np.void) -> tuple[Records, Records]:
    """(STREAM[streams], SENDER_CONNECTION[connections]) of a producer, one of produced.producers."""
    streams = slice(int(producer["first_stream"]), int(producer["end_stream"]))
    requests = slice(int(producer["first_request"]), int(producer["end_request"]))
    connection = produced.stream_connections[streams] - producer["first_connection"]
    count = int(producer["end_connection"] - producer["first_connection"])
    numbers = np.arange(count + 1)
    stream_edges = np.searchsorted(connection, numbers)
    request_edges = np.searchsorted(produced.requests["connection"][requests] - producer["first_connection"], numbers)
    connections = new_records(
        SENDER_CONNECTION,
        count,
        first_stream=stream_edges[:-1],
        end_stream=stream_edges[1:],
        first_request=request_edges[:-1],
        end_request=request_edges[1:],
    )
    return new_records(STREAM, len(connection), connection=connection), connections


def loop_of(produced: Produced, unit: int, settings: Records, meter: Meter, outcomes: Records) -> Loop:
    """The closed loop of a producer by its number. settings: BUFFER_SETTINGS[lanes]. outcomes:
    BUFFER_OUTCOME[lanes].
    """
    producer = produced.producers[unit]
    batches = produced.batches[producer["first_batch"] : producer["end_batch"]].copy()
    batches["stream"] -= producer["first_stream"]
    pieces, (streams, connections) = pieces_of(batches), streams_and_connections(produced, producer)
    n = len(pieces)
    return Loop(
        pieces=read_only(pieces),
        batches=read_only(batches),
        requests=read_only(produced.requests[producer["first_request"] : producer["end_request"]]),
        linger_us=np.full(1, producer["linger_us"]),
        settings=read_only(settings),
        waiters=new_waiters(n),
        waiting_since=np.zeros(n, np.int64),
        built=np.zeros(n, BUILT),
        streams=streams,
        connections=connections,
        heap=heap_of(4 * n + 2),  # a piece may wait and begin a batch, which lingers, is answered and is given back
        threads=np.zeros(1, THREADS),
        pool=np.zeros(1, BUFFERS),
        meter=meter,
        outcomes=outcomes,
        nothing=read_only(np.zeros(1, BUFFER_OUTCOME)),
    )
