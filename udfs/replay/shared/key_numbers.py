"""Numbers for keys of several texts, given out as the keys come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array
from udfs.replay.shared.columns import rows_alike


def key_numbers(index: dict[str, int], *parts: pa.Array[Any]) -> Ints:
    """The number of each row's key: int64[rows]. A key has one text from each of these columns.

    index: the numbers of known keys, whose texts are joined by NUL; new keys are added.
    """
    number, first = rows_alike(len(parts[0]), *parts)
    turn = np.argsort(first)  # as they come
    rows = arrow_array(first[turn])
    keys = zip(*(plain_texts(part.take(rows)).to_pylist() for part in parts), strict=True)
    of_distinct = np.zeros(len(first), np.int64)
    of_distinct[turn] = [index.setdefault("\0".join(key), len(index)) for key in keys]
    return of_distinct[number]


def plain_texts(texts: pa.Array[Any]) -> pa.Array[Any]:
    """The texts as a plain column, also if they come as a dictionary column."""
    return texts.dictionary_decode() if isinstance(texts, pa.DictionaryArray) else texts


def partition_of(key: str) -> tuple[str, str, str]:
    """(broker, topic, partition) of a key of these three. Only the topic may contain NUL."""
    broker, _, rest = key.partition("\0")
    topic, _, partition = rest.rpartition("\0")
    return broker, topic, partition


def client_of(key: str) -> tuple[str, str]:
    """(client id, address) of a key of these two. Only the client id may contain NUL."""
    client_id, _, address = key.rpartition("\0")
    return client_id, address
