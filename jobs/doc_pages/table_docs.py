"""The page docs/tables.md, made from the declarations in schemas/tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from jobs.doc_pages import reason_docs
from jobs.doc_pages.markdown import table_row
from schemas.tables.gold import FIDELITY, GOLD
from schemas.tables.metrics import METRICS
from schemas.tables.silver import SILVER
from schemas.tables.table import Column, Table

PAGE = Path("docs/tables.md")
INTRODUCTION = """\
# Tables

Delta tables at `LAKE/LAYER/NAME`. This page is made from `schemas/tables` by `python -m jobs.doc_pages`.

The key makes a row unique. A repeated run replaces the rows whose *replaced by* column has its value.
"""
REASONS = str(reason_docs.PAGE)
METRICS_HEAD = ("| algorithm | metric | agrees if the same in replay and capture |", "|---|---|---|")
HEAD = ("| column | type | unit | null | meaning |", "|---|---|---|---|---|")


def tables_page() -> str:
    """The page as Markdown."""
    lines = [INTRODUCTION]
    for layer, tables in (("Silver: what the captures show", SILVER), ("Gold: what the replays produce", GOLD)):
        lines += [f"## {layer}", "", *contents_lines(tables), ""]
        for table in tables:
            lines += [*table_section(table), ""]
    return "\n".join(lines).rstrip() + "\n"


def contents_lines(tables: Iterable[Table]) -> Iterator[str]:
    """A line for each table, with a link to its section."""
    for table in tables:
        yield f"- [`{table.name}`](#{table.layer}{table.name}): {table.doc}"


def table_section(table: Table) -> Iterator[str]:
    """A table's section: what a row is, its key, its columns."""
    yield from (f"### {table.layer}/{table.name}", "", table.doc, "")
    yield f"Key: {', '.join(f'`{name}`' for name in table.key)}. Replaced by: `{table.replaced_by}`."
    yield from ("", *HEAD, *(column_row(column) for column in table.columns))
    if table == FIDELITY:
        yield from ("", *METRICS_HEAD, *fidelity_metrics())


def fidelity_metrics() -> Iterator[str]:
    """What `fidelity` compares, with a row for each metric."""
    for algorithm, compared in METRICS.items():
        yield from (table_row((algorithm, metric, doc)) for metric, doc in compared.items())


def column_row(column: Column) -> str:
    """A column's row."""
    cells = (f"`{column}`", f"`{column.type}`", column.unit, "yes" if column.nullable else "", column.doc)
    return table_row(map(with_reasons_link, cells))


def with_reasons_link(text: str) -> str:
    """A text with links where it names the page of reasons."""
    return text.replace(REASONS, f"[{REASONS}]({reason_docs.PAGE.name})")
