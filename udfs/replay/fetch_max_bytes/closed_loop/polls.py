"""How long one application works from one poll() to the next, where the capture shows that it is always at work.

A Java consumer sends the next fetches in the poll() that returns the last records of a response, and then works on
these records beside the fetches. It also reads its sockets in poll() alone, so that a response may be on its way for as
long as the work lasts. The time from a response to the next fetch is then no time of that response's own records. What
shows the work is the time between two calls: if responses waited for the second one, the application was at work until
then on what the first one returned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints

SAME_POLL_US = 300
"""Fetches that are sent within so long of each other are sent in one poll(). On one machine with two cores, fetches of
a poll() were 20 to 200 us apart.
"""
NO_WAIT_US = 500
"""A response that waits no longer than this beyond the shortest wait is taken to have waited for nothing."""
AT_WORK = 0.8
"""An application whose polls and records show at least so much of the time as work is taken to be always at work."""
WAITED = 0.5
"""Responses that came to an application at work waited for the rest of that work, on average for at least so much of
the time between its calls. One that waits for records is woken up by a response, on a busy machine some ms later.
"""
FEWEST_POLLS = 10
"""Fewer calls of poll() say too little."""


class TakenResponses(NamedTuple):
    """Responses with the fetches that follow them, int64[n] each, in the order of these fetches.

    came: us, when the response had come. fetched: us, when the node's next fetch was sent. is_stopped: bool[n], the
    reader stood still before that fetch.
    """

    node: Ints
    came: Ints
    fetched: Ints
    records: Ints
    is_stopped: Bools


class WorkBetweenPolls(NamedTuple):
    """Calls of poll() that returned records, int64[n] each.

    node: of a response that the call returned. records: that it returned. time: us, for how long the application worked
    on them: until the next call; where that waited for a response, as long as on other records, and no longer than
    until the response. shortest_wait_us: the shortest time from a response to a call.
    """

    node: Ints
    records: Ints
    time: Ints
    shortest_wait_us: int


def work_between_polls(taken: TakenResponses) -> WorkBetweenPolls | None:
    """The work of an application that is always at work; None for any other, whose pace polls do not show."""
    if len(taken.fetched) < FEWEST_POLLS:
        return None
    first = np.flatnonzero(np.diff(taken.fetched, prepend=taken.fetched[0] - SAME_POLL_US - 1) > SAME_POLL_US)
    polled_at, came = taken.fetched[first], np.minimum.reduceat(taken.came, first)
    records, is_stopped = np.add.reduceat(taken.records, first), np.logical_or.reduceat(taken.is_stopped, first)
    waits, time = polled_at - came, np.diff(polled_at)
    counts = (records[:-1] > 0) & ~is_stopped[1:]
    is_work = counts & (waits[1:] > waits.min() + NO_WAIT_US)
    until_response = np.maximum(came[1:] - polled_at[:-1], 0)
    worked = time[is_work].sum()
    if is_work.sum() < FEWEST_POLLS or worked < AT_WORK * (worked + until_response[counts & ~is_work].sum()):
        return None
    if waits[1:][is_work].sum() < WAITED * worked:
        return None
    usual = records[:-1] * worked // records[:-1][is_work].sum()
    return WorkBetweenPolls(
        node=taken.node[first][:-1][counts],
        records=records[:-1][counts],
        time=np.where(is_work, time, np.minimum(usual, until_response))[counts],
        shortest_wait_us=max(int(waits.min()), 0),
    )
