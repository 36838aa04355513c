"""A producer's closed loop before anything happens: what its threads append, in pieces, and where that goes."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Records, read_only
from udfs.columns.arrays import edges as edges_of
from udfs.columns.records import records_of
from udfs.columns.time_units import US_PER_MS
from udfs.replay.consumer_memory.producer.batches import Produced
from udfs.replay.consumer_memory.producer.buffer_pool import BUFFERS, new_waiters
from udfs.replay.consumer_memory.producer.state import BUILT, CONNECTION, PIECE, STREAM, THREADS, Loop, heap_of
from udfs.replay.consumer_memory.usage import Meter
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

MOST_PIECES, MOST_PIECES_OF_BATCH = 1 << 20, 64


def pieces_of(batches: Records) -> Records:
    """PIECE[pieces], in the order of time: batches in pieces of about as many records, evenly from the first record's
    time to the last one's. batches: BATCH[n].
    """
    n, time = len(batches), batches["appended_at"]
    most = int(np.clip(MOST_PIECES // max(n, 1), 1, MOST_PIECES_OF_BATCH))
    count = np.clip(batches["records"], 1, most)
    first, batch = edges_of(count), np.repeat(np.arange(n), count)
    place = np.arange(first[-1]) - first[batch]
    last_at = np.maximum(batches["filled_at"] - US_PER_MS, time)
    due_at = time[batch] + (last_at - time)[batch] * place // np.maximum(count - 1, 1)[batch]
    whole = np.maximum(batches["size"] - RECORD_BATCH_OVERHEAD, 1)[batch]
    size = whole * (place + 1) // count[batch] - whole * place // count[batch]
    pieces = records_of(PIECE, len(batch), due_at=due_at, size=size, batch=batch, is_first=place == 0)
    return pieces[np.argsort(due_at, kind="stable")]


def connections_of(produced: Produced, producer: np.void) -> tuple[Records, Records]:
    """(STREAM[streams], CONNECTION[connections]) of a producer, one of produced.producers."""
    streams = slice(int(producer["first_stream"]), int(producer["end_stream"]))
    requests = slice(int(producer["first_request"]), int(producer["end_request"]))
    connection = produced.stream_connections[streams] - producer["first_connection"]
    count = int(producer["end_connection"] - producer["first_connection"])
    numbers = np.arange(count + 1)
    stream_edges = np.searchsorted(connection, numbers)
    request_edges = np.searchsorted(produced.requests["connection"][requests] - producer["first_connection"], numbers)
    connections = records_of(
        CONNECTION,
        count,
        first_stream=stream_edges[:-1],
        end_stream=stream_edges[1:],
        first_request=request_edges[:-1],
        end_request=request_edges[1:],
    )
    return records_of(STREAM, len(connection), connection=connection), connections


def loop_of(produced: Produced, unit: int, settings: Records, meter: Meter, outcomes: Records) -> Loop:
    """The closed loop of a producer by its number. settings: BUFFER_SETTINGS[lanes]. outcomes: OUTCOME[lanes]."""
    producer = produced.producers[unit]
    batches = produced.batches[producer["first_batch"] : producer["end_batch"]].copy()
    batches["stream"] -= producer["first_stream"]
    pieces, (streams, connections) = pieces_of(batches), connections_of(produced, producer)
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
        heap=heap_of(4 * n + 2),  # a piece may wait, and begin a batch, which lingers, is answered and given back
        threads=np.zeros(1, THREADS),
        pool=np.zeros(1, BUFFERS),
        meter=meter,
        outcomes=outcomes,
    )
