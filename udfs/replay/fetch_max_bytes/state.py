"""The records that the replay of fetches works on: captured reads, batches, and sums over a reader's fetches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.columns.records import Kind, int_fields
from udfs.columns.time_units import NEVER
from udfs.replay.shared.histogram import BUCKETS

CARRIED: Kind = np.dtype(
    [
        ("response_time", np.int64),  # us; NEVER if no response came
        ("fetch_offset", np.int64),
        ("response_bound", np.int64),  # the high_watermark or last_stable_offset in the response, or NONE
        ("returned_bytes", np.int64),  # record bytes in the response; NONE if no response came
        ("available_low", np.int64),  # the fewest bytes that could be read
        ("available_high", np.int64),  # the most bytes that could be read
        ("first_append", np.int64),  # us: the earliest append of the first batch beyond available_low, or NEVER
        ("available_first", np.int64),  # bytes that could be read with that batch
        ("partition", np.int32),
        ("max_wait_ms", np.int32),
        ("max_bytes", np.int32),  # of the request
        ("min_bytes", np.int32),
        ("partition_max_bytes", np.int32),
        ("throttle_ms", np.int32),  # throttle_time_ms of the response
        ("api_version", np.int16),
        ("profile", np.int8),  # whose rules the client's software follows, or NONE
        ("in_session", np.int8),  # 1: the fetch belongs to a session or opens one (KIP-227); NONE: it cannot
        ("opens_session", np.bool_),  # the fetch names all its partitions and asks for a session
        ("readable_known", np.bool_),  # all partitions that the fetch wanted are known
        ("redirected", np.bool_),  # to another replica; or it had an error, or the follower had to truncate
        ("sent_to_replica", np.bool_),  # redirected to another replica (KIP-392)
        ("may_be_remote", np.bool_),  # what was read may have been in remote storage (KIP-405)
        ("refused", np.bool_),  # the response has a top-level error
        ("throttled", np.bool_),  # the broker held the response back because of a quota
        ("bound_known", np.bool_),  # it is known up to which offset the read could go
        ("log_known", np.bool_),  # all batches up to that offset are known
        ("is_converted", np.bool_),  # the broker answered in another format than that of its log
        ("is_compacted", np.bool_),  # compaction took records out of the log
        ("is_truncated", np.bool_),  # batches may have been there that a later leader's log does not have
        ("segment_may_end", np.bool_),  # a segment may end among the readable batches, as this or one other read shows
    ]
)
"""A read as packed in a row of READS: what its columns do not have of the request for a partition, of the response, and
of the log at that time."""

READ: Kind = np.dtype(
    [
        *((name, CARRIED[name]) for name in CARRIED.names or ()),
        ("connection_id", np.int64),
        ("exchange_no", np.int64),
        ("request_time", np.int64),  # us
        ("first_size", np.int64),  # sizes of the batches from the fetch offset on: sizes[first_size:end_size]
        ("end_size", np.int64),
        ("number", np.int64),  # of the partition, among the reader's partitions
        ("limits_row", np.int64),  # of the limits: 0, or the row of a broker with limits of its own
    ],
    align=True,
)
"""A read of a partition. A fetch's reads are next to each other, in the order in which the broker reads."""

READABLE_BATCH = int_fields(
    "base_offset",
    "last_offset",
    "size",  # bytes
    "records",  # that its reader can be given
    "appended_after",  # us: the append came after this time; ALWAYS if no produce request shows it
    "appended_before",  # us: the append came before this time; or NEVER
)
"""A batch of a partition's log, with the times that say whether a read can return it."""

ANSWER = int_fields(
    "returned",  # bytes
    "cut_tail",  # bytes of a batch that is cut at the end
    "overrides",  # 1: a first batch that is larger than the limits
    "unknown",  # 1: the answer depends on batches that are not known
    "took_all",  # 1: no limit ended the read, so it would have returned more if there had been more
)
"""What a read returns in a lane."""

PARTITION_SUMS = int_fields(
    "requests",
    "available",  # bytes that each request could have got
    "returned",  # bytes
    "empty",  # requests that got nothing although there were records
    "waiting",  # length of the current run of such requests
    "waiting_since",  # us: when the first request of that run came, or NEVER
    "longest_requests",  # length of the longest run of such requests
    "longest_us",  # the longest time that a run lasted
    "overrides",
    "cut_tail",  # bytes
    "unknown",
)
"""Sums of what a reader's requests got of a partition in a lane."""

RESPONSES = int_fields(
    "largest",  # bytes
    "overrides",  # responses with a first batch that is larger than the limits
    "unknown",  # responses that depend on batches that are not known
)
"""Sums over a reader's responses in a lane."""


class Sums(NamedTuple):
    """Sums over a reader's fetches: PARTITION_SUMS[partitions, lanes], RESPONSES[lanes], and a histogram of the sizes
    of responses with records, int64[lanes, BUCKETS].
    """

    partitions: Records
    responses: Records
    sizes: Ints


def no_sums(partitions: int, lanes: int) -> Sums:
    """The sums before the first fetch."""
    return Sums(
        new_sums(partitions, lanes), np.zeros(lanes, RESPONSES), np.zeros((lanes, BUCKETS), np.int64)
    )  # fmt: skip


def new_sums(partitions: int, lanes: int) -> Records:
    """The sums of partitions of which nothing was read: PARTITION_SUMS[partitions, lanes]."""
    sums = np.zeros((partitions, lanes), PARTITION_SUMS)
    sums["waiting_since"] = NEVER
    return sums
