"""Batches of which only the produced size is known, in a log that holds them in another.

A topic whose compression.type is not `producer` has its batches in that codec: the broker makes each batch that comes
in another one anew, of the same offsets (LogValidator.buildRecordsAndAssignOffsets of Kafka 4.4).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.time_units import ALWAYS


def has_other_size(batches: Records) -> Bools:
    """The produced record batches whose size in the log is not known, bool[n] of LOG_EVENT[n].

    Where some batch was fetched in a size in which nobody produced it, the broker compresses anew, and what was not
    fetched may have any size. A log that the cleaner has been at shows that by whole batches alone.
    """
    is_new, is_fetched = ~batches["is_old_format"], batches["append_after"] == ALWAYS
    produced, fetched = np.flatnonzero(is_new & ~is_fetched), np.flatnonzero(is_new & is_fetched)
    is_other = np.zeros(len(batches), np.bool_)
    if not len(produced) or not len(fetched):
        return is_other
    whole = fetched[~batches["is_sparse"][fetched]]
    was_produced = are_among(batches, whole, produced, ("position", "last_offset"))
    as_produced = are_among(batches, whole, produced, ("position", "last_offset", "size_bytes"))
    if (was_produced & ~as_produced).any():
        is_other[produced] = ~np.isin(batches["position"][produced], batches["position"][fetched])
    return is_other


def are_among(batches: Records, rows: Ints, others: Ints, names: Sequence[str]) -> Bools:
    """Which of the rows have the same values as any of the other rows: bool[rows]."""
    values = np.stack([batches[name] for name in names], axis=1)
    _, which = np.unique(values[np.concatenate([rows, others])], axis=0, return_inverse=True)
    return np.isin(which[: len(rows)], which[len(rows) :])
