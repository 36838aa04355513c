"""The rows that tasks deal: of which step they are, and in what they travel."""

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
"""A part of a shard's rows: the task that takes it, the unit of its first row, and what orders that row in its unit."""


class Step(NamedTuple):
    """The rows of a step table, on their way to the tasks that replay them.

    unit: the columns whose values tell units apart; all rows of a unit come to one task. order: the columns, numbers
    all, by which a unit's rows are ordered. Where `order` is empty there is one unit, whose rows come in any order.
    leads: units with the same text in the first column of `unit` come to one task, unless it is empty.
    """

    table: Table
    unit: tuple[str, ...]
    order: tuple[str, ...]
    leads: bool = False

    def dealt_by(self, unit: str) -> str:
        """The text that decides which task a unit comes to. unit: its name."""
        return (unit.split("\0", 1)[0] if self.leads else "") or unit
