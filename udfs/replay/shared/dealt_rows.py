"""The rows that tasks deal: the step to which they belong, and the columns in which they travel."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from schemas.tables.table import Table

SHARD, UNIT, FIRST, ROWS = "shard", "unit", "first", "rows"
_DEALT: list[pa.Field[Any]] = [
    pa.field(SHARD, pa.int32()),
    pa.field(UNIT, pa.string()),
    pa.field(FIRST, pa.int64()),
    pa.field(ROWS, pa.binary()),
]
DEALT = pa.schema(_DEALT)
"""A part of a shard's rows: the task that takes it, its first row's unit, and the values that order that row in it."""


class Step(NamedTuple):
    """The rows of a step table, on their way to the tasks that replay them.

    unit: the columns whose values tell units apart; all rows of a unit go to one task. order: the columns of numbers by
    which a unit's rows are ordered. If `order` is empty, there is one unit, whose rows come in any order. leads: units
    with the same text in the first column of `unit` go to one task, unless that text is empty.
    """

    table: Table
    unit: tuple[str, ...]
    order: tuple[str, ...]
    leads: bool = False

    def dealt_by(self, unit: str) -> str:
        """The text that decides to which task a unit goes. unit: its name."""
        return (unit.split("\0", 1)[0] if self.leads else "") or unit
