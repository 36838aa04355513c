"""The array types of the decoder."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Shorts = npt.NDArray[np.int16]
Codes = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int64]
Cells = Bytes | Ints


def read_only(arena: Bytes) -> Bytes:
    """A contiguous view that cannot be written, whatever came in: kernels then compile for one type of arena only."""
    view = np.ascontiguousarray(arena, np.uint8).view()
    view.flags.writeable = False
    return view
