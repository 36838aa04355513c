"""The type of the keys by which tables are sorted."""

from __future__ import annotations

from typing import Literal

SortKeys = list[tuple[str, Literal["ascending", "descending"]]]
