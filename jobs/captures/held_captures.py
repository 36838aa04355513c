"""A capture set that one process reads without Spark: it holds the packets in memory, and threads make the rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from jobs.captures.capture_index import check_faults, index_or_fault
from jobs.captures.capture_plan import CapturePlan, plan_capture
from jobs.captures.capture_rows import packets_of_range
from jobs.captures.inputs import MOST_NAMED
from jobs.captures.names import Gather, learn_names, needs_leaders
from jobs.paths import COMMAND
from jobs.terminal.screen import with_rest_count
from schemas.tables.table import Table
from udfs.capture.capture_points import ALONE
from udfs.capture.compression import estimated_unpacked_bytes
from udfs.capture.file_index import CaptureIndex
from udfs.capture.frame_dump import MAGICS
from udfs.capture.packet_store import Content, MemoryBudget, PacketStore
from udfs.capture.packets_by_connection import PacketsByConnection, packets_by_connection
from udfs.capture.request_log_head import REQUEST_LOG
from udfs.errors import CaptureError
from udfs.facts.arrow_tables import arrow_schema, plain_rows
from udfs.facts.captured_names import CAPTURED_NAMES, NAMING_COLUMNS, captured_names
from udfs.facts.cluster_names import ClusterNames, with_names
from udfs.facts.leading_names import LEADING_COLUMNS, leading_names
from udfs.facts.pseudonyms import Pseudonyms
from udfs.facts.record_sampling import RecordSampling
from udfs.facts.rows_from_packets import EarlierChunks, tables_of_chunk

PART_BYTES = 128 << 20
"""The most bytes of packets that a thread works on at a time. The rows that it makes take several times as much."""


@dataclass(frozen=True)
class ReadFile:
    """A file after the index pass (`index_or_fault`). The packets of a frame dump are not read yet."""

    packets: PacketStore
    index: CaptureIndex | None
    fault: str | None


class ConnectionRows(NamedTuple):
    """The rows of some connections, by table, and the names that these show, as rows of CAPTURED_NAMES."""

    rows: Mapping[Table, Sequence[pa.RecordBatch]]
    names: pa.Table


@dataclass(frozen=True, eq=False)
class HeldCaptures:
    """A planned capture set and all its packets.

    pseudonyms: what to call topics, clients and hosts; None to keep their names.
    records: how to read the records in batches; None to leave them out.
    threads: how many threads work at a time; the rows do not depend on it.
    """

    plan: CapturePlan
    packets: PacketsByConnection
    pseudonyms: Pseudonyms | None
    records: RecordSampling | None
    threads: int

    def rows(self, tables: Collection[Table]) -> dict[Table, pa.Table]:
        """All rows of some of the tables DECODED, in no order: those that `ingest` writes if its gate refuses none."""
        with ThreadPoolExecutor(self.threads) as threads:
            parts = self._parts(threads, tables, NAMING_COLUMNS, captured_names)
            naming_tables = [CAPTURED_NAMES.empty_table(), *(part.names for part in parts)]
            if needs_leaders(pa.concat_tables(naming_tables)):
                naming_tables += [part.names for part in self._parts(threads, (), LEADING_COLUMNS, leading_names)]
            names = learn_names(pa.concat_tables(naming_tables))
            return {table: _table_with_names(threads, table, parts, names) for table in tables}

    def _parts(
        self, threads: ThreadPoolExecutor, tables: Collection[Table], naming: Collection[Table], shown: Gather
    ) -> list[ConnectionRows]:
        """Rows of `tables`, and the names that `shown` finds in the rows of the tables `naming`."""
        rounds = -(-self.packets.cost // (self.threads * PART_BYTES))
        connections = self.packets.parts(self.threads * max(rounds, 1))
        return list(threads.map(partial(self._part, tables, naming, shown), connections))

    def _part(
        self, tables: Collection[Table], naming: Collection[Table], shown: Gather, connections: range
    ) -> ConnectionRows:
        rows: dict[Table, list[pa.RecordBatch]] = defaultdict(list)
        carried, wanted = EarlierChunks(records=self.records), {*tables, *naming}
        for table, batch in tables_of_chunk(self.packets.frames(connections), self.plan.capture_id, carried, wanted):
            if batch.num_rows and table in wanted:
                called = batch if self.pseudonyms is None else self.pseudonyms.applied_to(table, batch)
                rows[table] += plain_rows(called)
        names = shown((table, batch) for table in naming for batch in rows.get(table, ()))
        return ConnectionRows({table: rows[table] for table in tables if table in rows}, names)


def _table_with_names(
    threads: ThreadPoolExecutor, table: Table, parts: Sequence[ConnectionRows], names: ClusterNames
) -> pa.Table:
    batches = chain.from_iterable(part.rows.get(table, ()) for part in parts)
    named = threads.map(lambda batch: with_names(batch, table, names), batches)
    return pa.Table.from_batches(named, arrow_schema(table))


def hold_captures(
    captures: Sequence[Path | str],
    pseudonyms: Pseudonyms | None,
    records: RecordSampling | None,
    threads: int,
    most_bytes: int,
) -> HeldCaptures:
    """Read captures and frame dumps, each once. stderr names the files that are neither; nothing of them is read.

    most_bytes: how many bytes of memory packets may take. The other arguments are those of HeldCaptures. Raises
    CaptureError, which names every file that cannot be read or is a request log; also if the packets take more memory
    than they may, or than the machine has.
    """
    memory = MemoryBudget(most_bytes)
    with ThreadPoolExecutor(threads) as pool:
        try:
            files = list(pool.map(partial(_read_file, memory), map(str, captures)))
        except KeyboardInterrupt:
            memory.close()  # otherwise files whose reading has begun would be read to their ends
            raise
        except MemoryError as error:
            raise CaptureError(
                f"The packets take more memory than there is ({error}), though no more than most_bytes. Have "
                f"`{COMMAND} ingest` read the files, which may be of any size."
            ) from error
    indexes = tuple(file.index for file in files if file.index is not None)
    check_faults(sorted({file.fault for file in files if file.fault}), [i.format for i in indexes], len(files))
    plan = plan_capture(indexes, threads)
    logs = [index.path for index in plan.indexes if index.format == REQUEST_LOG]
    if logs:
        raise CaptureError(
            f"{', '.join(with_rest_count(logs[:MOST_NAMED], len(logs)))}: open_capture reads packets and frames; leave "
            f"request logs out, or have `{COMMAND} ingest` read them into a lake, with captures of the same "
            "traffic or without."
        )
    packets = {file.index.path: file.packets for file in files if file.index is not None}
    placed = [_place_packets(plan, file_no, packets[index.path]) for file_no, index in enumerate(plan.indexes)]
    return HeldCaptures(plan, packets_by_connection(placed, in_order=plan.in_order), pseudonyms, records, threads)


def _read_file(memory: MemoryBudget, path: str) -> ReadFile:
    packets = PacketStore(memory, estimated_unpacked_bytes(path))
    return ReadFile(packets, *index_or_fault(path, on_packets=packets.add))


def _place_packets(plan: CapturePlan, file_no: int, packets: PacketStore) -> Content:
    """The packets of a file, in the order of its place among the others."""
    order = plan.orders[file_no]
    if plan.indexes[file_no].format in MAGICS.values():
        for part in (part for number, part in plan.packets.ranges if number == file_no):
            for batch in packets_of_range(part, file_no, order):
                packets.add_batch(batch)
    elif order != ALONE:
        packets.place(order)
    return packets.content
