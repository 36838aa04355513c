"""Several capture files as one capture: which continue each other, which share packets, and whose clock counts.

A *capture point* is a place at which packets were captured. Its files (`tcpdump -C`, `-G`) follow one another. Packets
that pass two points are captured at both, with clocks that differ. The samples of two files show which packets the
files share (`udfs.capture.fingerprints`), and the times of these packets show how far the clocks are apart.

The packets of all files are put in one order. Packets of the same point keep their order. If two points share packets,
the packets of the second are put a little later: a byte that both have gets its time from the first point, and the
second point fills gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from udfs.capture.file_index import CaptureIndex
from udfs.columns.arrays import Ints

# A file may begin up to this long before the last packet of the file that it follows, because processors deliver
# packets in parallel.
OVERLAP_NS = 10_000_000
# Files share packets if at least this many packets of the smaller sample, and at least this part of it, are in both at
# a steady distance in time.
LEAST_SHARED, LEAST_PART = 4, 0.005
STEADY_NS = 100_000_000
# Packets of the second point are ordered this much later than those of the first, plus half of the range of their
# distances. It is short, because otherwise a request that the first point lost would come after its response.
BEHIND_NS = 20_000
# A packet that is in more files than this is not used to compare them.
MOST_COPIES = 8
FARTHEST_NS = 1 << 61
LAST_NS = 1 << 62
"""The latest time that a packet can have; later ones (beyond the year 2116) become this time, so that sums fit."""


@dataclass(frozen=True)
class FileOrder:
    """How the packets of a file are dated and ordered among those of other files.

    point: number of the capture point, from 0. offset_ns: what is added to the file's times to get times on the clock
    of the first point with which it shares packets. after_ns: no packet is ordered before this time. delay_ns: how much
    later than its time a packet is ordered.
    """

    point: int = 0
    offset_ns: int = 0
    after_ns: int = 0
    delay_ns: int = 0

    def dated(self, times: Ints) -> Ints:
        """The file's times, int64[n] ns, on the clock of the first point; 0, which means no time, stays 0."""
        return np.where(times == 0, 0, _shift_times(times, self.offset_ns)) if self.offset_ns else times

    def ordered(self, latest: Ints) -> Ints:
        """The times by which packets are ordered among those of other files, int64[n] ns.

        latest: int64[n] ns, the latest time in the file up to each packet.
        """
        return np.maximum(_shift_times(latest, self.offset_ns), self.after_ns) + self.delay_ns


def _shift_times(times: Ints, by: int) -> Ints:
    """The times, cut to LAST_NS, plus `by` ns."""
    return np.minimum(times, LAST_NS) + by


ALONE = FileOrder()


@dataclass(frozen=True)
class Shared:
    """Pairs of equal packets in two files, int64[n] each: the files, first < second, and the ns between the times."""

    first: Ints
    second: Ints
    apart: Ints

    def where(self, chosen: np.ndarray) -> Shared:
        """The chosen pairs; chosen: bool[n]."""
        return Shared(self.first[chosen], self.second[chosen], self.apart[chosen])


def in_time_order(indexes: Sequence[CaptureIndex]) -> tuple[CaptureIndex, ...]:
    """The files in the order of their first packets' times; files without times come last. Names do not matter."""

    def key(index: CaptureIndex) -> tuple[bool, int, int, str]:
        return index.first_ts_ns is None, index.first_ts_ns or 0, index.last_ts_ns or 0, index.sha256

    return tuple(sorted(indexes, key=key))


def file_orders(indexes: Sequence[CaptureIndex]) -> tuple[FileOrder, ...]:
    """How each file's packets are ordered among those of all files; indexes: in the order of `in_time_order`."""
    shared = steady_pairs(shared_packets(indexes), [len(index.sample.digests) for index in indexes])
    points = capture_points(indexes, set(zip(shared.first.tolist(), shared.second.tolist(), strict=True)))
    clocks = clocks_of_points(points, shared)
    orders: list[FileOrder] = []
    ends: dict[int, int] = {}
    for index, point in zip(indexes, points, strict=True):
        offset, delay = clocks[point]
        orders.append(FileOrder(point, offset, ends.get(point, 0), delay))
        ends[point] = max(ends.get(point, 0), (index.last_ts_ns or 0) + offset)
    return tuple(orders)


def shared_packets(indexes: Sequence[CaptureIndex]) -> Shared:
    """All pairs of equal packets in the samples of the files."""
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


def steady_pairs(shared: Shared, sizes: Sequence[int]) -> Shared:
    """The pairs with the distance in time that most pairs of their two files have, if these files really share packets.

    That leaves out retransmissions without time stamps, which another file of the same point may have.
    sizes: the size of each file's sample.
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


def capture_points(indexes: Sequence[CaptureIndex], sharing: set[tuple[int, int]]) -> list[int]:
    """The capture point of each file.

    A file belongs to a point if the point's last file ended where it begins, and it shares no packet with the point's
    files. Of several such points it is the one with the most similar name, and then the one that ended last.
    sharing: the pairs of files that share packets.
    """
    points: list[list[int]] = []
    point_of: list[int] = []
    for number, index in enumerate(indexes):
        fitting = [
            (common_prefix_length(index, last := indexes[files[-1]]), last.last_ts_ns or 0, -point)
            for point, files in enumerate(points)
            if not any((file, number) in sharing for file in files) and continues_file(index, indexes[files[-1]])
        ]
        point = -max(fitting)[2] if fitting else len(points)
        if point == len(points):
            points.append([])
        points[point].append(number)
        point_of.append(point)
    return point_of


def common_prefix_length(index: CaptureIndex, other: CaptureIndex) -> int:
    """How many characters at the beginning of two files' paths are the same."""
    pairs = zip(index.path, other.path, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def continues_file(index: CaptureIndex, before: CaptureIndex) -> bool:
    """Whether a file begins where another one ended; true if one of them has no times."""
    if index.first_ts_ns is None or before.last_ts_ns is None:
        return True
    return before.last_ts_ns <= index.first_ts_ns + OVERLAP_NS


def clocks_of_points(points: Sequence[int], shared: Shared) -> list[tuple[int, int]]:
    """(offset_ns, delay_ns) of each point; points: the point of each file.

    Packets go in both directions, so the distance of the clocks is the middle between the extremes of the packets'
    distances.
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
