"""Markdown of the pages that are made from declarations."""

from __future__ import annotations

from collections.abc import Iterable


def table_row(cells: Iterable[str]) -> str:
    """A row of a table. Bars in cells are escaped."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
