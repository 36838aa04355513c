"""The configurations in CreateTopics requests that replays use: numbers, and words out of a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array, bool_values, compute
from udfs.facts.exchanges import Exchanges
from udfs.facts.hashed_names import hash_of, hash_spans
from udfs.wire.decoded_level import Level

MOST_DIGITS = 10
"""The most digits that a Kafka INT has."""
_MAX_MESSAGE_BYTES, _COMPRESSION_TYPE = hash_of(b"max.message.bytes"), hash_of(b"compression.type")
COMPRESSION_TYPES = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
"""The values of compression.type (BrokerCompressionType of Kafka 4.3). Other texts are not kept."""


def max_message_bytes(exchanges: Exchanges, topics: int, configs: Level) -> pa.Array[Any]:
    """max.message.bytes of each topic, int64[topics]; null if the request has none, or one that is no number.

    configs: the level of the topics' configurations.
    """
    arena = exchanges.frames.arena
    starts, lengths = configs.span("value")
    named = hash_spans(arena, *configs.span("name")) == _MAX_MESSAGE_BYTES
    rows = np.flatnonzero(named & (lengths > 0) & (lengths <= MOST_DIGITS))
    texts = exchanges.names.texts_of(exchanges.names.learn(arena, starts[rows], lengths[rows])).dictionary_decode()
    is_number = compute.match_substring_regex(texts, "^[0-9]+$")
    topic: Ints = configs.parent[rows[bool_values(is_number)]]
    values, given = np.zeros(topics, np.int64), np.zeros(topics, np.bool_)
    values[topic], given[topic] = texts.filter(is_number).cast(pa.int64()).to_numpy(), True
    return arrow_array(values, given)


def compression_types(exchanges: Exchanges, topics: int, configs: Level) -> pa.Array[Any]:
    """compression.type of each topic, string[topics]; null if the request has none, or one that Kafka does not know.

    configs: the level of the topics' configurations.
    """
    arena = exchanges.frames.arena
    rows = np.flatnonzero(hash_spans(arena, *configs.span("name")) == _COMPRESSION_TYPE)
    starts, lengths = configs.span("value")
    hashes = hash_spans(arena, starts[rows], lengths[rows])
    given = np.full(topics, -1)
    for number, word in enumerate(COMPRESSION_TYPES):
        given[configs.parent[rows[hashes == hash_of(word.encode())]]] = number
    return pa.array(COMPRESSION_TYPES, pa.string()).take(arrow_array(given, given >= 0))
