"""The columns of `quarantine` that a gate alone fills."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from schemas.tables.silver import QUARANTINE


def not_refused(rows: int) -> dict[str, pa.Array[Any]]:
    """Nulls for so many rows of what could not be decoded."""
    return {column: pa.nulls(rows, pa.string()) for column in (QUARANTINE.refused_from, QUARANTINE.refused_row)}
