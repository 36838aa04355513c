"""The columns that every table of ranges has: a result at the captured pace, and its range at other paces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.columns.arrays import Floats, Ints
from udfs.columns.arrow_columns import arrow_array

if TYPE_CHECKING:
    Cell = npt.NDArray[np.generic] | pa.Array[Any]


def range_columns(values: Floats, by_share: Floats, replications: Ints) -> dict[str, Cell]:
    """The columns of n results; a time without end, inf, becomes null.

    values: float64[n], at the captured pace. by_share: float64[3, n], from `quantiles`. replications: int64[n].
    """
    p10, p50, p90 = by_share
    ends = {"value": values, "p10": p10, "p50": p50, "p90": p90}
    return {
        **{name: arrow_array(of, np.isfinite(of)) for name, of in ends.items()},
        "is_exact": p10 == p90,
        "replications": replications,
    }
