"""Fits of captured times to amounts of records or bytes: the time for an amount of 0, and the time for the rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Floats, Ints, Records
from udfs.kernels.kernel import allocating_kernel, kernel
from udfs.replay.fetch_max_bytes.closed_loop.state import POINT, first_above
from udfs.replay.shared.line_fit import MOST_SHARE, fit_line


class Timings(NamedTuple):
    """How long each of n amounts took, in time order: int64[n] each. time: us.

    is_behind: bool[n], the amount had come before its time began: the application was still busy with earlier amounts.
    """

    node: Ints
    amount: Ints
    time: Ints
    is_behind: Bools


class PaceCurves(NamedTuple):
    """Running sums of times over running sums of amounts, in captured order: POINT[points], each curve from (0, 0) on.

    first: int64[curves + 1], where each curve begins. A single slope would not do: a client that has just started takes
    its first records more slowly, and the first records that a broker sends may not be in its memory.
    """

    points: Records
    first: Ints


class Sample(NamedTuple):
    """Which rows of Timings count, and in which order.

    share: for `fit_line`, how far from the shortest time to the median the time for an amount of 0 is.
    `fit_application` takes half of it as the quantile of times that gives the time for an amount of 0.
    """

    rows: Ints
    share: float


OF_WAITING = 2.0
"""For a reader at the log's end the share is multiplied by this, and the mean takes the place of the median: an empty
response may need as long as any other. Long times of such a reader are pauses of client and brokers, many ms on a busy
machine, and a pause is not work on records. On a live cluster librdkafka took 3 ms from a response to the next fetch,
with 16 records and with 200 (medians 0.7 ms); a Java client took 7 ms with 16 records and 17 ms with 200.
"""


def sample_as_captured(timings: Timings) -> Sample:
    """All rows, in captured order."""
    return Sample(np.arange(len(timings.node)), MOST_SHARE / 2)


@kernel
def append_curve(points: Records, begin: int, amounts: Ints, times: Floats, slope: float) -> int:
    """Write the curve of some amounts and times from index `begin` on, and return where it ends.

    The times are scaled so that the whole amount takes `slope` us for each unit. points: POINT[n], written in place.
    amounts: int64[m]. times: float64[m], us.
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
    """Each node's time for an amount of 0, float64[nodes] (us), and its curve of the time of amounts beyond that."""
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

    The application can only make that time longer, so the shortest times are nearest to it. A response that waits for
    earlier records (`is_behind`) spends this time while the application works on those, so it does not show it. A node
    all of whose responses wait so has the median of the other nodes, for in another run it may be the first to answer.
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
def fit_waiting(timings: Timings, sample: Sample, nodes: int, is_one_process: bool) -> tuple[Floats, PaceCurves]:
    """The fit for a reader that waits for nearly all that it gets: each node's time for an amount of 0, float64[nodes]
    (us), and the curves of the time that amounts take beyond it.

    The time for an amount of 0 is between the shortest time and the mean. If the nodes are of one process, there is one
    curve for all of them.
    """
    node, amount, time = timings.node[sample.rows], timings.amount[sample.rows], timings.time[sample.rows]
    base, share, shows_one = np.zeros(nodes), min(OF_WAITING * sample.share, 1.0), np.zeros(nodes, np.bool_)
    counts = ~timings.is_behind[sample.rows]
    for n in range(nodes):
        times = time[(node == n) & counts]
        shows_one[n] = len(times) > 0
        if shows_one[n]:
            base[n] = times.min() + share * (times.mean() - times.min())
    if shows_one.any():
        base[~shows_one] = np.median(base[shows_one])
    curve_of = np.zeros(len(node), np.int64) if is_one_process else node
    curves = 1 if is_one_process else nodes
    work, first = time - np.where(counts, base[node], 0.0), np.zeros(curves + 1, np.int64)
    points = np.zeros(len(node) + curves, POINT)
    for curve in range(curves):
        rows = np.flatnonzero(curve_of == curve)
        total = amount[rows].sum()
        slope = max(work[rows].sum(), 0.0) / total if total > 0 else 0.0
        first[curve + 1] = append_curve(points, first[curve], amount[rows], np.maximum(work[rows], 0.0), slope)
    return base, PaceCurves(points[: first[curves]].copy(), first)


@allocating_kernel
def fit_polls(timings: Timings, rows: Ints) -> tuple[float, PaceCurves]:
    """How long a poll() takes an application without work on records (us), and the curve of that work, by the line of
    least squares through the calls. The time without work is at most the lower quartile of the calls' times.

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
    """How long the first `amount` of a curve takes (us). Beyond the curve's end, the average of the curve counts.

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
