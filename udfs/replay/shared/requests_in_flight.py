"""What came before each produce request on its connection, and so before its batches were closed."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints
from udfs.columns.groups import group_numbers
from udfs.columns.time_units import NEVER

MAX_IN_FLIGHT = 5
"""The default of max.in.flight.requests.per.connection, which is also the most that idempotence allows."""


def before_requests(time: Ints, response: Ints, connection: Ints) -> Ints:
    """The time of the last event that surely came before each request was made: int64[n], us, 0 if there is none.

    That is the request before it on its connection, because the client makes a request only when the one before is
    written; or the response to the fifth request before it, because no more are in flight. Batches for several brokers
    are closed together, and then sent to one broker after the other (Sender.sendProducerData).

    time, response: int64[n], us, when each batch's request was sent and answered; NEVER for no response. connection:
    int64[n]. Batches with the same connection and time belong to one request.
    """
    request, firsts = group_numbers(connection, time)
    answered = np.zeros(len(firsts), np.int64)
    answered[request] = np.where(response == NEVER, 0, response)
    requested, connections = time[firsts], connection[firsts]
    before, in_flight = earlier(connections, requested, 1), earlier(connections, answered, MAX_IN_FLIGHT)
    if (in_flight < requested).all():  # otherwise this client may have more in flight
        before = np.maximum(before, in_flight)
    return before[request]


def earlier(connection: Ints, values: Ints, by: int) -> Ints:
    """The value of the request that is `by` requests before each on its connection, 0 if there is none:
    int64[requests].

    connection: int64[requests], rising. values: int64[requests].
    """
    before = np.zeros(len(values), np.int64)
    same = connection[by:] == connection[:-by]
    before[by:][same] = values[:-by][same]
    return before
