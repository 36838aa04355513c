"""Numbers for keys of several texts, given out as the keys come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.columns.arrays import Ints


def key_numbers(index: dict[str, int], *parts: pa.Array[Any]) -> Ints:
    """A number for each row's key, whose parts these are; new keys, joined by NUL, are added to `index`."""
    plain = [part.dictionary_decode() if isinstance(part, pa.DictionaryArray) else part for part in parts]
    joined: pa.StringArray = pc.call_function("binary_join_element_wise", [*plain, pa.scalar("\0")])
    keys = joined.dictionary_encode()
    distinct: list[Any] = keys.dictionary.to_pylist()
    numbers = np.array([index.setdefault(key, len(index)) for key in distinct], np.int64)
    return numbers[keys.indices.to_numpy()]


def partition_of(key: str) -> tuple[str, str, str]:
    """(broker, topic, partition) of a key of these three; only the topic may be called anything, and so have NUL."""
    broker, _, rest = key.partition("\0")
    topic, _, partition = rest.rpartition("\0")
    return broker, topic, partition


def client_of(key: str) -> tuple[str, str]:
    """(client id, address) of a key of these two; only the client id can have NUL."""
    client_id, _, address = key.rpartition("\0")
    return client_id, address
