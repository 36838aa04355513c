"""What is needed to decode frames of some versions of a message.

All versions of a message share one layout of columns, so that frames of mixed versions decode in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from schemas.wire.message import Message
from udfs.columns.arrays import Bools, Ints
from udfs.wire.layout import Layout, is_in, lay_out, newest_version
from udfs.wire.message_reader import reader
from udfs.wire.version_columns import ALL_ROWS, IF_TAGGED, NO_ROWS, columns_set

TOP_PARENT = 0
"""The number of the top level's PARENT."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """How to decode frames of some versions of one message.

    `readers` int64[versions]: the address of each version's reader, 0 of a version that is not among them. `unset`
    bool[versions, columns]: those that no row of a version sets, though its rows have their level. `untagged` and
    `settable`, bool[columns]: the columns that fields without tags can set, and those that any field can set.
    `left_out`: the numbers of the columns that some rows of a version set and some do not. `tagged_level` bool[levels]:
    the levels that have rows only where there are tags.
    """

    layout: Layout
    readers: Ints
    unset: Bools
    untagged: Bools
    settable: Bools
    left_out: tuple[int, ...]
    tagged_level: Bools


@cache
def program_for(message: Message, asked: int) -> Program:
    """The program of those versions that the message declares among some, given as the bits of a number."""
    versions = range(newest_version(message.versions) + 1)
    return compile_message(message, tuple(v for v in versions if asked >> v & 1 and is_in(v, message.versions)))


@cache
def compile_message(message: Message, versions: tuple[int, ...]) -> Program:
    """The program of these versions, which the message declares."""
    layout, sets = lay_out(message), columns_set(message)
    readers = np.zeros(len(sets), np.int64)
    for version in versions:
        readers[version] = reader(message, version)
    parents, of_versions = layout.first_column[:-1], sets[list(versions)]
    most = np.max(of_versions, axis=0, initial=NO_ROWS)
    # A field that is tagged only in some versions may bring columns in its tag for which there is no room without it.
    is_tagged_at_times = np.any((of_versions == IF_TAGGED) & (most > IF_TAGGED))
    untagged = most > (NO_ROWS if is_tagged_at_times else IF_TAGGED)
    settable = most > NO_ROWS
    untagged[TOP_PARENT] = settable[TOP_PARENT] = False  # it is the frame's number
    has_level = sets[:, parents[layout.level_of]] != NO_ROWS
    is_left_out = ((sets > NO_ROWS) & (sets < ALL_ROWS))[list(versions)].any(axis=0)
    return Program(
        layout=layout,
        readers=readers,
        unset=has_level & (sets == NO_ROWS) & ~is_left_out,
        untagged=untagged,
        settable=settable,
        left_out=tuple(np.flatnonzero(is_left_out).tolist()),
        tagged_level=most[parents] <= IF_TAGGED,
    )
