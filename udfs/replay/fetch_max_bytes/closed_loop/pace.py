"""How fast a reader and its brokers are: measured from the capture, to time the reader that the closed loop replays."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Floats, Ints
from udfs.replay.fetch_max_bytes.closed_loop.pace_fits import (
    PaceCurves,
    Sample,
    Timings,
    fit_application,
    fit_lines_of_nodes,
    fit_polls,
    fit_waiting,
    sample_as_captured,
)
from udfs.replay.fetch_max_bytes.closed_loop.polls import TakenResponses, work_between_polls

LONG_AGO = -(1 << 62)


class PacedFetches(NamedTuple):
    """A reader's answered fetches, int64[fetches] each. The fetches of a node are next to each other, in time order.

    node: the node that sent the fetch. request, response: when each was sent (us). records, size: record count and
    record bytes of the response. ready_at: the latest time (us) at which enough of the returned bytes could be read for
    the broker to answer; NEVER if the response has too few bytes for that, 0 or less if these bytes were there from the
    beginning or nothing was returned. is_stopped: bool[fetches], the reader stood still before this fetch, so the time
    before it says nothing about the reader's pace. max_wait_us: the fetch's max_wait.
    """

    node: Ints
    request: Ints
    response: Ints
    records: Ints
    size: Ints
    ready_at: Ints
    is_stopped: Bools
    max_wait_us: Ints


class ReaderPace(NamedTuple):
    """How long a reader's nodes take (us).

    gap_us, start_us, poll_us, answer_us, late_us: float64[nodes], as in NODE. taking: how long the application works on
    records, as a function of the records that it took before; one curve for the process, or one for each node. sending:
    how long record bytes take to arrive, as a function of the bytes that were sent before; one curve for each node.
    """

    gap_us: Floats
    start_us: Floats
    poll_us: Floats
    answer_us: Floats
    late_us: Floats
    taking: PaceCurves
    sending: PaceCurves


class CapturedPace(NamedTuple):
    """What the capture shows of a reader's pace.

    taking: for each response its records and the time from the response to the node's next fetch. If the application is
    always at work: for each poll() the records that it returned and the time until the next poll(). sending: record
    bytes, and the time from a fetch that found them to the response. If the reader is at the log's end, also the time
    from the end of a fetch's max_wait to the response. late_us: float64[nodes], as in NODE. quick_us: float64[nodes],
    the lower quartile of the times of each node's fetches with records, waits included. quick_byte_us: float64[nodes],
    us, the time for a byte that a quarter of a node's bytes did not exceed, waits included. is_one_process: one
    application takes the records of all nodes. is_at_work: that application is always at work. shortest_wait_us: if so,
    the shortest time from a response to a poll(). first_waits_us: float64[nodes], if so, the time from a node's first
    response to the first poll(), 0 for a node that this poll() did not ask again. is_at_log_end: nearly all records
    came while a fetch waited for them.
    """

    taking: Timings
    sending: Timings
    late_us: Floats
    quick_us: Floats
    quick_byte_us: Floats
    first_waits_us: Floats
    is_one_process: bool
    is_at_log_end: bool
    is_at_work: bool = False
    shortest_wait_us: int = 0


AT_ONCE = 0.1
"""A reader is at the log's end if less than this share of its fetches with records found these records at once."""


def observed_pace(fetches: PacedFetches, nodes: int, is_one_process: bool, polls: bool = False) -> CapturedPace:
    """What the capture shows of a reader's pace.

    is_one_process: one application takes the records of all nodes, in the order in which the responses come. The time
    that a response waits for earlier ones is then not counted as its own. polls: the reader does everything in poll(),
    as a Java consumer does.
    """
    at_once = (fetches.size > 0) & (fetches.ready_at <= fetches.request)
    is_at_log_end = bool(at_once.sum() < AT_ONCE * np.count_nonzero(fetches.size))
    sending = answer_times(fetches, at_once, is_at_log_end)
    late_us, first_waits_us = lateness(fetches, nodes), np.zeros(nodes)
    quick_us, quick_byte_us = quick_times(fetches, nodes), quick_byte_times(fetches, nodes)
    work = work_between_polls(taken_responses(fetches)) if polls else None
    if work is None:
        taking = taking_times(fetches, is_one_process)
        return CapturedPace(
            taking, sending, late_us, quick_us, quick_byte_us, first_waits_us, is_one_process, is_at_log_end
        )
    first_waits_us[work.first_nodes] = work.first_wait_us
    taking = Timings(work.node, work.records, work.time, np.zeros(len(work.node), np.bool_))
    return CapturedPace(
        taking, sending, late_us, quick_us, quick_byte_us, first_waits_us, is_one_process, is_at_log_end, True,
        work.shortest_wait_us,
    )  # fmt: skip


def taken_responses(fetches: PacedFetches) -> TakenResponses:
    """A reader's responses, in the order of the fetches that follow them."""
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
    """The fetches after whose response the node sent another fetch, as indices: int64[n].

    If the node sent its next fetch before the response came, the fetch is left out, for the next one did not wait for
    these records.
    """
    request, response = fetches.request, fetches.response
    follows = (fetches.node[1:] == fetches.node[:-1]) & (request[1:] >= request[:-1]) & (request[1:] >= response[:-1])
    return np.flatnonzero(follows)


def pace_of(observed: CapturedPace) -> ReaderPace:
    """The pace of a reader. With the captured responses, its times add up to the captured times."""
    return pace_of_samples(observed, sample_as_captured(observed.taking), sample_as_captured(observed.sending))


def pace_of_samples(observed: CapturedPace, taking_sample: Sample, sending_sample: Sample) -> ReaderPace:
    """The pace that a reader would have had if the capture had shown these rows of `observed.taking` and
    `observed.sending`, in the order of the samples.
    """
    nodes = len(observed.late_us)
    poll_us = np.zeros(nodes)
    if observed.is_at_work:
        gap_us = np.full(nodes, float(observed.shortest_wait_us))
        poll_us[:], taking = fit_polls(observed.taking, taking_sample.rows)
        quickest = quickest_rows(observed.sending, sending_sample.rows, nodes)
        sending_sample = Sample(quickest, sending_sample.share)
    elif observed.is_at_log_end:
        gap_us, taking = fit_waiting(observed.taking, taking_sample, nodes, observed.is_one_process)
    else:
        fit_taking = fit_application if observed.is_one_process else fit_lines_of_nodes
        gap_us, taking = fit_taking(observed.taking, taking_sample, nodes)
    if observed.is_at_log_end:
        answer_us, sending = fit_waiting(observed.sending, sending_sample, nodes, False)
        answer_us = np.minimum(answer_us, observed.quick_us)
        sending = no_slower_than(sending, observed.quick_byte_us)
    else:
        answer_us, sending = fit_lines_of_nodes(observed.sending, sending_sample, nodes)
    has_none = np.bincount(observed.sending.node, minlength=nodes) == 0
    # If every fetch of a node waited, an answer is taken to need as long as an answer at the end of max_wait.
    answer_us = np.where(has_none, observed.late_us, answer_us)
    start_us = np.maximum(observed.first_waits_us - gap_us, 0.0)
    return ReaderPace(gap_us, start_us, poll_us, answer_us, observed.late_us, taking, sending)


QUICKEST = 0.25
"""The share of responses, the quickest ones, that show how long brokers and the network take where the application is
always at work."""


def quickest_rows(sending: Timings, rows: Ints, nodes: int) -> Ints:
    """The rows of each node with the shortest time for a byte, in the order of `rows`: int64[n].

    A client at work does not read its socket, so a response that is larger than the socket's buffer stays on its way
    until the client reads again. The quickest responses show how long a response takes without that delay.
    """
    node, pace = sending.node[rows], sending.time[rows] / np.maximum(sending.amount[rows], 1)
    is_quick = np.zeros(len(rows), np.bool_)
    for n in range(nodes):
        own = node == n
        is_quick[own] = pace[own] <= np.quantile(pace[own], QUICKEST) if own.any() else False
    return rows[is_quick]


def taking_times(fetches: PacedFetches, is_one_process: bool) -> Timings:
    """For each response its records, and the time from the response to the node's next fetch."""
    request, response, kept = fetches.request, fetches.response, followed_rows(fetches)
    kept = kept[~fetches.is_stopped[kept + 1]]
    kept = kept[np.argsort(response[kept], kind="stable")]
    done, records, came = request[kept + 1], fetches.records[kept], response[kept]
    busy_until = busy_before(done, records) if is_one_process else came
    time = np.maximum(done - np.maximum(came, busy_until), 0)
    return Timings(fetches.node[kept], records, time, busy_until > came)


def busy_before(done: Ints, records: Ints) -> Ints:
    """Until when the application was busy with the records of earlier responses: int64[responses], us.

    done: int64[responses], us, when the application was done with each response, in the order of responses. records:
    int64[responses].
    """
    until = np.maximum.accumulate(np.where(records > 0, done, LONG_AGO))
    return np.concatenate([np.full(1, LONG_AGO), until[:-1]])[: len(done)]


def answer_times(fetches: PacedFetches, at_once: Bools, is_at_log_end: bool) -> Timings:
    """How long answers take. at_once: bool[fetches], the fetches that found records at once.

    A reader at the log's end has few of these or none. For such a reader, answers at the end of max_wait count as well:
    the time from there to the response is about as long.
    """
    over_at = fetches.request + fetches.max_wait_us
    is_late = waited_longest(fetches) & is_at_log_end
    took = np.where(at_once, np.maximum(fetches.response - fetches.request, 0), fetches.response - over_at)
    shown = at_once | is_late
    return Timings(fetches.node[shown], fetches.size[shown], took[shown], np.zeros(np.count_nonzero(shown), np.bool_))


def quick_times(fetches: PacedFetches, nodes: int) -> Floats:
    """The lower quartile of the times of each node's fetches with records, float64[nodes], us; inf if it has none."""
    took, has_records, quick_us = fetches.response - fetches.request, fetches.size > 0, np.full(nodes, np.inf)
    for node in np.unique(fetches.node[has_records]).tolist():
        quick_us[node] = max(np.quantile(took[has_records & (fetches.node == node)], QUICKEST), 0.0)
    return quick_us


def quick_byte_times(fetches: PacedFetches, nodes: int) -> Floats:
    """The time for a byte that a quarter of each node's bytes did not exceed, waits included: float64[nodes], us; inf
    if a node got none.
    """
    took, quick_us = np.maximum(fetches.response - fetches.request, 0), np.full(nodes, np.inf)
    for node in np.unique(fetches.node[fetches.size > 0]).tolist():
        own = (fetches.node == node) & (fetches.size > 0)
        size, pace = fetches.size[own], took[own] / fetches.size[own]
        order = np.argsort(pace, kind="stable")
        quick_us[node] = pace[order[np.searchsorted(np.cumsum(size[order]), QUICKEST * size.sum())]]
    return quick_us


def no_slower_than(curves: PaceCurves, most_us: Floats) -> PaceCurves:
    """The curves, made quicker where they take more than most_us on average for each unit. most_us: float64[curves].

    A reader at the log's end has few responses that show how long bytes take, and pauses of a busy machine are in their
    times. At such a pace it could fall behind the log, take more bytes each time, and never catch up. But a response
    has been sent when it comes, however long its fetch had waited before.
    """
    points = curves.points.copy()
    for curve, (first, end) in enumerate(pairwise(curves.first.tolist())):
        slowest = points[end - 1]["time"] if end > first else 0.0
        most = most_us[curve] * points[end - 1]["amount"] if slowest > 0 else 0.0
        if slowest > most:
            points["time"][first:end] *= most / slowest
    return PaceCurves(points, curves.first)


def waited_longest(fetches: PacedFetches) -> Bools:
    """Which fetches were answered because their max_wait had passed: bool[fetches]."""
    over_at = fetches.request + fetches.max_wait_us
    return ((fetches.size == 0) | (fetches.ready_at > over_at)) & (fetches.response >= over_at)


def lateness(fetches: PacedFetches, nodes: int) -> Floats:
    """The time from the end of max_wait to the response, for fetches that waited so long: the median of each node,
    float64[nodes], us; 0 where a node has no such fetch.
    """
    late, took = waited_longest(fetches), fetches.response - fetches.request - fetches.max_wait_us
    late_us = np.zeros(nodes)
    for node in np.unique(fetches.node[late]).tolist():
        late_us[node] = np.median(took[late & (fetches.node == node)])
    return late_us
