"""Several capture files as one capture: which continue each other, which saw the same packets, and whose clock counts.

A *capture point* is a place that packets were captured at. Its files (`tcpdump -C`, `-G`) follow one another. Two
points see the packets between them both, by clocks that differ. Which packets two files share is told by their samples
(`udfs.capture.fingerprints`); how far clocks are apart, by the times of those.

The files' packets are put in one order in which those of a point keep theirs. Of two points that share packets, those
of the second come a little later: where both have a byte, the first tells when it was there, and the second fills gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from udfs.capture.file_index import CaptureIndex
from udfs.columns.arrays import Ints

# A file may begin so long before the last packet of the one it follows: processors hand packets over side by side.
OVERLAP_NS = 10_000_000
# Files share packets where so many of the smaller sample, and so large a part of it, are in both at a steady distance.
LEAST_SHARED, LEAST_PART = 4, 0.005
STEADY_NS = 100_000_000
# How far behind the first point's packets those of the next are put, beside half of what their distance varies by: no
# further, or a request that the first point lost would come behind its response.
BEHIND_NS = 20_000
# A packet in more files than this is no ground to compare them by.
MOST_COPIES = 8
FARTHEST_NS = 1 << 61
LAST_NS = 1 << 62
"""The latest time of a packet: later ones (beyond the year 2116) are taken for it, so that times can be added to."""


@dataclass(frozen=True)
class FileOrder:
    """How the packets of a file are dated and ordered among those of the others.

    point: number of the capture point, from 0; offset_ns: added to the file's times, puts them on the clock of the
    first point that it shares packets with; after_ns: no packet is ordered before this time; delay_ns: they are ordered
    so much later than they are dated.
    """

    point: int = 0
    offset_ns: int = 0
    after_ns: int = 0
    delay_ns: int = 0

    def dated(self, times: Ints) -> Ints:
        """The file's times, int64[n] ns, on the clock of the first point; 0, which is no time, stays."""
        return np.where(times == 0, 0, _shifted(times, self.offset_ns)) if self.offset_ns else times

    def ordered(self, latest: Ints) -> Ints:
        """What orders packets among those of other files, by the latest time of the file up to each; int64[n], ns."""
        return np.maximum(_shifted(latest, self.offset_ns), self.after_ns) + self.delay_ns


def _shifted(times: Ints, by: int) -> Ints:
    """The times later by so many ns, those beyond LAST_NS taken for it: they leave room for the sum."""
    return np.minimum(times, LAST_NS) + by


ALONE = FileOrder()


@dataclass(frozen=True)
class Shared:
    """Packets that two files have, int64[n] each: the files, first < second, and the ns between their times."""

    first: Ints
    second: Ints
    apart: Ints

    def where(self, chosen: np.ndarray) -> Shared:
        """Those chosen by bool[n]."""
        return Shared(self.first[chosen], self.second[chosen], self.apart[chosen])


def in_time_order(indexes: Sequence[CaptureIndex]) -> tuple[CaptureIndex, ...]:
    """The files by the time of their first packet, whatever their names; files without times come last."""

    def key(index: CaptureIndex) -> tuple[bool, int, int, str]:
        return index.first_ts_ns is None, index.first_ts_ns or 0, index.last_ts_ns or 0, index.sha256

    return tuple(sorted(indexes, key=key))


def file_orders(indexes: Sequence[CaptureIndex]) -> tuple[FileOrder, ...]:
    """The order of each file's packets among those of all, which come `in_time_order`."""
    shared = steady(shared_packets(indexes), [len(index.sample.digests) for index in indexes])
    points = points_of(indexes, set(zip(shared.first.tolist(), shared.second.tolist(), strict=True)))
    clocks = clocks_of(points, shared)
    orders: list[FileOrder] = []
    ends: dict[int, int] = {}
    for index, point in zip(indexes, points, strict=True):
        offset, delay = clocks[point]
        orders.append(FileOrder(point, offset, ends.get(point, 0), delay))
        ends[point] = max(ends.get(point, 0), (index.last_ts_ns or 0) + offset)
    return tuple(orders)


def shared_packets(indexes: Sequence[CaptureIndex]) -> Shared:
    """All pairs of equal packets in the samples."""
    sizes = [len(index.sample.digests) for index in indexes]
    digests = np.concatenate([index.sample.digests for index in indexes])
    times = np.concatenate([index.sample.times for index in indexes])
    files = np.repeat(np.arange(len(indexes)), sizes)
    order = np.lexsort((files, digests))
    digests, times, files = digests[order], times[order], files[order]
    pairs = [np.empty((3, 0), np.int64)]
    for lag in range(1, min(len(indexes), MOST_COPIES)):
        at = np.flatnonzero(digests[lag:] == digests[:-lag])
        pairs.append(np.stack([files[at], files[at + lag], times[at + lag] - times[at]]))
    first, second, apart = np.concatenate(pairs, axis=1)
    return Shared(first, second, apart)


def steady(shared: Shared, sizes: Sequence[int]) -> Shared:
    """The pairs of those files that truly share packets, with those that are as far apart as most of theirs.

    A retransmission without time stamps, which another file of the same point has, is no such pair.
    """
    keep = np.zeros(len(shared.first), np.bool_)
    keys = shared.first * len(sizes) + shared.second
    order = np.argsort(keys, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        if len(rows) == 0:
            continue
        middle = np.median(shared.apart[rows])
        near = rows[np.abs(shared.apart[rows] - middle) <= STEADY_NS]
        smaller = min(sizes[shared.first[rows[0]]], sizes[shared.second[rows[0]]])
        least = max(LEAST_SHARED, LEAST_PART * smaller, len(rows) / 2)
        keep[near] = len(near) >= least and abs(middle) < FARTHEST_NS
    return shared.where(keep)


def points_of(indexes: Sequence[CaptureIndex], sharing: set[tuple[int, int]]) -> list[int]:
    """The capture point of each file.

    A file goes on where another one ended, if the point's files share no packet with it; of several such points to the
    one whose name is most like its own, then to the one that ended last.
    """
    points: list[list[int]] = []
    found = []
    for number, index in enumerate(indexes):
        fitting = [
            (likeness(index, last := indexes[files[-1]]), last.last_ts_ns or 0, -point)
            for point, files in enumerate(points)
            if not any((file, number) in sharing for file in files) and follows(index, indexes[files[-1]])
        ]
        point = -max(fitting)[2] if fitting else len(points)
        if point == len(points):
            points.append([])
        points[point].append(number)
        found.append(point)
    return found


def likeness(index: CaptureIndex, other: CaptureIndex) -> int:
    """How many characters the paths of two files have in common at their beginning."""
    pairs = zip(index.path, other.path, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def follows(index: CaptureIndex, before: CaptureIndex) -> bool:
    """Whether a file begins where another one ended, as far as their times tell."""
    if index.first_ts_ns is None or before.last_ts_ns is None:
        return True
    return before.last_ts_ns <= index.first_ts_ns + OVERLAP_NS


def clocks_of(points: Sequence[int], shared: Shared) -> list[tuple[int, int]]:
    """(offset_ns, delay_ns) of each point.

    Packets go both ways, so half the way between the extremes of their times' distance is what clocks are apart.
    """
    point_of = np.array(points, np.int64)
    first, second = point_of[shared.first], point_of[shared.second]
    apart = np.where(first < second, shared.apart, -shared.apart)
    lower, higher = np.minimum(first, second), np.maximum(first, second)
    clocks: list[tuple[int, int]] = []
    for point in range(max(points, default=-1) + 1):
        partners, counts = np.unique(lower[higher == point], return_counts=True)
        offset = delay = most = 0
        for partner, count in zip(partners.tolist(), counts.tolist(), strict=True):
            distances = apart[(lower == partner) & (higher == point)]
            low, high = np.quantile(distances, (0.05, 0.95)).astype(np.int64).tolist()
            if count > most:
                most, offset = count, clocks[partner][0] - (low + high) // 2
            delay = max(delay, clocks[partner][1] + (high - low) // 2 + BEHIND_NS)
        clocks.append((offset, delay))
    return clocks
