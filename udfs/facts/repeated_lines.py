"""Finds lines that several request logs of a capture set have, because rotated files overlap or were copied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.tables.steps import REPEATED_LINES
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import bool_values
from udfs.columns.arrow_columns import compute as pc
from udfs.facts.arrow_tables import make_rows

IDENTITY = ("connection", "completed", "correlation_id")
"""Lines of different files with the same values in these columns report the same request."""


@dataclass
class LastRequest:
    """The last request of the previous chunk, and the first file that has it. Empty if there was no previous chunk."""

    request: tuple[object, ...] = ()
    file_no: int = 0


def find_repeated_lines(lines: pa.RecordBatch, last: LastRequest) -> Bools:
    """Which lines report a request that an earlier file of the set has: bool[n]; updates `last`.

    lines: LOGGED_REQUESTS sorted by IDENTITY, then file_no. Lines of one file with the same IDENTITY report different
    requests, because a client need not count its correlation ids up.
    """
    n = lines.num_rows
    if n == 0:
        return np.zeros(0, np.bool_)
    begins = np.zeros(n, np.bool_)
    begins[0] = tuple(lines[name][0].as_py() for name in IDENTITY) != last.request
    for name in IDENTITY:
        begins[1:] |= bool_values(pc.not_equal(lines[name][1:], lines[name][:-1]))
    files = lines["file_no"].to_numpy()
    first = np.maximum.accumulate(np.where(begins, np.arange(n), -1))
    first_file: Ints = np.where(first >= 0, files[first], last.file_no)
    last.request = tuple(lines[name][n - 1].as_py() for name in IDENTITY)
    last.file_no = int(first_file[-1])
    return first_file != files


def repeated_rows(lines: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of REPEATED_LINES for the repeated lines, which no other table has."""
    files, counts = np.unique(lines["file_no"].to_numpy(), return_counts=True)
    return make_rows(REPEATED_LINES, {REPEATED_LINES.file_no: files, REPEATED_LINES.lines: counts})
