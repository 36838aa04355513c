"""Prefetching changes nothing, and memory that does not exist may be prefetched."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.kernels.prefetch import prefetch_cells


@pytest.mark.parametrize("kind", [np.uint8, np.int64])
@pytest.mark.parametrize(("first", "count"), [(0, 100), (0, 0), (50, 1 << 14), (-(1 << 40), 1), (1 << 61, 100)])
def test_any_cells_may_be_prefetched(kind: type[np.generic], first: int, count: int) -> None:
    cells = np.arange(100).astype(kind)
    prefetch_cells(cells, first, count)
    assert np.array_equal(cells, np.arange(100))
