"""A capture opened without Spark has the rows that `ingest` writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest

from jobs.open_capture import open_capture
from schemas.tables.silver import CAPTURES, DECODED
from tests.e2e.conftest import CapturedLake
from tests.lakes import Row, lake_rows, rows_by_key, table_rows

RECORDS_ASKED_FOR = {"split"}
"""Captures whose replays need the sizes of records."""


def opened_rows(tables: Mapping[str, pa.Table]) -> dict[str, list[Row]]:
    return {table.name: rows_by_key(table, tables[table.name].to_pylist()) for table in DECODED}


@pytest.mark.parametrize("name", ["starve", "sessions", "split", "admin", "mixed", "sasl"])
def test_a_capture_that_is_opened_has_the_rows_that_ingest_writes(
    captured: Callable[[str], CapturedLake], name: str
) -> None:
    lake = captured(name)
    capture = open_capture(lake.capture, records=name in RECORDS_ASKED_FOR)
    assert capture.capture_id == lake.capture_id
    assert opened_rows(capture.tables()) == lake_rows(lake.path, DECODED)
    left_out = (CAPTURES.path, CAPTURES.decoder)  # links in the path are resolved here only
    files = rows_by_key(CAPTURES, capture.files.to_pylist(), without=left_out)
    assert files == table_rows(lake.path, CAPTURES, without=left_out)
