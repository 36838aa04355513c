"""How to decode frames of some versions of a message.

All versions of a message share one layout of columns, so that frames of mixed versions decode in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from schemas.wire.message import Message
from udfs.columns.arrays import Bools
from udfs.wire.frame_loop import VersionReaders
from udfs.wire.layout import MessageLayout, is_version_in, message_layout, newest_version
from udfs.wire.message_reader import reader_address
from udfs.wire.version_columns import ALL_ROWS, IF_TAGGED, NO_ROWS, columns_set

TOP_PARENT = 0
"""The number of the column PARENT of the top level."""


@dataclass(frozen=True, slots=True, eq=False)
class DecodingPlan:
    """How to decode frames of some versions of one message.

    layout: that of the message. readers: machine code for the versions. untagged: bool[columns], the columns that
    untagged fields can set. settable: bool[columns], the columns that any field can set. left_out: the numbers of the
    columns that some rows of a version set and others do not. tagged_level: bool[levels], the levels that get rows only
    from tagged fields.
    """

    layout: MessageLayout
    readers: VersionReaders
    untagged: Bools
    settable: Bools
    left_out: tuple[int, ...]
    tagged_level: Bools


@cache
def plan_for(message: Message, version_bits: int) -> DecodingPlan:
    """The plan for those versions that the message declares. version_bits: the versions as bits of a number."""
    versions = range(newest_version(message.versions) + 1)
    return plan_of_versions(
        message, tuple(v for v in versions if version_bits >> v & 1 and is_version_in(v, message.versions))
    )


@cache
def plan_of_versions(message: Message, versions: tuple[int, ...]) -> DecodingPlan:
    """The plan for these versions; the message must declare all of them."""
    layout, sets = message_layout(message), columns_set(message)
    addresses = np.zeros(len(sets), np.int64)
    for version in versions:
        addresses[version] = reader_address(message, version)
    parents, of_versions = layout.first_column[:-1], sets[list(versions)]
    most = np.max(of_versions, axis=0, initial=NO_ROWS)
    # If a field is tagged only in some versions, its columns get room only if a frame has the tag.
    is_tagged_at_times = np.any((of_versions == IF_TAGGED) & (most > IF_TAGGED))
    untagged = most > (NO_ROWS if is_tagged_at_times else IF_TAGGED)
    settable = most > NO_ROWS
    untagged[TOP_PARENT] = settable[TOP_PARENT] = False  # it is the frame's number
    has_level = sets[:, parents[layout.level_of]] != NO_ROWS
    is_left_out = ((sets > NO_ROWS) & (sets < ALL_ROWS))[list(versions)].any(axis=0)
    return DecodingPlan(
        layout=layout,
        readers=VersionReaders(addresses, has_level & (sets == NO_ROWS) & ~is_left_out),
        untagged=untagged,
        settable=settable,
        left_out=tuple(np.flatnonzero(is_left_out).tolist()),
        tagged_level=most[parents] <= IF_TAGGED,
    )
