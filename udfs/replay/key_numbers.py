"""Numbers for keys of several texts, given out as the keys come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.wire.arrays import Ints


def key_numbers(index: dict[str, int], *parts: pa.Array[Any]) -> Ints:
    """A number for each row's key, whose parts these are; new keys, joined by NUL, are added to `index`."""
    joined: pa.StringArray = pc.call_function("binary_join_element_wise", [*parts, pa.scalar("\0")])
    keys = joined.dictionary_encode()
    distinct: list[Any] = keys.dictionary.to_pylist()
    numbers = np.array([index.setdefault(key, len(index)) for key in distinct], np.int64)
    found: Ints = numbers[keys.indices.to_numpy()]
    return found
