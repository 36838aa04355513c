"""What came before each produce request on its connection, and so before its batches were closed."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints
from udfs.columns.time_units import NEVER

MAX_IN_FLIGHT = 5
"""max.in.flight.requests.per.connection by default, and at most with idempotence."""


def before_requests(time: Ints, response: Ints, connection: Ints) -> Ints:
    """The last that surely came before each request was made: int64[n], us, 0 for the first.

    That is the request before it on its connection, for the client makes a request only when the one before is written;
    or the answer to the fifth before it, for no more are in flight. What goes to several brokers is closed together,
    then sent to one after the other (Sender.sendProducerData).
    """
    told, request = np.unique(np.stack([connection, time]), axis=1, return_inverse=True)
    answered = np.zeros(told.shape[1], np.int64)
    answered[request.reshape(-1)] = np.where(response == NEVER, 0, response)
    before = earlier(told[0], told[1], 1)
    in_flight = earlier(told[0], answered, MAX_IN_FLIGHT)
    if (in_flight < told[1]).all():  # else this client may have more in flight
        before = np.maximum(before, in_flight)
    return before[request.reshape(-1)]


def earlier(connection: Ints, values: Ints, by: int) -> Ints:
    """The value of the request so many before each on its connection, 0 where there is none."""
    found = np.zeros(len(values), np.int64)
    same = connection[by:] == connection[:-by]
    found[by:][same] = values[:-by][same]
    return found
