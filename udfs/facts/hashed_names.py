"""Names on the wire: topics by name or id, and client ids, each decoded once however often it stands there."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Bytes, Ints, read_only
from udfs.kernels.kernel import kernel
from udfs.wire.decoded_level import Level

ABSENT = 0  # the hash of nothing
FNV_OFFSET, FNV_PRIME = -3750763034362895579, 1099511628211  # FNV-1a, 64 bits, as int64


def hash_spans(arena: Bytes, starts: Ints, lengths: Ints) -> Ints:
    """FNV-1a of each span; ABSENT for a null one. arena uint8, starts and lengths int64[n]; int64[n]."""
    hashes = np.empty(len(starts), np.int64)
    fill_hashes(read_only(arena), starts, lengths, hashes)
    return hashes


@kernel
def fill_hashes(arena: Bytes, starts: Ints, lengths: Ints, hashes: Ints) -> None:
    """`hash_spans` into a given array."""
    for i in range(len(starts)):
        if lengths[i] < 0:
            hashes[i] = ABSENT
            continue
        value = np.int64(FNV_OFFSET)
        for at in range(starts[i], starts[i] + lengths[i]):
            value = (value ^ np.int64(arena[at])) * FNV_PRIME
        hashes[i] = value


def hash_of(text: bytes) -> int:
    """As `hash_spans` of one span, but without a kernel: loading the first kernel takes the driver a second, too."""
    value = FNV_OFFSET
    for byte in text:
        value = (value ^ byte) * FNV_PRIME
    return (value + 2**63) % 2**64 - 2**63


ZERO_ID = hash_of(bytes(16))  # Uuid.ZERO_UUID: no id


def topic_id_text(raw: bytes) -> str:
    """A topic id as Kafka prints it (org.apache.kafka.common.Uuid.toString)."""
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


@dataclass
class HashedNames:
    """Texts by the hash of their bytes; grows with the number of different names a worker meets, not with traffic."""

    texts: dict[int, str] = field(default_factory=dict)
    topic_ids: dict[int, str] = field(default_factory=dict)

    def learn(self, arena: Bytes, starts: Ints, lengths: Ints) -> Ints:
        """Remember the texts of the spans; returns their hashes. Bytes that are not UTF-8 become U+FFFD."""
        hashes = hash_spans(arena, starts, lengths)
        for value, raw in _distinct(arena, starts, lengths, hashes):
            self.texts.setdefault(value, raw.decode("utf-8", "replace"))
        return hashes

    def learn_ids(self, arena: Bytes, topics: Level) -> Ints:
        """Remember the ids of the topics of a level; returns their hashes, ABSENT for a topic without."""
        starts, lengths = topics.span("topic_id")
        by_id = hash_spans(arena, starts, lengths)
        by_id[by_id == ZERO_ID] = ABSENT
        for value, raw in _distinct(arena, starts, lengths, by_id):
            self.topic_ids.setdefault(value, topic_id_text(raw))
        return by_id

    def learn_topics(self, arena: Bytes, topics: Level, name: str = "topic") -> Ints:
        """Remember the topics of a level by id where they have one, else by name; returns their hashes."""
        by_id = self.learn_ids(arena, topics)
        by_name = self.learn(arena, *topics.span(name))
        return np.where(by_id != ABSENT, by_id, by_name)

    def texts_of(self, hashes: Ints) -> pa.DictionaryArray[Any, Any]:
        """The texts of hashes that were learnt, null for ABSENT."""
        return _look_up(self.texts, hashes)

    def topic_columns(self, hashes: Ints) -> tuple[pa.DictionaryArray[Any, Any], pa.DictionaryArray[Any, Any]]:
        """(name, id) of topics; what the wire did not say is null."""
        return _look_up(self.texts, hashes), _look_up(self.topic_ids, hashes)


def _distinct(arena: Bytes, starts: Ints, lengths: Ints, hashes: Ints) -> Iterator[tuple[int, bytes]]:
    if not hashes.any():  # of many messages there are none in a chunk, and most fetches call topics by id alone
        return
    found: Any = pa.array(hashes).dictionary_encode()
    first = np.empty(len(found.dictionary), np.int64)
    first[found.indices.to_numpy()[::-1]] = np.arange(len(hashes))[::-1]  # of equal ones the last assignment holds
    for value, at in zip(found.dictionary.to_pylist(), first.tolist(), strict=True):
        if value != ABSENT:
            yield value, arena[starts[at] : starts[at] + lengths[at]].tobytes()


def _look_up(texts: Mapping[int, str], hashes: Ints) -> pa.DictionaryArray[Any, Any]:
    found: Any = pa.array(hashes).dictionary_encode()
    known = pa.array(map(texts.get, found.dictionary.to_pylist()), pa.string())
    return pa.DictionaryArray.from_arrays(found.indices, known)
