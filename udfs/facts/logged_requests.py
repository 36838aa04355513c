"""Lines of request logs as the frames they were, but for what a log does not tell: sizes, places, records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from udfs.capture.chunk_output import LOSS
from udfs.capture.conversation import CONNECTION, KAFKA
from udfs.capture.endpoints import logged_connection
from udfs.capture.framing import FRAME
from udfs.capture.packet_chunks import Frames, number_runs, packet_number
from udfs.capture.request_log import LOGGED_REQUESTS
from udfs.capture.segments import DIRECTION, UNKNOWN
from udfs.columns.arrays import Bytes, Ints, Records
from udfs.columns.arrow_columns import array_of, flags, gathered_batches
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.picking import position_among
from udfs.facts.hashed_names import hash_spans
from udfs.facts.logged_bodies import Texts
from udfs.facts.repeated_lines import KeptLine, repeated


@dataclass
class LoggedConnection:
    """The connection that may go on in the next chunk; no name: there is none."""

    name: str = ""
    state: Records = field(default_factory=lambda: np.zeros(1, CONNECTION))


@dataclass(frozen=True)
class LogChunk:
    """Lines of a log, sorted by connection. is_last: none follow.

    requests: those that tell a request; unreadable: those that do not; repeated: those that an earlier file has too.
    """

    requests: pa.RecordBatch
    unreadable: pa.RecordBatch
    repeated: pa.RecordBatch
    is_last: bool


def log_chunks(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> Iterator[LogChunk]:
    """Chunks of LOGGED_REQUESTS of about so many rows or bytes, with an empty one that ends them."""
    kept = KeptLine()
    for chunk in gathered_batches(batches, rows, size):
        named = pc.not_equal(chunk["connection"], "")
        lines = chunk.filter(named)
        again = array_of(repeated(lines, kept))
        yield LogChunk(
            lines.filter(pc.invert(again)), chunk.filter(pc.invert(named)), lines.filter(again), is_last=False
        )
    nothing = pa.RecordBatch.from_pylist([], schema=LOGGED_REQUESTS)
    yield LogChunk(nothing, nothing, nothing, is_last=True)


def ints(lines: pa.RecordBatch, name: str) -> Ints:
    """A column of numbers, UNKNOWN for null."""
    return pc.fill_null(lines[name].cast(pa.int64()), UNKNOWN).to_numpy()


def line_numbers(lines: pa.RecordBatch) -> Ints:
    """Each line's place in the capture set."""
    return packet_number(ints(lines, "file_no"), ints(lines, "line_no"))


def connection_runs(names: pa.Array[Any], carried: str) -> tuple[Ints, list[str]]:
    """`number_runs` lines by the name of their connection."""
    changes = np.zeros(0, np.int64)
    if len(names) > 1:
        changes = np.flatnonzero(flags(pc.not_equal(names[1:], names[:-1]))) + 1
    starts = np.append(np.zeros(min(len(names), 1), np.int64), changes)
    found = [str(name) for name in names.take(array_of(starts)).to_pylist()]
    return number_runs(changes, found, len(names), carried or None)


def frames_of(chunk: LogChunk, carried: LoggedConnection, texts: Texts) -> Frames:
    """The chunk's requests and responses; `carried` is taken over and brought up to date.

    A frame's row is its line's. texts: what the frames' spans are laid into.
    """
    lines = chunk.requests
    run, names = connection_runs(lines["connection"], carried.name)
    requests, responses = _request_frames(lines, texts), _response_frames(lines)
    responses["connection"] = run[responses["partner"]]
    requests["connection"] = run
    connections = _connections(names, requests, ints(lines, "completed"), carried)
    before = np.zeros(len(names), np.int64)
    before[: bool(carried.name)] = carried.state["requests"]
    requests["number"] = position_among(run) + before[run]
    ends = [logged_connection(name) for name in names]
    connections["client"] = [client for end in ends if end for client in end[1:]]
    finished = len(names) if chunk.is_last else max(len(names) - 1, 0)
    if names:
        carried.name, carried.state = names[-1], connections[-1:].copy()
    return Frames(
        texts.arena(), requests, responses, np.zeros(0, LOSS), connections, np.zeros(2 * len(names), DIRECTION),
        [end[0] for end in ends if end], finished,
    )  # fmt: skip


def _request_frames(lines: pa.RecordBatch, texts: Texts) -> Records:
    frames = _frames(lines.num_rows)
    answered = flags(lines["answered"])
    for name in ("api_key", "api_version", "correlation_id"):
        frames[name] = ints(lines, name)
    frames["client_id_start"], frames["client_id_length"] = texts.add(lines["client_id"])
    frames["first_time"] = frames["last_time"] = ints(lines, "completed") - ints(lines, "taken")
    frames["first_packet"] = frames["last_packet"] = line_numbers(lines)
    frames["awaits_response"] = answered
    frames["partner"] = np.where(answered, np.cumsum(answered) - 1, UNKNOWN)
    return frames


def _response_frames(lines: pa.RecordBatch) -> Records:
    request = np.flatnonzero(flags(lines["answered"]))
    frames = _frames(len(request))
    frames["correlation_id"] = ints(lines, "correlation_id")[request]
    frames["first_time"] = frames["last_time"] = ints(lines, "completed")[request]
    frames["first_packet"] = frames["last_packet"] = line_numbers(lines)[request]
    frames["partner"] = request
    return frames


def _frames(n: int) -> Records:
    """Frames of which nothing is known."""
    frames = np.zeros(n, FRAME)
    for name in ("stream_offset", "start", "size", "body_start"):
        frames[name] = UNKNOWN
    return frames


def _connections(names: list[str], requests: Records, completed: Ints, carried: LoggedConnection) -> Records:
    """CONNECTION[n]; the first goes on from the carried one, if there is one."""
    n = len(names)
    found = np.zeros(n, CONNECTION)
    found["first_time"], found["last_time"] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    if carried.name:
        found[:1] = carried.state
    np.minimum.at(found["first_time"], requests["connection"], requests["last_time"])
    np.maximum.at(found["last_time"], requests["connection"], completed)
    found["requests"] += np.bincount(requests["connection"], minlength=n)
    found["index"] = found["run"] = np.arange(n)
    found["incarnation"] = _name_hashes(names)
    found["syn_sequence"], found["protocol"] = UNKNOWN, KAFKA
    return found


def _name_hashes(names: list[str]) -> Ints:
    """Between the same endpoints, the name's index tells one connection from another."""
    texts = Texts()
    starts, lengths = texts.add(pa.array(names, pa.string()))
    arena: Bytes = texts.arena()
    return hash_spans(arena, starts, lengths)
