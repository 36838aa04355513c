"""docs/tables.md has what the declarations of tables say."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.doc_pages.table_docs import PAGE, table_section, tables_page
from schemas.tables.gold import GOLD
from schemas.tables.silver import SILVER
from schemas.tables.table import Table


def test_the_page_is_current(repository: Path) -> None:
    found = (repository / PAGE).read_text(encoding="utf-8")
    assert found == tables_page(), "make it anew: python -m jobs.doc_pages"


@pytest.mark.parametrize("table", [*SILVER, *GOLD], ids=lambda table: table.name)
def test_every_column_of_every_table_has_a_meaning_on_the_page(table: Table) -> None:
    text = "\n".join(table_section(table))
    assert text in tables_page()
    assert table.doc in text
    for column in table.columns:
        assert column.doc
        assert f"\n| `{column}` | `{column.type}` |" in text
