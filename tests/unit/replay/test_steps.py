"""Rows on their way from silver to gold, as they are declared."""

from __future__ import annotations

import pytest

from schemas.tables.steps import LOG_EVENTS, READS, SENT, SESSION_EVENTS
from schemas.tables.steps_memory import MEMORY_EVENTS
from schemas.tables.table import Table


@pytest.mark.parametrize(
    "table", [LOG_EVENTS, READS, MEMORY_EVENTS, SESSION_EVENTS, SENT], ids=lambda table: table.name
)
def test_no_list_is_null_in_rows_that_go_to_workers_in_bulk(table: Table) -> None:
    assert [c for c in table.columns if c.type.startswith("array") and c.nullable] == []
