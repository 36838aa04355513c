"""Holes between the batches of a log: offsets whose batches compaction has taken out whole.

A batch of many records keeps its offsets when the log cleaner takes some of them; a batch that loses all its records is
gone (LogCleaner.cleanInto). Brokers answer with a slice of the log, so that nothing is between two batches of one
response, nor before the first one and behind the fetch offset. Only record batches (format 2) tell: in the formats
before, messages that compaction took leave holes within wrappers as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfs.columns.arrays import Bools, Ints


@dataclass(frozen=True)
class Slices:
    """What responses show of a partition's log.

    connections: int64[n], in order. exchanges: more than any exchange's number. responses: int64[m], in order, the
    number of each response's connection in `connections` times `exchanges`, and its exchange's. first: int64[m], the
    first offset that the response has. has_holes: some response leaves offsets out between two batches.
    """

    connections: Ints
    exchanges: int
    responses: Ints
    first: Ints
    has_holes: bool


def slices_of(connection: Ints, exchange: Ints, base: Ints, last: Ints) -> Slices:
    """The slices that fetched batches are of. int64[batches]: the exchange of each, and its offsets."""
    connections, of = np.unique(connection, return_inverse=True)
    exchanges = int(exchange.max(initial=0)) + 1
    response = of * exchanges + exchange
    order = np.lexsort((base, response))
    response, base, last = response[order], base[order], last[order]
    follows = response[1:] == response[:-1]
    begins = np.append(np.ones(min(len(response), 1), np.bool_), ~follows)
    return Slices(
        connections, exchanges, response[begins], base[begins], bool((follows & (base[1:] > last[:-1] + 1)).any())
    )


def begins_in_hole(slices: Slices, connection: Ints, exchange: Ints, fetch_offset: Ints) -> Bools:
    """The reads whose response begins behind the fetch offset: bool[reads]."""
    if len(slices.responses) == 0:
        return np.zeros(len(connection), np.bool_)
    of = np.minimum(np.searchsorted(slices.connections, connection), len(slices.connections) - 1)
    response = of * slices.exchanges + exchange
    at = np.minimum(np.searchsorted(slices.responses, response), len(slices.responses) - 1)
    is_shown = (slices.connections[of] == connection) & (slices.responses[at] == response)
    return is_shown & (exchange < slices.exchanges) & (slices.first[at] > fetch_offset)
