"""Messages at another pace: they take longer or shorter than captured, or come at other times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Floats, Ints, Records, read_only
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.state import Traces


class ConnectionOrder(NamedTuple):
    """Messages by connection, those of a connection in the order in which they came. All arrays are read-only.

    rows: int64[n], their indices. is_first: bool[n], the message is the first one of its connection. is_freed: bool[n],
    the memory of a message was released before its connection sent the next request. is_after: bool[n], the request was
    sent when the message before it on the connection was complete.
    """

    rows: Ints
    is_first: Bools
    is_freed: Bools
    is_after: Bools


def connection_order(traces: Traces) -> ConnectionOrder:
    """The messages by connection."""
    messages, units = traces.messages, traces.traces
    per_unit = units["end_message"] - units["first_message"]
    connection = messages["connection"] + np.repeat(units["first_connection"], per_unit)
    rows = np.argsort(connection, kind="stable")
    connection, ordered = connection[rows], messages[rows]
    held_us, complete_at = ordered["held_us"], ordered["complete_at"]
    next_at = np.append(ordered["requested_at"][1:], NEVER)[: len(rows)]
    next_at[ordered["next_request"] == NONE] = NEVER
    is_first = np.append(True, connection[1:] != connection[:-1])[: len(rows)]
    is_freed = (held_us != NEVER) & (held_us <= next_at - complete_at)
    is_after = np.append(False, next_at[:-1] >= complete_at[:-1])[: len(rows)] & ~is_first
    return ConnectionOrder(read_only(rows), read_only(is_first), read_only(is_freed), read_only(is_after))


def times_of(messages: Records, order: ConnectionOrder) -> Ints:
    """How long each message takes to arrive and then holds its memory (us); 0 for one that holds it until after the
    next request of its connection: int64[n]. messages: MESSAGE[n].
    """
    took_us = np.zeros(len(messages), np.int64)
    ordered = messages[order.rows]
    took = ordered["complete_at"] - ordered["size_known_at"] + ordered["held_us"]
    took_us[order.rows] = np.where(order.is_freed, took, 0)
    return took_us


@kernel
def set_pace(at_pace: Records, messages: Records, order: ConnectionOrder, scales: Floats, later_us: Ints) -> None:
    """Set the times of all messages at another pace.

    A message does not come before the message before it on its connection is complete. If the capture released the
    memory of that message first, so does this pace. A late request does not make its response late.

    at_pace: MESSAGE[n], a copy of `messages`, of which the times are written in place. messages: MESSAGE[n], as
    captured. scales: float64[n], how many times as long each takes. later_us: int64[n], how much later than captured
    each comes.
    """
    done_at = np.int64(0)
    for i in range(len(order.rows)):
        row = order.rows[i]
        captured, paced, scale = messages[row], at_pace[row], scales[row]
        coming_us = np.int64(np.rint(scale * (captured.complete_at - captured.size_known_at)))
        held_us = NEVER if captured.held_us == NEVER else np.int64(np.rint(scale * captured.held_us))
        came_at, requested_at = captured.size_known_at + later_us[row], captured.requested_at + later_us[row]
        paced.size_known_at = came_at if order.is_first[i] else max(came_at, done_at)
        paced.requested_at = max(requested_at, done_at) if order.is_after[i] else requested_at
        paced.complete_at = paced.size_known_at + coming_us
        paced.held_us = held_us
        done_at = paced.complete_at + (held_us if order.is_freed[i] else 0)
