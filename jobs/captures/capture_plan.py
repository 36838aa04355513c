"""How the work on a set of captures is divided: ranges of packets to read, and shards of connections to follow."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jobs.captures.capture_index import BUCKETS, RANGE_BYTES, TASKS_OF_A_CORE
from udfs.capture.capture_points import FileOrder, file_orders, in_time_order
from udfs.capture.file_index import CaptureIndex
from udfs.capture.frame_dump import MAGICS
from udfs.capture.packet_ranges import PacketRange
from udfs.capture.packet_walk import CaptureFormat
from udfs.capture.request_log_head import REQUEST_LOG, UTC
from udfs.columns.arrays import stretch_edges
from udfs.errors import CaptureError

SHARD_BYTES = 64 << 20


@dataclass(frozen=True)
class RangesToRead:
    """What is read from files of one kind.

    ranges: the ranges, each with its file's place in the set. tasks: the task of each range. shard_of_bucket: the
    shard of each bucket of connections.
    """

    ranges: tuple[tuple[int, PacketRange], ...]
    tasks: tuple[int, ...]
    shard_of_bucket: npt.NDArray[np.int32]
    shards: int


@dataclass(frozen=True)
class CapturePlan:
    """A capture set, ready to be read: the indexes and orders of its files, by place in the set, and the work to do.

    packets: the work on captures and frame dumps. logs: the work on request logs. copies: places of request logs whose
    content an earlier file of the set has. log_zone: the time zone of request logs whose times name none. continues:
    the id of the set that this one continues, if any.
    """

    capture_id: str
    indexes: tuple[CaptureIndex, ...]
    orders: tuple[FileOrder, ...]
    packets: RangesToRead
    logs: RangesToRead
    copies: frozenset[int]
    log_zone: str
    continues: str | None = None

    @property
    def has_packets(self) -> bool:
        """Whether the facts come from packets; request logs then only add to them."""
        return not self.logs.ranges or any(index.counts.packets for index in self.indexes)

    @property
    def in_order(self) -> bool:
        """Whether packets of a connection are read in the order in which they are followed. Packets of one capture
        point are, since sequence numbers correct their order. Frames have no sequence numbers, so the dumps must have
        them in time order.
        """
        files = dict.fromkeys(file_no for file_no, _ in self.packets.ranges)
        dumps = [index for index in map(self.indexes.__getitem__, files) if index.format in MAGICS.values()]
        one_point = len({self.orders[file_no].point for file_no in files}) == 1
        spans = [(d.first_ts_ns, d.last_ts_ns) for d in dumps if d.first_ts_ns is not None and d.last_ts_ns is not None]
        apart = all(last < first for (_, last), (first, _) in pairwise(spans))
        return one_point and apart and all(dump.rows_by_time for dump in dumps)


def plan_capture(indexes: tuple[CaptureIndex, ...], cores: int, log_zone: str = UTC) -> CapturePlan:
    """Put indexed files in order and divide the work on them for this number of cores.

    Raises CaptureError for frame dumps together with captured packets: what is in both would count twice.
    """
    indexes = in_time_order(indexes)
    logs = [file_no for file_no, index in enumerate(indexes) if index.format == REQUEST_LOG]
    packets = [file_no for file_no, index in enumerate(indexes) if index.format != REQUEST_LOG]
    # Files that are empty or no captures are allowed beside both.
    read = [indexes[file_no] for file_no in packets if indexes[file_no].format != CaptureFormat.NONE]
    dumps = [index.path for index in read if index.format in MAGICS.values()]
    if 0 < len(dumps) < len(read):
        raise CaptureError(
            f"{', '.join(dumps)}: frame dumps cannot be read together with captured packets, because what both have "
            "would count twice. Read them in runs of their own."
        )
    digest = hashlib.sha256("".join(index.sha256 for index in indexes).encode())
    copies = copies_among(indexes, logs)
    return CapturePlan(
        capture_id=digest.hexdigest()[:16],
        indexes=indexes,
        orders=orders_of_files(indexes, packets, logs),
        packets=plan_reading(indexes, packets, cores),
        logs=plan_reading(indexes, [file_no for file_no in logs if file_no not in copies], cores),
        copies=copies,
        log_zone=log_zone,
    )


def copies_among(indexes: Sequence[CaptureIndex], files: Sequence[int]) -> frozenset[int]:
    """Those of the files that have the same content as an earlier file."""
    first: dict[str, int] = {}
    return frozenset(n for n in files if first.setdefault(indexes[n].sha256, n) != n)


def orders_of_files(indexes: Sequence[CaptureIndex], packets: list[int], logs: list[int]) -> tuple[FileOrder, ...]:
    """The order of every file. Files with packets and request logs are ordered separately, and have different capture
    points.
    """
    of_packets, of_logs = (
        file_orders([indexes[file_no] for file_no in files]) if files else () for files in (packets, logs)
    )
    points = 1 + max((order.point for order in of_packets), default=-1)
    orders = dict(zip(packets, of_packets, strict=True))
    orders |= {
        file_no: replace(order, point=order.point + points) for file_no, order in zip(logs, of_logs, strict=True)
    }
    return tuple(orders[file_no] for file_no in range(len(indexes)))


def plan_reading(indexes: Sequence[CaptureIndex], files: Sequence[int], cores: int) -> RangesToRead:
    """The work on some of the files, divided for this number of cores."""
    weights = sum((indexes[file_no].bucket_payload_bytes for file_no in files), np.zeros(BUCKETS, np.int64))
    shards = max(cores, min(int(weights.sum()) // SHARD_BYTES, BUCKETS))
    ranges = tuple((file_no, part) for file_no in files for part in indexes[file_no].ranges)
    tasks = tasks_of_ranges([part.length for _, part in ranges], cores)
    return RangesToRead(ranges, tasks, pack_shards(weights, shards), shards)


def tasks_of_ranges(lengths: Sequence[int], cores: int) -> tuple[int, ...]:
    """The task of each range. Neighbours share a task as long as they are a small part of what is read.

    lengths: the bytes of each range.

    >>> tasks_of_ranges([300, 5, 5, 5], cores=1)
    (0, 1, 1, 1)
    """
    share = min(RANGE_BYTES, sum(lengths) / (TASKS_OF_A_CORE * cores))
    before = stretch_edges(lengths)[:-1]
    tasks: npt.NDArray[np.int64] = np.unique(before // max(share, 1), return_inverse=True)[1]
    return tuple(tasks.tolist())


def pack_shards(weights: npt.NDArray[np.int64], shards: int) -> npt.NDArray[np.int32]:
    """The shard of each bucket: the heaviest bucket first, each to the shard that is lightest so far (LPT); buckets
    without weight to each shard in turn.
    """
    shard_of = (np.arange(len(weights)) % shards).astype(np.int32)
    lightest = [(0, shard) for shard in range(shards)]
    for bucket in np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)].tolist():
        load, shard = heapq.heappop(lightest)
        shard_of[bucket] = shard
        heapq.heappush(lightest, (load + int(weights[bucket]), shard))
    return shard_of
