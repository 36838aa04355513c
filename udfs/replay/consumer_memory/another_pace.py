"""Messages that take longer or shorter than captured, or come at other times, in the order of their connections."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Floats, Ints, Records, read_only
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.state import Traces


class Line(NamedTuple):
    """Messages by connection, those of a connection in the order in which they came. All arrays are read-only.

    order: int64[n], their indices. is_first: bool[n], the message is the first one of its connection. is_freed:
    bool[n], the memory of a message came back before its connection sent the next request. is_after: bool[n], the
    request was sent when the message before it on the connection was complete.
    """

    order: Ints
    is_first: Bools
    is_freed: Bools
    is_after: Bools


def in_line(traces: Traces) -> Line:
    """The messages by connection."""
    messages, units = traces.messages, traces.traces
    per_unit = units["end_message"] - units["first_message"]
    connection = messages["connection"] + np.repeat(units["first_connection"], per_unit)
    order = np.argsort(connection, kind="stable")
    connection, ordered = connection[order], messages[order]
    held_us, complete_at = ordered["held_us"], ordered["complete_at"]
    next_at = np.append(ordered["requested_at"][1:], NEVER)[: len(order)]
    next_at[ordered["next_request"] == NONE] = NEVER
    is_first = np.append(True, connection[1:] != connection[:-1])[: len(order)]
    is_freed = (held_us != NEVER) & (held_us <= next_at - complete_at)
    is_after = np.append(False, next_at[:-1] >= complete_at[:-1])[: len(order)] & ~is_first
    return Line(read_only(order), read_only(is_first), read_only(is_freed), read_only(is_after))


def times_of(messages: Records, line: Line) -> Ints:
    """How long each message comes and holds memory (us); 0 for one that holds it longer than until the next request of
    its connection: int64[n]. messages: MESSAGE[n].
    """
    took_us = np.zeros(len(messages), np.int64)
    ordered = messages[line.order]
    took = ordered["complete_at"] - ordered["size_known_at"] + ordered["held_us"]
    took_us[line.order] = np.where(line.is_freed, took, 0)
    return took_us


@kernel
def set_pace(at_pace: Records, messages: Records, line: Line, scales: Floats, later_us: Ints) -> None:
    """Set the times of all messages at another pace.

    at_pace: MESSAGE[n], a copy of `messages`, of which the times are written in place. messages: MESSAGE[n], as
    captured. scales: float64[n], how many times as long each takes. later_us: int64[n], how much later than captured
    each comes.

    A message does not come before what its connection brought before is complete, nor before the memory of that is
    given back, if that was so in the capture. One that is late takes no longer to be answered.
    """
    done_at = np.int64(0)
    for i in range(len(line.order)):
        row = line.order[i]
        captured, paced, scale = messages[row], at_pace[row], scales[row]
        coming_us = np.int64(np.rint(scale * (captured.complete_at - captured.size_known_at)))
        held_us = NEVER if captured.held_us == NEVER else np.int64(np.rint(scale * captured.held_us))
        came_at, requested_at = captured.size_known_at + later_us[row], captured.requested_at + later_us[row]
        paced.size_known_at = came_at if line.is_first[i] else max(came_at, done_at)
        paced.requested_at = max(requested_at, done_at) if line.is_after[i] else requested_at
        paced.complete_at = paced.size_known_at + coming_us
        paced.held_us = held_us
        done_at = paced.complete_at + (held_us if line.is_freed[i] else 0)
