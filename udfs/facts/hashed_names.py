"""Names in messages by their hashes: topic names and ids, client ids and others. Each is decoded only once."""

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
    """The FNV-1a hash of each span: int64[n], ABSENT for a null span. arena: uint8. starts, lengths: int64[n]."""
    hashes = np.empty(len(starts), np.int64)
    fill_hashes(read_only(arena), starts, lengths, hashes)
    return hashes


@kernel
def fill_hashes(arena: Bytes, starts: Ints, lengths: Ints, hashes: Ints) -> None:
    """Write the FNV-1a hash of each span.

    arena: uint8[bytes]. starts, lengths: int64[n], length below 0 for a null span. hashes: int64[n], ABSENT for a null
    span.
    """
    for i in range(len(starts)):
        if lengths[i] < 0:
            hashes[i] = ABSENT
            continue
        value = np.int64(FNV_OFFSET)
        for at in range(starts[i], starts[i] + lengths[i]):
            value = (value ^ np.int64(arena[at])) * FNV_PRIME
        hashes[i] = value


def hash_of(text: bytes) -> int:
    """The FNV-1a hash of one text, without a kernel: loading its first kernel would take the driver a second."""
    value = FNV_OFFSET
    for byte in text:
        value = (value ^ byte) * FNV_PRIME
    return (value + 2**63) % 2**64 - 2**63


ZERO_ID = hash_of(bytes(16))  # Uuid.ZERO_UUID: no id


def topic_id_text(raw: bytes) -> str:
    """A topic id as Kafka prints it (org.apache.kafka.common.Uuid.toString); raw: its sixteen bytes."""
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


@dataclass
class HashedNames:
    """Texts and topic ids by the hashes of their bytes. It grows with the number of names, not with the traffic."""

    texts: dict[int, str] = field(default_factory=dict)
    topic_ids: dict[int, str] = field(default_factory=dict)

    def learn(self, arena: Bytes, starts: Ints, lengths: Ints) -> Ints:
        """Remember the texts of spans and return their hashes: int64[n]. Bytes that are not UTF-8 become U+FFFD.

        arena: uint8[bytes]. starts, lengths: int64[n], length below 0 for a null span.
        """
        hashes = hash_spans(arena, starts, lengths)
        for value, raw in _distinct(arena, starts, lengths, hashes):
            self.texts.setdefault(value, raw.decode("utf-8", "replace"))
        return hashes

    def learn_text(self, text: str | None) -> int:
        """Remember one text and return its hash, ABSENT for none."""
        if text is None:
            return ABSENT
        value = hash_of(text.encode())
        self.texts.setdefault(value, text)
        return value

    def learn_id_text(self, text: str | None) -> int:
        """Remember one topic id, as `topic_id_text` writes it, and return its hash, ABSENT for none."""
        if text is None:
            return ABSENT
        value = hash_of(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        self.topic_ids.setdefault(value, text)
        return value

    def learn_ids(self, arena: Bytes, topics: Level) -> Ints:
        """Remember the topic ids in a level and return their hashes: int64[n], ABSENT for a topic without an id.

        arena: uint8[bytes], in which the level's spans are.
        """
        starts, lengths = topics.span("topic_id")
        by_id = hash_spans(arena, starts, lengths)
        by_id[by_id == ZERO_ID] = ABSENT
        for value, raw in _distinct(arena, starts, lengths, by_id):
            self.topic_ids.setdefault(value, topic_id_text(raw))
        return by_id

    def learn_topics(self, arena: Bytes, topics: Level, name: str = "topic") -> Ints:
        """Remember the topics in a level, by id if they have one, otherwise by name; returns their hashes: int64[n].

        arena: uint8[bytes], in which the level's spans are.
        """
        by_id = self.learn_ids(arena, topics)
        by_name = self.learn(arena, *topics.span(name))
        return np.where(by_id != ABSENT, by_id, by_name)

    def texts_of(self, hashes: Ints) -> pa.DictionaryArray[Any, Any]:
        """The texts that were remembered under these hashes, int64[n]; null for ABSENT."""
        return _look_up(self.texts, hashes)

    def topic_columns(self, hashes: Ints) -> tuple[pa.DictionaryArray[Any, Any], pa.DictionaryArray[Any, Any]]:
        """(names, ids) of topics by their hashes, int64[n]; null for what the messages do not have."""
        return _look_up(self.texts, hashes), _look_up(self.topic_ids, hashes)


def _distinct(arena: Bytes, starts: Ints, lengths: Ints, hashes: Ints) -> Iterator[tuple[int, bytes]]:
    """(hash, bytes) of each distinct span that is not null."""
    if not hashes.any():  # often there are none: most fetches have topic ids instead of names
        return
    coded: Any = pa.array(hashes).dictionary_encode()
    first = np.empty(len(coded.dictionary), np.int64)
    first[coded.indices.to_numpy()[::-1]] = np.arange(len(hashes))[::-1]  # for equal indices the last assignment counts
    for value, at in zip(coded.dictionary.to_pylist(), first.tolist(), strict=True):
        if value != ABSENT:
            yield value, arena[starts[at] : starts[at] + lengths[at]].tobytes()


def _look_up(texts: Mapping[int, str], hashes: Ints) -> pa.DictionaryArray[Any, Any]:
    coded: Any = pa.array(hashes).dictionary_encode()
    known = pa.array(map(texts.get, coded.dictionary.to_pylist()), pa.string())
    return pa.DictionaryArray.from_arrays(coded.indices, known)
