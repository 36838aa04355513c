"""How fast a reader and its brokers are, measured from the capture, and how long a simulated one takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Floats, Ints, Records
from udfs.kernels.kernel import allocating_kernel, kernel
from udfs.replay.fetch_max_bytes.closed_loop.polls import TakenResponses, work_between_polls
from udfs.replay.fetch_max_bytes.closed_loop.state import POINT, first_above
from udfs.replay.shared.line_fit import fit_line

LONG_AGO = -(1 << 62)


class PacedFetches(NamedTuple):
    """A reader's answered fetches, int64[fetches] each; those of a node lie together in the order of their times (us).

    node: of each. records, size: of the response. ready_at: when there was enough of what it returned for the broker to
    answer, at the latest; NEVER where there never was, 0 or less where it was there before, or nothing was returned.
    is_stopped: bool[fetches], the reader stood still before this fetch, which says nothing about its pace. max_wait_us:
    the longest wait that the fetch allows.
    """

    node: Ints
    request: Ints
    response: Ints
    records: Ints
    size: Ints
    ready_at: Ints
    is_stopped: Bools
    max_wait_us: Ints


class PaceCurves(NamedTuple):
    """Running sums of times over running sums of amounts, in captured order: POINT[points], each from (0, 0) on.

    first: int64[curves + 1], where each begins. They are curves, for a client that has just started takes its first
    records more slowly, and what a broker sends first may not be in its memory.
    """

    points: Records
    first: Ints


class ReaderPace(NamedTuple):
    """How long a reader's nodes take (us).

    gap_us, poll_us, answer_us, late_us: float64[nodes], as in NODE. taking: how long the application works on records,
    by how many it had taken before; one curve for the process, or one a node. sending: how long record bytes take to
    arrive, by how many were sent before; one curve a node.
    """

    gap_us: Floats
    poll_us: Floats
    answer_us: Floats
    late_us: Floats
    taking: PaceCurves
    sending: PaceCurves


class Timings(NamedTuple):
    """How long each of n amounts took, in the order of time: int64[n] each. time: us.

    is_behind: bool[n], its time began when an application had done with earlier ones, though it was there before.
    """

    node: Ints
    amount: Ints
    time: Ints
    is_behind: Bools


class CapturedPace(NamedTuple):
    """What the capture shows of a reader's pace.

    taking: records, from a response to the fetch that follows; of an application that is always at work, from the
    poll() that returned them to the next one. sending: record bytes, from a fetch that found them to the response.
    late_us: float64[nodes], as in NODE. is_one_process: one application takes the records of all nodes. is_at_work: it
    always is. shortest_wait_us: then, from a response to a poll(). is_at_log_end: nearly all records came when a fetch
    waited for them.
    """

    taking: Timings
    sending: Timings
    late_us: Floats
    is_one_process: bool
    is_at_log_end: bool
    is_at_work: bool = False
    shortest_wait_us: int = 0


AT_ONCE = 0.1
"""A reader is at the log's end if a smaller share of its fetches with records found them there."""


def observed_pace(fetches: PacedFetches, nodes: int, is_one_process: bool, polls: bool = False) -> CapturedPace:
    """What the capture shows of a reader's pace.

    is_one_process: one application takes the records of all nodes, in the order in which responses come, so that the
    time that a response waits for earlier ones is not its own. polls: it does all by poll(), as a Java consumer does.
    """
    at_once = (fetches.size > 0) & (fetches.ready_at <= fetches.request)
    took = np.maximum(fetches.response - fetches.request, 0)[at_once]
    sending = Timings(fetches.node[at_once], fetches.size[at_once], took, np.zeros(len(took), np.bool_))
    late_us, is_at_log_end = lateness(fetches, nodes), bool(at_once.sum() < AT_ONCE * np.count_nonzero(fetches.size))
    work = work_between_polls(taken_responses(fetches)) if polls else None
    if work is None:
        return CapturedPace(taking_times(fetches, is_one_process), sending, late_us, is_one_process, is_at_log_end)
    taking = Timings(work.node, work.records, work.time, np.zeros(len(work.node), np.bool_))
    return CapturedPace(taking, sending, late_us, is_one_process, is_at_log_end, True, work.shortest_wait_us)


def taken_responses(fetches: PacedFetches) -> TakenResponses:
    """A reader's responses in the order of the fetches that follow them."""
    follows = followed_rows(fetches)
    rows = follows[np.argsort(fetches.request[follows + 1], kind="stable")]
    return TakenResponses(
        fetches.node[rows],
        fetches.response[rows],
        fetches.request[rows + 1],
        fetches.records[rows],
        fetches.is_stopped[rows + 1],
    )


def followed_rows(fetches: PacedFetches) -> Ints:
    """The fetches behind whose responses the node fetches again: int64[n].

    A fetch that was sent before the response had come is left out, for it did not wait for these records.
    """
    request, response = fetches.request, fetches.response
    follows = (fetches.node[1:] == fetches.node[:-1]) & (request[1:] >= request[:-1]) & (request[1:] >= response[:-1])
    return np.flatnonzero(follows)


class Sample(NamedTuple):
    """Which rows of Timings count, and in which order. share: where `fit_line` puts the time of an amount of 0, and
    `fit_application` twice the quantile of the times.
    """

    rows: Ints
    share: float


MOST_SHARE = 0.5
"""The largest share that `fit_line` is given: an empty response is taken to need between the shortest time, and this
far from there to the median. On a live cluster librdkafka was nearer to the shortest time, and Java clients were about
half this far from it.
"""


def sample_as_captured(timings: Timings) -> Sample:
    """All rows in their order."""
    return Sample(np.arange(len(timings.node)), MOST_SHARE / 2)


def pace_of(observed: CapturedPace) -> ReaderPace:
    """The pace of a reader. Under the captured responses its times add up to the captured ones."""
    return pace_of_samples(observed, sample_as_captured(observed.taking), sample_as_captured(observed.sending))


def pace_of_samples(observed: CapturedPace, taking_sample: Sample, sending_sample: Sample) -> ReaderPace:
    """The pace of a reader if the capture had shown these rows of `observed.taking` and `observed.sending`, in this
    order.
    """
    nodes = len(observed.late_us)
    poll_us = np.zeros(nodes)
    if observed.is_at_work:
        gap_us = np.full(nodes, float(observed.shortest_wait_us))
        poll_us[:], taking = fit_polls(observed.taking, taking_sample.rows)
        quickest = quickest_rows(observed.sending, sending_sample.rows, nodes)
        sending_sample = Sample(quickest, sending_sample.share)
    else:
        fit_taking = fit_application if observed.is_one_process else fit_lines_of_nodes
        gap_us, taking = fit_taking(observed.taking, taking_sample, nodes)
    answer_us, sending = fit_lines_of_nodes(observed.sending, sending_sample, nodes)
    has_none = np.bincount(observed.sending.node, minlength=nodes) == 0
    # Where every fetch waited, answers take about as long as those that come when the wait is over.
    answer_us = np.where(has_none, observed.late_us, answer_us)
    return ReaderPace(gap_us, poll_us, answer_us, observed.late_us, taking, sending)


QUICKEST = 0.25
"""How many of the responses of an application that is always at work show what brokers and the network need."""


def quickest_rows(sending: Timings, rows: Ints, nodes: int) -> Ints:
    """Of each node the rows with the shortest times a byte, in their order: int64[n].

    A client that is at work does not read, so that a larger response than its socket can hold is on its way until it
    does. The quickest responses show how long they take without that.
    """
    node, pace = sending.node[rows], sending.time[rows] / np.maximum(sending.amount[rows], 1)
    is_quick = np.zeros(len(rows), np.bool_)
    for n in range(nodes):
        own = node == n
        is_quick[own] = pace[own] <= np.quantile(pace[own], QUICKEST) if own.any() else False
    return rows[is_quick]


def taking_times(fetches: PacedFetches, is_one_process: bool) -> Timings:
    """How long records take from a response to the fetch that follows."""
    request, response, kept = fetches.request, fetches.response, followed_rows(fetches)
    kept = kept[~fetches.is_stopped[kept + 1]]
    kept = kept[np.argsort(response[kept], kind="stable")]
    done, records, came = request[kept + 1], fetches.records[kept], response[kept]
    busy_until = busy_before(done, records) if is_one_process else came
    time = np.maximum(done - np.maximum(came, busy_until), 0)
    return Timings(fetches.node[kept], records, time, busy_until > came)


def busy_before(done: Ints, records: Ints) -> Ints:
    """Until when the application was busy with the records of earlier responses: int64[responses], us.

    done: int64[responses], us, when it was done with each, in the order of responses. records: int64[responses].
    """
    until = np.maximum.accumulate(np.where(records > 0, done, LONG_AGO))
    return np.concatenate([np.full(1, LONG_AGO), until[:-1]])[: len(done)]


def lateness(fetches: PacedFetches, nodes: int) -> Floats:
    """How long after the longest wait a response comes that was waited for so long: the median of each node,
    float64[nodes], us.
    """
    over_at = fetches.request + fetches.max_wait_us
    is_late = ((fetches.size == 0) | (fetches.ready_at > over_at)) & (fetches.response >= over_at)
    late_us = np.zeros(nodes)
    for node in np.unique(fetches.node[is_late]).tolist():
        late_us[node] = np.median((fetches.response - over_at)[is_late & (fetches.node == node)])
    return late_us


@kernel
def append_curve(points: Records, begin: int, amounts: Ints, times: Floats, slope: float) -> int:
    """Write the curve of some amounts and times behind `begin` points, so that it ends at `slope` a unit; returns where
    it ends.

    points: POINT[n]. amounts: int64[m]. times: float64[m], us.
    """
    end, took, total = begin + 1, 0.0, 0
    for i in range(len(amounts)):
        if amounts[i] > 0:
            took += times[i]
            total += amounts[i]
            points[end].amount, points[end].time = total, took
            end += 1
    scale = slope * total / took if took > 0 else 0.0
    for point in range(begin, end):
        points[point].time *= scale
    return end


@allocating_kernel
def fit_lines_of_nodes(timings: Timings, sample: Sample, nodes: int) -> tuple[Floats, PaceCurves]:
    """Each node's time for an amount of 0, float64[nodes] (us), and its curve of what amounts take beyond it."""
    node, amount, time = timings.node[sample.rows], timings.amount[sample.rows], timings.time[sample.rows]
    base, first = np.zeros(nodes), np.zeros(nodes + 1, np.int64)
    points = np.zeros(len(node) + nodes, POINT)
    for n in range(nodes):
        amounts, times = amount[node == n], time[node == n]
        base[n], slope = fit_line(amounts, times, sample.share)
        first[n + 1] = append_curve(points, first[n], amounts, np.maximum(times - base[n], 0.0), slope)
    return base, PaceCurves(points[: first[nodes]].copy(), first)


@allocating_kernel
def fit_application(timings: Timings, sample: Sample, nodes: int) -> tuple[Floats, PaceCurves]:
    """Each node's time from a response to the next fetch without work on records, float64[nodes] (us), and the curve of
    the time that one application works on the records of all nodes.

    The application can only make that time longer, so that the shortest are nearest to it. While it works on earlier
    records, a response has this time beside the work. A node none of whose responses shows it has that of the others,
    for in another run it may be the first to answer.
    """
    node, amount, time = timings.node[sample.rows], timings.amount[sample.rows], timings.time[sample.rows]
    is_behind = timings.is_behind[sample.rows]
    base, shows_one, work = np.zeros(nodes), np.zeros(nodes, np.bool_), time.astype(np.float64)
    for n in range(nodes):
        rows = np.flatnonzero((node == n) & ~is_behind)
        shows_one[n] = len(rows) > 0
        if shows_one[n]:
            base[n] = np.quantile(time[rows], sample.share / 2)
            work[rows] -= base[n]
    if shows_one.any():
        base[~shows_one] = np.median(base[shows_one])
    total = amount.sum()
    slope = max(work[amount > 0].sum(), 0.0) / total if total > 0 else 0.0
    work = np.maximum(work, 0.0)
    points, first = np.zeros(len(node) + 1, POINT), np.zeros(2, np.int64)
    first[1] = append_curve(points, 0, amount, work, slope)
    return base, PaceCurves(points[: first[1]].copy(), first)


@allocating_kernel
def fit_polls(timings: Timings, rows: Ints) -> tuple[float, PaceCurves]:
    """How long a poll() takes an application without work on records (us), and the curve of the work: by the line of
    least squares through the calls. A call without work takes no longer than a quarter of the calls take with it.

    rows: int64[n], the calls that count, in this order.
    """
    amount, time = timings.amount[rows], timings.time[rows].astype(np.float64)
    mean = amount.mean()
    spread = ((amount - mean) ** 2).sum()
    rise = ((amount - mean) * (time - time.mean())).sum() / spread if spread > 0 else 0.0
    base = min(max(time.mean() - rise * mean, 0.0), np.quantile(time, 0.25)) if rise > 0 else 0.0
    slope = (time.mean() - base) / mean
    points, first = np.zeros(len(rows) + 1, POINT), np.zeros(2, np.int64)
    first[1] = append_curve(points, 0, amount, np.maximum(time - base, 0.0), slope)
    return base, PaceCurves(points[: first[1]].copy(), first)


@kernel
def time_until(curve: Records, amount: int) -> float:
    """How long the first `amount` of a curve takes (us). Behind the curve's end the average goes on.

    curve: POINT[points].
    """
    end = len(curve)
    i = first_above(curve["amount"], 0, end, amount)
    last = curve[end - 1]
    if i == end:
        average = last.time / last.amount if last.amount > 0 else 0.0
        return last.time + average * (amount - last.amount)
    before, behind = curve[i - 1], curve[i]
    share = (amount - before.amount) / (behind.amount - before.amount)
    return before.time + share * (behind.time - before.time)


@kernel
def time_for_more(curve: Records, done: int, more: int) -> float:
    """How long an amount of `more` takes after an amount of `done` (us). curve: POINT[points]."""
    return time_until(curve, done + more) - time_until(curve, done)
