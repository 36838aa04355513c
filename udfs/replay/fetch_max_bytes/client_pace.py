"""How fast a reader and its broker are, measured from the capture, and the settings of simulated clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Floats, Ints, edges
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_unit import first_above
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.replay.shared.line_fit import fitted_line

DEFAULT_MAX_POLL_RECORDS = 500
LONG_AGO = -(1 << 62)


class ClientLanes(NamedTuple):
    """Settings by lane, int64[lanes]; AS_CAPTURED leaves what the capture shows."""

    min_bytes: Ints
    max_wait_ms: Ints
    max_poll_records: Ints
    us_per_record: Ints
    profile: Ints
    order: Ints


def as_captured_clients(lanes: int) -> ClientLanes:
    """Lanes that change nothing of the client."""
    unchanged = np.full(lanes, AS_CAPTURED)
    polls = np.full(lanes, DEFAULT_MAX_POLL_RECORDS)
    return ClientLanes(unchanged, unchanged, polls, unchanged, unchanged, unchanged)


class Curves(NamedTuple):
    """Running sums of times over running sums of amounts, in captured order.

    Curve c is the points [begin[c], begin[c + 1]) of `amounts`, int64[points], and `times`, float64[points] in us; both
    begin at 0 and rise. begin: int64[curves + 1].
    """

    begin: Ints
    amounts: Ints
    times: Floats


class Pace(NamedTuple):
    """How long a reader's connections and their brokers take (us); gap, answer and late are float64[nodes].

    gap: from a response to the fetch that follows, less what its records take. answer: from a fetch that finds enough
    to its response, less what its record bytes take. late: from the end of the longest wait to an empty response.
    taking: what records take, by how many were taken so far; one curve for the process, or one a node. sending: what
    record bytes take, by how many were sent so far; one curve a node. They are curves, for a client that has just
    started takes its first records more slowly, and what a broker sends first may not be in its memory.
    """

    gap: Floats
    answer: Floats
    late: Floats
    taking: Curves
    sending: Curves


@dataclass(frozen=True)
class Fetches:
    """One connection's answered fetches in time order, int64[fetches] each; `records`, `size` of each response.

    ready: when what it returned was there to be read, at the latest; 0 or less where it was there before. stopped:
    bool[fetches], the reader stood still before this fetch, which says nothing about its pace. wait_us: the longest
    wait that the fetches allow.
    """

    request: Ints
    response: Ints
    records: Ints
    size: Ints
    ready: Ints
    stopped: Bools
    wait_us: int


def measured_pace(nodes: Sequence[Fetches], is_one_process: bool) -> Pace:
    """The pace of a reader's connections. Totals are kept: under the captured answers, times add up to the captured.

    is_one_process: one application takes the records of all connections, in the order in which responses come, so that
    the time that a response waits for earlier ones is not its own.
    """
    followed = [(np.diff(node.request) >= 0) & (node.request[1:] >= node.response[:-1]) & ~node.stopped[1:]
                for node in nodes]  # fmt: skip
    parts = [
        (node.response[:-1][kept], node.request[1:][kept], node.records[:-1][kept])
        for node, kept in zip(nodes, followed, strict=True)
    ]
    lengths = [len(response) for response, _, _ in parts]
    owner = np.repeat(np.arange(len(nodes)), lengths)
    response, done, records = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(response, kind="stable")
    owner, response, done, records = owner[order], response[order], done[order], records[order]
    took = done - (np.maximum(response, busy_before(done, records)) if is_one_process else response)
    took = np.maximum(took, 0)
    gap, taking = lines(owner, records, took, len(nodes), together=is_one_process)
    at_once = [answered_at_once(node) for node in nodes]
    owner = np.repeat(np.arange(len(nodes)), [len(size) for size, _ in at_once])
    size, took = (np.concatenate(columns) for columns in zip(*at_once, strict=True))
    answer, sending = lines(owner, size, took, len(nodes), together=False)
    return Pace(gap, answer, np.array([lateness(node) for node in nodes]), taking, sending)


def busy_before(done: Ints, records: Ints) -> Ints:
    """Until when the application was busy with the records of earlier responses, in the order of responses."""
    until = np.maximum.accumulate(np.where(records > 0, done, LONG_AGO))
    return np.concatenate([np.full(1, LONG_AGO), until[:-1]])[: len(done)]


def answered_at_once(node: Fetches) -> tuple[Ints, Ints]:
    """Size and time (us) of each response whose records were there when they were asked for."""
    at_once = (node.size > 0) & (node.ready <= node.request)
    return node.size[at_once], np.maximum(node.response - node.request, 0)[at_once]


def lateness(node: Fetches) -> float:
    """From the end of the longest wait to an empty response, the median."""
    took = node.response - node.request
    over = (took - node.wait_us)[(node.size == 0) & (took >= node.wait_us)]
    return float(np.median(over)) if len(over) else 0.0


def lines(owner: Ints, amounts: Ints, times: Ints, nodes: int, *, together: bool) -> tuple[Floats, Curves]:
    """Each node's time for an amount of 0, float64[nodes], and the curves of what amounts take beyond it.

    owner: the node of each of the times, which are in order. together: one curve for all nodes, else one a node.
    """
    fits = [fitted_line(amounts[owner == node], times[owner == node]) for node in range(nodes)]
    base, slope = (np.array(column) for column in zip(*fits, strict=True))
    more = np.where(slope[owner] > 0, np.maximum(times - base[owner], 0.0), 0.0)
    total = slope[owner] * amounts
    parts = [np.ones(len(owner), np.bool_)] if together else [owner == node for node in range(nodes)]
    points = [curve(amounts[mine], more[mine], float(total[mine].sum())) for mine in parts]
    ends = edges([len(x) for x, _ in points])
    return base, Curves(ends, *(np.concatenate(columns) for columns in zip(*points, strict=True)))


def curve(amounts: Ints, times: Floats, total: float) -> tuple[Ints, Floats]:
    """Running sums of amounts and of times from (0, 0) on; the times are scaled so that they end at the total."""
    busy = amounts > 0
    so_far, took = np.cumsum(amounts[busy]), np.cumsum(times[busy])
    scale = total / took[-1] if len(took) and took[-1] > 0 else 0.0
    return np.concatenate([np.zeros(1, np.int64), so_far]), np.concatenate([np.zeros(1), took * scale])


@kernel
def time_until(curves: Curves, which: int, amount: int) -> float:
    """How long a curve's first `amount` takes (us); beyond its end, as long as on average."""
    low, high = curves.begin[which], curves.begin[which + 1]
    i = first_above(curves.amounts, low, high, amount)
    last = curves.amounts[high - 1]
    if i == high:
        average = curves.times[high - 1] / last if last > 0 else 0.0
        return curves.times[high - 1] + average * (amount - last)
    share = (amount - curves.amounts[i - 1]) / (curves.amounts[i] - curves.amounts[i - 1])
    return curves.times[i - 1] + share * (curves.times[i] - curves.times[i - 1])


@kernel
def time_of(curves: Curves, which: int, done: int, more: int) -> float:
    """How long so much more takes after what was done (us)."""
    return time_until(curves, which, done + more) - time_until(curves, which, done)
