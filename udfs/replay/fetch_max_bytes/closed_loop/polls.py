"""How long an application works from one poll() to the next, if the capture shows that it is always at work.

A Java consumer sends its next fetches in the poll() that returns the last records of a response, and works on these
records while the fetches are under way. It reads its sockets only in poll(), so a response may be on its way for as
long as the work lasts. The time from a response to the next fetch is then not the time of that response's own records.
The time between two calls shows the work: if responses waited for the second call, the application was at work until
then on the records of the first call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints

SAME_POLL_US = 300
"""Fetches that follow each other within this time are taken to be sent in one poll(). On a machine with two cores,
fetches of one poll() were 20 to 200 us apart.
"""
NO_WAIT_US = 500
"""A response that waits no longer than the shortest wait plus this time is taken to have waited for nothing."""
AT_WORK = 0.8
"""An application is taken to be always at work if at least this share of the time between its polls is work."""
WAITED = 0.5
"""If an application is at work, its responses wait for the end of that work: on average at least this share of the time
between two calls. An application that waits for records is woken up by a response, on a busy machine some ms later.
"""
FEWEST_POLLS = 10
"""The fewest calls of poll() that say enough."""


class TakenResponses(NamedTuple):
    """Responses with the fetches that follow them, int64[n] each, in the order of these fetches.

    came: us, when the response had come. fetched: us, when the node's next fetch was sent. records: of the response.
    is_stopped: bool[n], the reader stood still before that fetch.
    """

    node: Ints
    came: Ints
    fetched: Ints
    records: Ints
    is_stopped: Bools


class WorkBetweenPolls(NamedTuple):
    """Calls of poll() that returned records, int64[n] each.

    node: the node of a response that the call returned. records: how many records it returned. time: us, how long the
    application worked on them: until the next call. If the next call waited for a response, it is the average time of
    that many records instead, and at most the time until that response. shortest_wait_us: the shortest time from a
    response to a call. first_wait_us: the time from the first response to the first call, 0 if the reader stood still
    then. The application had no records to work on: it waited for something else, such as the offsets from which it
    reads at other brokers. first_nodes: int64[m], the nodes that the first call asked again.
    """

    node: Ints
    records: Ints
    time: Ints
    shortest_wait_us: int
    first_wait_us: int
    first_nodes: Ints


def work_between_polls(taken: TakenResponses) -> WorkBetweenPolls | None:
    """The work of an application that is always at work; None for any other, because its polls do not show its pace."""
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
        first_wait_us=0 if is_stopped[0] else max(int(waits[0]), 0),
        first_nodes=taken.node[: first[1]],
    )
