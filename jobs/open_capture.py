"""A capture as a notebook wants it at once: rows of its silver tables as Arrow tables, without Spark and a lake.

from jobs.open_capture import open_capture
capture = open_capture("kafka.pcap")
capture.rows("exchanges").to_pandas()
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from jobs.captures.capture_rows import capture_rows
from jobs.captures.held_captures import HeldCaptures, hold_captures
from jobs.captures.inputs import resolve_captures
from jobs.captures.pseudonym_key import pseudonyms_by
from jobs.session.kernels import compiling
from jobs.version import decoder
from schemas.tables.silver import DECODED
from udfs.errors import ArgumentError
from udfs.facts.asked_records import Asked

TABLES = {table.name: table for table in DECODED}
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class OpenCapture:
    """Files that are one capture set, their packets held in memory."""

    held: HeldCaptures

    @property
    def capture_id(self) -> str:
        """As `ingest` calls the same files."""
        return self.held.plan.capture_id

    @property
    def files(self) -> pa.Table:
        """Rows of the table `captures`: what each file holds, and what of it could not be read."""
        return capture_rows(self.held.plan, decoder(self.held.pseudonyms, self.held.records), {})

    def rows(self, table: str) -> pa.Table:
        """The rows of a silver table in no order, as docs/tables.md tells them and `ingest` writes them; no gate looks
        at them. Raises ArgumentError for a table that is not made of packets alone.
        """
        return self.tables(table)[table]

    def tables(self, *names: str) -> Mapping[str, pa.Table]:
        """The rows of several tables by name, for which the packets are decoded once; of all where none is named."""
        unknown = sorted(set(names) - set(TABLES))
        if unknown:
            known = ", ".join(TABLES)
            raise ArgumentError(f"open_capture: there are no rows of {', '.join(unknown)}; there are those of {known}")
        return {table.name: rows for table, rows in self.held.rows([TABLES[n] for n in names or TABLES]).items()}


def open_capture(
    *captures: Path | str,
    pseudonymise: str | None = None,
    records: bool = False,
    threads: int | None = None,
    most_bytes: int = MOST_BYTES,
) -> OpenCapture:
    """Read captures and frame dumps: files, folders, patterns or URIs, as --captures of `ingest` takes them. Request
    logs are for `ingest`, as are captures of any size.

    pseudonymise: a key file, as that of --pseudonymise.
    records: learn of the records in batches what `ingest` does for a replay of batch_split.
    threads: how many work at a time, a core each if not told; the rows do not depend on it.
    most_bytes: of memory that packets may take; what is made of them takes several times as much.

    Raises ArgumentError, CaptureError and SetupError as the job does.
    """
    if threads is not None and threads < 1:
        raise ArgumentError(f"open_capture: threads must be 1 or more, got {threads}")
    pseudonyms = pseudonyms_by(pseudonymise)
    paths = resolve_captures(map(str, captures))
    with compiling(()):
        pass
    cores = len(os.sched_getaffinity(0))
    return OpenCapture(hold_captures(paths, pseudonyms, Asked() if records else None, threads or cores, most_bytes))
