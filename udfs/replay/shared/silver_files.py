"""Columns of silver tables, which a task reads itself from the files of the lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.tables.table import Table
from udfs.errors import LakeError
from udfs.facts.arrow_tables import arrow_schema


@dataclass(frozen=True)
class FilePart:
    """Some row groups of a table's Parquet file, and the bytes that they take there."""

    path: str
    groups: tuple[int, ...]
    size: int


def file_parts(path: str, most_bytes: int) -> Iterator[FilePart]:
    """A file's row groups in parts of at most `most_bytes`, or of one row group. Raises LakeError for a file that
    cannot be read.
    """
    with _name_file_in_errors(path):
        footer = pq.read_metadata(path)
    groups: list[int] = []
    size = 0
    for group in range(footer.num_row_groups):
        groups.append(group)
        size += sum(footer.row_group(group).column(c).total_compressed_size for c in range(footer.num_columns))
        if size >= most_bytes:
            yield FilePart(path, tuple(groups), size)
            groups, size = [], 0
    if groups:
        yield FilePart(path, tuple(groups), size)


def columns_in(part: FilePart, table: Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """These columns of a part's rows; texts as dictionary columns. Raises LakeError for a file that cannot be read.

    A column that an older release's file lacks is null.
    """
    kinds = arrow_schema(table)
    with _name_file_in_errors(part.path):
        footer = pq.read_metadata(part.path)
        stored = set(footer.schema.to_arrow_schema().names)
        lacking = [column for column in columns if column not in stored]
        texts = [column for column in columns if column in stored and getattr(table, column).type == "string"]
        with pq.ParquetFile(part.path, metadata=footer, read_dictionary=texts) as file:
            for group in part.groups:
                rows = file.read_row_group(group, columns=list(columns), use_threads=False)
                for column in lacking:
                    rows = rows.append_column(kinds.field(column), pa.nulls(len(rows), kinds.field(column).type))
                yield from rows.select(list(columns)).to_batches()


def may_have(path: str, column: str, least: int | str) -> bool:
    """Whether a row of a file may have at least this value in a column, by the statistics in the file's footer.

    Raises LakeError for a file that cannot be read.
    """
    with _name_file_in_errors(path):
        footer = pq.read_metadata(path)
    if column not in footer.schema.names:  # an older release's file
        return False
    place = footer.schema.names.index(column)
    found = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]
    return any(of is None or not _is_below(of, least) for of in found)


def _is_below(of: Any, least: int | str) -> bool:
    """Whether all values are below this one. of: pyarrow's statistics of a column in a row group."""
    return bool(of.max < least) if of.has_min_max else of.num_values == 0


@contextmanager
def _name_file_in_errors(path: str) -> Iterator[None]:
    """Turn Arrow's errors in the block into LakeError, with one line that names the file."""
    try:
        yield
    except (OSError, pa.ArrowException) as fault:
        reason = " ".join(str(fault).split()).rstrip(".")
        raise LakeError(
            f"{path}: cannot be read: {reason}. If it is gone or damaged, run `ingest` with its captures and this lake "
            "again"
        ) from fault
