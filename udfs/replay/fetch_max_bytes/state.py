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
        ("response_time", np.int64),  # us; NEVER where no response came
        ("fetch_offset", np.int64),
        ("response_bound", np.int64),  # high watermark or last stable offset that the response has, or NONE
        ("returned_bytes", np.int64),  # record bytes in the response; NONE where no response came
        ("available_low", np.int64),  # bytes that were there to be read, at least
        ("available_high", np.int64),  # ... and at most
        ("first_append", np.int64),  # us: when the first batch could come that may have been there, else NEVER
        ("available_first", np.int64),  # bytes that were there with that batch
        ("partition", np.int32),
        ("max_wait_ms", np.int32),
        ("max_bytes", np.int32),  # of the request
        ("min_bytes", np.int32),
        ("partition_max_bytes", np.int32),
        ("api_version", np.int16),
        ("profile", np.int8),  # whose rules the client's software follows, or NONE
        ("in_session", np.int8),  # 1: the fetch is of a session or opens one (KIP-227); NONE: it cannot be
        ("opens_session", np.bool_),  # the fetch names all its partitions and asks for a session
        ("readable_known", np.bool_),  # all partitions that the fetch wanted are known
        ("redirected", np.bool_),  # to another replica, or the partition was refused with an error
        ("sent_to_replica", np.bool_),  # redirected to another replica (KIP-392)
        ("may_be_remote", np.bool_),  # what was read may have been in remote storage (KIP-405)
        ("refused", np.bool_),  # the response has a top-level error
        ("throttled", np.bool_),  # the broker held the response back for a quota
        ("bound_known", np.bool_),  # up to where the read could go is known
        ("log_known", np.bool_),  # which batches there were up to that bound is known
        ("is_converted", np.bool_),  # the broker answered in another format than that of its log
        ("is_compacted", np.bool_),  # compaction took records out of the log
        ("is_truncated", np.bool_),  # batches may have been there that a later leader's log does not have
        ("segment_may_end", np.bool_),  # a segment may end in what was there, as one other read or this one shows
    ]
)
"""A read as rows of READS carry it, packed: the request for a partition, the response, and the log at that time, as far
as READS has no columns for them."""

READ: Kind = np.dtype(
    [
        *((name, CARRIED[name]) for name in CARRIED.names or ()),
        ("connection_id", np.int64),
        ("exchange_no", np.int64),
        ("request_time", np.int64),  # us
        ("first_size", np.int64),  # sizes of the batches at the fetch offset and behind: sizes[first_size:end_size]
        ("end_size", np.int64),
        ("number", np.int64),  # of the partition, among those of its reader
    ],
    align=True,
)
"""A read of a partition. A fetch's reads lie together, in the order in which the broker reads."""

READABLE_BATCH = int_fields(
    "base_offset",
    "last_offset",
    "size",  # bytes
    "records",  # that its reader can be given
    "appended_after",  # us, or ALWAYS where no produce request shows it
    "appended_before",  # us, or NEVER
)
"""A batch of a partition's log, with what says whether a read can return it."""

ANSWER = int_fields(
    "returned",  # bytes
    "cut_tail",  # bytes of a batch that is cut at the end
    "overrides",  # 1: a first batch that is larger than the limits
    "unknown",  # 1: depends on batches that are not known
)
"""What a read returns in a lane."""

PARTITION_SUMS = int_fields(
    "requests",
    "available",  # bytes: what each request could have got
    "returned",  # bytes
    "empty",  # requests that got nothing although there was something
    "waiting",  # how many of the `empty` ones came in a row until now
    "waiting_since",  # us: when the first of these came, or NEVER
    "longest_requests",  # the most `empty` ones in a row
    "longest_us",  # the longest time of such a row
    "overrides",
    "cut_tail",  # bytes
    "unknown",
)
"""Sums over what a reader's requests got of a partition in a lane."""

RESPONSES = int_fields(
    "largest",  # bytes
    "overrides",  # responses with a first batch that is larger than the limits
    "unknown",  # responses that depend on batches that are not known
)
"""Sums over a reader's responses in a lane."""


class Sums(NamedTuple):
    """PARTITION_SUMS[partitions, lanes], RESPONSES[lanes], and how large responses with records are: int64[lanes,
    BUCKETS].
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
