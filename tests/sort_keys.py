"""The type of what tables are sorted by."""

from __future__ import annotations

from typing import Literal

SortKeys = list[tuple[str, Literal["ascending", "descending"]]]
