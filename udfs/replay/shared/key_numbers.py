"""Numbers for keys of several texts, given out as the keys come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Ints
from udfs.replay.shared.columns import codes_of

LARGEST_TABLE = 1 << 16
"""Up to so many combinations of parts a table of them is faster than sorting."""


def key_numbers(index: dict[str, int], *parts: pa.Array[Any]) -> Ints:
    """The number of each row's key: int64[rows]. A key has a text of each of these columns.

    index: the numbers of the keys that are known, each key joined by NUL; new keys are added.
    """
    code, width = np.zeros(len(parts[0]), np.int64), 1
    for part in parts:
        codes, count = codes_of(part)
        code, width = code * count + codes, width * count
        if width > LARGEST_TABLE:
            code = np.unique(code, return_inverse=True)[1]
            width = len(code) + 1
    first_row = np.full(width, -1)
    first_row[code[::-1]] = np.arange(len(code))[::-1]
    distinct = np.flatnonzero(first_row >= 0)
    distinct = distinct[np.argsort(first_row[distinct])]  # as they come
    rows = pa.array(first_row[distinct])
    keys = zip(*(plain_texts(part.take(rows)).to_pylist() for part in parts), strict=True)
    number = np.zeros(width, np.int64)
    number[distinct] = [index.setdefault("\0".join(key), len(index)) for key in keys]
    return number[code]


def plain_texts(texts: pa.Array[Any]) -> pa.Array[Any]:
    """The texts as a plain column, where they may come as a dictionary column."""
    return texts.dictionary_decode() if isinstance(texts, pa.DictionaryArray) else texts


def partition_of(key: str) -> tuple[str, str, str]:
    """(broker, topic, partition) of a key of these three; only the topic may be called anything, and so have NUL."""
    broker, _, rest = key.partition("\0")
    topic, _, partition = rest.rpartition("\0")
    return broker, topic, partition


def client_of(key: str) -> tuple[str, str]:
    """(client id, address) of a key of these two; only the client id can have NUL."""
    client_id, _, address = key.rpartition("\0")
    return client_id, address
