"""A capture for a notebook: rows of its silver tables as Arrow tables, at once, without Spark and without a lake.

from jobs.open_capture import open_capture
capture = open_capture("kafka.pcap")
capture.rows("exchanges").to_pandas()
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path

import pyarrow as pa

from jobs.captures.capture_rows import capture_rows
from jobs.captures.held_captures import HeldCaptures, hold_captures
from jobs.captures.inputs import resolve_captures
from jobs.captures.pseudonym_key import read_pseudonyms
from jobs.ready_session import compile_meanwhile
from jobs.terminal.wording import quantity
from jobs.version import decoder_version
from schemas.tables.silver import DECODED
from udfs.errors import ArgumentError
from udfs.facts.record_sampling import RecordSampling

TABLES = {table.name: table for table in DECODED}
MOST_BYTES = 1 << 30


@dataclass(frozen=True, eq=False, repr=False)
class OpenCapture:
    """Files that are one capture set; their packets are held in memory."""

    held: HeldCaptures

    def __repr__(self) -> str:
        """What a notebook shows: how much the capture holds, and where to look if files are damaged."""
        indexes = self.held.plan.indexes
        packets = sum(index.counts.packets for index in indexes)
        faults = sum(len(index.faults) for index in indexes)
        faulty = f"; {quantity(faults, 'fault')} of files, which `files` tells" if faults else ""
        return f"<capture {self.capture_id}: {quantity(packets, 'packet')} of {quantity(len(indexes), 'file')}{faulty}>"

    @property
    def capture_id(self) -> str:
        """The id of the capture set, the same as `ingest` gives to these files."""
        return self.held.plan.capture_id

    @property
    def files(self) -> pa.Table:
        """Rows of the table `captures`: what each file holds, and what could not be read."""
        return capture_rows(self.held.plan, decoder_version(self.held.pseudonyms, self.held.records), {})

    def rows(self, table: str) -> pa.Table:
        """The rows of a silver table, in no order: those that `ingest` writes before its gate checks them.
        docs/tables.md describes them. Raises ArgumentError for a table that is not made from packets alone.
        """
        return self.tables(table)[table]

    def tables(self, *names: str) -> Mapping[str, pa.Table]:
        """The rows of several tables by name; of all tables if none is named. Each call decodes the packets once, for
        all its tables. Raises ArgumentError as `rows` does.
        """
        known = tuple(TABLES)
        unknown = sorted({str(name) for name in names if name not in known})
        if unknown:
            raise ArgumentError(
                f"open_capture: there are no rows of {', '.join(unknown)}; there are those of {', '.join(known)}, "
                "named one by one, and those of captures in `files`"
            )
        return {table.name: rows for table, rows in self.held.rows([TABLES[n] for n in names or TABLES]).items()}


def open_capture(
    *captures: Path | str,
    pseudonymise: str | None = None,
    records: bool = False,
    threads: int | None = None,
    most_bytes: int = MOST_BYTES,
) -> OpenCapture:
    """Read captures and frame dumps: files, folders, patterns or URIs, as --captures of `ingest` takes them. Only
    `ingest` reads request logs, and captures that do not fit in memory.

    pseudonymise: a key file, as for --pseudonymise.
    records: also read the records in batches, as `ingest` does for a replay of batch_split.
    threads: how many threads decode; None for as many as there are cores. The rows do not depend on it.
    most_bytes: how many bytes of memory packets may take; the tables made from them take several times as much.

    Raises ArgumentError for arguments of a wrong kind and names that lead to nothing, CaptureError for files that
    cannot be read or take too much memory, and SetupError if the kernels cannot be compiled.
    """
    paths = resolve_captures(_file_names(captures))
    workers = _usable_cores() if threads is None else _whole_number("threads", threads)
    memory = _whole_number("most_bytes", most_bytes)
    key_file = None if pseudonymise is None else _expanded_path("pseudonymise", pseudonymise)
    pseudonyms = read_pseudonyms(key_file, "open_capture: pseudonymise")
    with compile_meanwhile(()):
        pass
    return OpenCapture(hold_captures(paths, pseudonyms, RecordSampling() if records else None, workers, memory))


def _file_names(captures: tuple[object, ...]) -> list[str]:
    if not captures:
        raise ArgumentError("open_capture: no captures given; name files, folders, patterns or URIs")
    return [_expanded_path("a capture", capture) for capture in captures]


def _expanded_path(what: str, value: object) -> str:
    """The path or URI with ~ replaced by the home folder, as a shell does."""
    if not isinstance(value, (str, Path)):
        several = "; give several one by one: open_capture(*PATHS)" if isinstance(value, (list, tuple, set)) else ""
        kind = type(value).__name__  # the value may be a key
        raise ArgumentError(f"open_capture: {what} must be a path, as text or a Path, got {kind}{several}")
    return os.path.expanduser(value)


def _whole_number(name: str, value: object) -> int:
    if not isinstance(value, Integral) or value < 1:
        raise ArgumentError(f"open_capture: {name} must be a whole number, 1 or more, got {value!r}")
    return int(value)


def _usable_cores() -> int:
    """How many cores this process may use; on macOS, which does not tell, how many the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
