"""Configurations that CreateTopics requests give a topic: those that a replay goes by, as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import array_of, compute, flags
from udfs.facts.exchanges import Exchanges
from udfs.facts.hashed_names import hash_of, hash_spans
from udfs.wire.decoded_level import Level

MOST_DIGITS = 10
"""Of a Kafka INT."""
_MAX_MESSAGE_BYTES = hash_of(b"max.message.bytes")


def max_message_bytes(exchanges: Exchanges, topics: int, configs: Level) -> pa.Array[Any]:
    """int64[topics], max.message.bytes of each topic; null where the request gives it none, or what is no number.

    configs: the level of the topics' configurations.
    """
    arena = exchanges.frames.arena
    starts, lengths = configs.span("value")
    named = hash_spans(arena, *configs.span("name")) == _MAX_MESSAGE_BYTES
    mine = np.flatnonzero(named & (lengths > 0) & (lengths <= MOST_DIGITS))
    values = exchanges.names.texts_of(exchanges.names.learn(arena, starts[mine], lengths[mine])).dictionary_decode()
    is_number = compute.match_substring_regex(values, "^[0-9]+$")
    topic: Ints = configs.parent[mine[flags(is_number)]]
    found, given = np.zeros(topics, np.int64), np.zeros(topics, np.bool_)
    found[topic], given[topic] = values.filter(is_number).cast(pa.int64()).to_numpy(), True
    return array_of(found, given)
