"""Turns lines of request logs into frames like those of captures, but without sizes, places and records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from udfs.capture.chunk_output import LOSS
from udfs.capture.conversation import FOLLOWED_CONNECTION, KAFKA
from udfs.capture.endpoints import logged_connection
from udfs.capture.framing import FRAME
from udfs.capture.packet_chunks import Frames, number_runs, packet_number
from udfs.capture.request_log import LOGGED_REQUESTS
from udfs.capture.segments import DIRECTION
from udfs.columns.arrays import Bytes, Ints, Records
from udfs.columns.arrow_columns import arrow_array, bool_values, gather_batches
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.picking import position_among
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.hashed_names import hash_spans
from udfs.facts.logged_bodies import Texts
from udfs.facts.repeated_lines import LastRequest, find_repeated_lines


@dataclass
class LoggedConnection:
    """The connection that may go on in the next chunk. Its name is empty if there is none."""

    name: str = ""
    state: Records = field(default_factory=lambda: np.zeros(1, FOLLOWED_CONNECTION))


@dataclass(frozen=True)
class LogChunk:
    """Lines of a log, sorted by connection. is_last: whether no lines follow.

    requests: lines that report a request. unreadable: lines that do not. repeated: lines that an earlier file also has.
    """

    requests: pa.RecordBatch
    unreadable: pa.RecordBatch
    repeated: pa.RecordBatch
    is_last: bool


def log_chunks(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> Iterator[LogChunk]:
    """Chunks of LOGGED_REQUESTS with about this many rows or bytes; the last chunk is empty."""
    last = LastRequest()
    for chunk in gather_batches(batches, rows, size):
        named = pc.not_equal(chunk["connection"], "")
        lines = chunk.filter(named)
        again = arrow_array(find_repeated_lines(lines, last))
        yield LogChunk(
            lines.filter(pc.invert(again)), chunk.filter(pc.invert(named)), lines.filter(again), is_last=False
        )
    nothing = pa.RecordBatch.from_pylist([], schema=LOGGED_REQUESTS)
    yield LogChunk(nothing, nothing, nothing, is_last=True)


def int_values(lines: pa.RecordBatch, name: str) -> Ints:
    """A column of whole numbers, UNKNOWN for null: int64[n]."""
    return pc.fill_null(lines[name].cast(pa.int64()), UNKNOWN).to_numpy()


def line_numbers(lines: pa.RecordBatch) -> Ints:
    """The number of each line in the capture set: int64[n]."""
    return packet_number(int_values(lines, "file_no"), int_values(lines, "line_no"))


def connection_runs(names: pa.Array[Any], carried: str) -> tuple[Ints, list[str]]:
    """(for each line, the number of its run of lines with the same connection, int64[lines]; the names of the runs).
    They are numbered by `number_runs`.

    names: the name of each line's connection. carried: the name of the connection that goes on; empty if there is none.
    """
    changes = np.zeros(0, np.int64)
    if len(names) > 1:
        changes = np.flatnonzero(bool_values(pc.not_equal(names[1:], names[:-1]))) + 1
    starts = np.append(np.zeros(min(len(names), 1), np.int64), changes)
    keys = [str(name) for name in names.take(arrow_array(starts)).to_pylist()]
    return number_runs(changes, keys, len(names), carried or None)


def logged_frames(chunk: LogChunk, carried: LoggedConnection, texts: Texts) -> Frames:
    """The chunk's requests and responses as frames; request i is that of line i.

    carried: the connection that may go on; it is updated. texts: where the texts of the frames are stored.
    """
    lines = chunk.requests
    run, names = connection_runs(lines["connection"], carried.name)
    requests, responses = _request_frames(lines, texts), _response_frames(lines)
    responses["connection"] = run[responses["partner"]]
    requests["connection"] = run
    connections = _connections(names, requests, int_values(lines, "completed"), carried)
    before = np.zeros(len(names), np.int64)
    before[: bool(carried.name)] = carried.state["requests"]
    requests["number"] = position_among(run) + before[run]
    ends = [logged_connection(name) for name in names]
    connections["client"] = [client for end in ends if end for client in end[1:]]
    finished = len(names) if chunk.is_last else max(len(names) - 1, 0)
    if names:
        carried.name, carried.state = names[-1], connections[-1:].copy()
    return Frames(
        arena=texts.arena(),
        requests=requests,
        responses=responses,
        losses=np.zeros(0, LOSS),
        connections=connections,
        directions=np.zeros(2 * len(names), DIRECTION),
        endpoints=[end[0] for end in ends if end],
        finished=finished,
    )


def _request_frames(lines: pa.RecordBatch, texts: Texts) -> Records:
    frames = _frames(lines.num_rows)
    answered = bool_values(lines["answered"])
    for name in ("api_key", "api_version", "correlation_id"):
        frames[name] = int_values(lines, name)
    frames["client_id_start"], frames["client_id_length"] = texts.add(lines["client_id"])
    frames["first_time"] = frames["last_time"] = int_values(lines, "completed") - int_values(lines, "taken")
    frames["first_packet"] = frames["last_packet"] = line_numbers(lines)
    frames["awaits_response"] = answered
    frames["partner"] = np.where(answered, np.cumsum(answered) - 1, UNKNOWN)
    return frames


def _response_frames(lines: pa.RecordBatch) -> Records:
    request = np.flatnonzero(bool_values(lines["answered"]))
    frames = _frames(len(request))
    frames["correlation_id"] = int_values(lines, "correlation_id")[request]
    frames["first_time"] = frames["last_time"] = int_values(lines, "completed")[request]
    frames["first_packet"] = frames["last_packet"] = line_numbers(lines)[request]
    frames["partner"] = request
    return frames


def _frames(n: int) -> Records:
    """FRAME[n] with nothing filled in."""
    frames = np.zeros(n, FRAME)
    for name in ("stream_offset", "start", "size", "body_start"):
        frames[name] = UNKNOWN
    return frames


def _connections(names: list[str], requests: Records, completed: Ints, carried: LoggedConnection) -> Records:
    """The connections, FOLLOWED_CONNECTION[n]; the first one goes on from the carried one, if there is one."""
    n = len(names)
    connections = np.zeros(n, FOLLOWED_CONNECTION)
    connections["first_time"], connections["last_time"] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    if carried.name:
        connections[:1] = carried.state
    np.minimum.at(connections["first_time"], requests["connection"], requests["last_time"])
    np.maximum.at(connections["last_time"], requests["connection"], completed)
    connections["requests"] += np.bincount(requests["connection"], minlength=n)
    connections["index"] = connections["run"] = np.arange(n)
    connections["incarnation"] = _name_hashes(names)
    connections["syn_sequence"], connections["protocol"] = UNKNOWN, KAFKA
    return connections


def _name_hashes(names: list[str]) -> Ints:
    """A hash of each name: int64[n]. The index in a name distinguishes connections between the same endpoints."""
    texts = Texts()
    starts, lengths = texts.add(pa.array(names, pa.string()))
    arena: Bytes = texts.arena()
    return hash_spans(arena, starts, lengths)
