"""Requests that create, delete, extend or move topics, and their responses, as rows of `topic_changes`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables import values
from schemas.tables.silver_topics import TOPIC_CHANGES
from schemas.tables.table import Column
from schemas.wire.declared import ALTER_PARTITION_REASSIGNMENTS, CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import arrow_array, bool_values, compute, repeated_text_column
from udfs.columns.picking import pick_values, position_among
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.arrow_tables import make_rows, nulls_besides
from udfs.facts.exchange_messages import Messages, MessagesOf, decode_both
from udfs.facts.exchanges import Exchanges, shared_columns
from udfs.facts.hashed_names import ABSENT, hash_of, hash_spans
from udfs.facts.record_batch_rows import partition_keys, places_of_keys
from udfs.wire.decoded_level import Level
from udfs.wire.messages import DecodedFrames

NO_COUNT = -1  # Kafka's default of counts in a CreateTopics response
MOST_DIGITS = 10
"""The most digits that a Kafka INT has."""
_MAX_MESSAGE_BYTES, _COMPRESSION_TYPE, _REMOTE_STORAGE_ENABLE = (
    hash_of(name) for name in (b"max.message.bytes", b"compression.type", b"remote.storage.enable")
)
COMPRESSION_TYPES = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
"""The values of compression.type (BrokerCompressionType of Kafka 4.3). Other texts are not kept."""


def topic_change_rows(exchanges: Exchanges, decoded: MessagesOf = decode_both) -> Iterator[pa.RecordBatch]:
    """Rows of `topic_changes` for all APIs except Metadata; decoded: a function that returns the messages of an API."""
    for declared, rows_from in (
        (CREATE_TOPICS, created_topics),
        (DELETE_TOPICS, deleted_topics),
        (CREATE_PARTITIONS, created_partitions),
        (ALTER_PARTITION_REASSIGNMENTS, reassigned_partitions),
    ):
        which = exchanges.of_api(declared.request.api_key)
        if len(which):
            yield from rows_from(exchanges, decoded(exchanges, declared, which))


def change_rows(
    exchanges: Exchanges, kind: str, exchange: Ints, columns: Mapping[Column, pa.Array[Any] | Ints | Bools]
) -> pa.RecordBatch:
    """Rows of one kind of change. Columns that are not given are null. exchange: int64[n], the exchange of each row."""
    shared = shared_columns(exchanges, exchange)
    kinds = {str(TOPIC_CHANGES.kind): repeated_text_column(kind, len(exchange))}
    given = {**shared, **kinds, **{str(name): column for name, column in columns.items()}}
    return make_rows(TOPIC_CHANGES, {**given, **nulls_besides(TOPIC_CHANGES, given, len(exchange))})


def created_topics(exchanges: Exchanges, messages: Messages) -> Iterator[pa.RecordBatch]:
    """One row for each topic in CreateTopics requests."""
    topics, answer = messages.request.levels["topics"], messages.response.levels["topics"]
    name = name_hashes(exchanges, topics)
    exchange = messages.request_exchanges[topics.parent]
    row = answer_of(exchange, name, messages.response_exchanges[answer.parent], name_hashes(exchanges, answer))
    t = TOPIC_CHANGES
    placed = messages.request.levels["topics.assignments"]
    assignments = assignment_texts(messages.request, "topics.assignments", placed.column("partition_index"))
    configs = messages.request.levels["topics.configs"]
    yield change_rows(exchanges, values.CREATE_TOPIC, exchange, {
        t.position: position_among(topics.parent),
        t.topic: exchanges.names.texts_of(name),
        t.topic_id: topic_ids_in_response(exchanges, answer, row),
        t.num_partitions: topics.column("num_partitions"),
        t.replication_factor: topics.column("replication_factor"),
        t.assignments: group_into_lists(assignments, placed.parent, topics.column("assignments.count") > 0),
        t.configs: topics.column("configs.count"),
        t.max_message_bytes: max_message_bytes(exchanges, topics.rows, configs),
        t.compression_type: compression_types(exchanges, topics.rows, configs),
        t.remote_storage_enable: remote_storage(exchanges, topics.rows, configs),
        t.validate_only: messages.request.levels[""].column("validate_only")[topics.parent] == 1,
        t.error_code: pick_values(answer.column("error_code"), row, UNKNOWN),
        t.answered_num_partitions: response_counts(answer, "num_partitions", row),
        t.answered_replication_factor: response_counts(answer, "replication_factor", row),
    })  # fmt: skip


def deleted_topics(exchanges: Exchanges, messages: Messages) -> Iterator[pa.RecordBatch]:
    """One row for each topic in DeleteTopics requests. Versions up to 5 have names, versions from 6 names or ids."""
    answer = messages.response.levels["responses"]
    answered, answer_name = messages.response_exchanges[answer.parent], name_hashes(exchanges, answer)
    answer_id = exchanges.names.learn_ids(exchanges.frames.arena, answer)
    for path, name_field in (("topic_names", "value"), ("topics", "name")):
        topics = messages.request.levels[path]
        exchange, name = messages.request_exchanges[topics.parent], name_hashes(exchanges, topics, name_field)
        requested_id = np.full(topics.rows, ABSENT)
        if path == "topics":
            requested_id = exchanges.names.learn_ids(exchanges.frames.arena, topics)
        by_id = answer_of(exchange, requested_id, answered, answer_id)
        row = np.where(requested_id != ABSENT, by_id, answer_of(exchange, name, answered, answer_name))
        ids = np.where(requested_id != ABSENT, requested_id, pick_values(answer_id, row, ABSENT))
        t = TOPIC_CHANGES
        yield change_rows(exchanges, values.DELETE_TOPIC, exchange, {
            t.position: position_among(topics.parent),
            t.topic: exchanges.names.texts_of(np.where(name != ABSENT, name, pick_values(answer_name, row, ABSENT))),
            t.topic_id: exchanges.names.topic_columns(ids)[1],
            t.error_code: pick_values(answer.column("error_code"), row, UNKNOWN),
        })  # fmt: skip


def created_partitions(exchanges: Exchanges, messages: Messages) -> Iterator[pa.RecordBatch]:
    """One row for each topic in CreatePartitions requests. The assignments are those of the new partitions, which are
    the last ones.
    """
    topics, answer = messages.request.levels["topics"], messages.response.levels["results"]
    name = name_hashes(exchanges, topics)
    exchange = messages.request_exchanges[topics.parent]
    row = answer_of(exchange, name, messages.response_exchanges[answer.parent], name_hashes(exchanges, answer))
    placed = messages.request.levels["topics.assignments"]
    first_new = topics.column("count") - topics.column("assignments.count")
    partition = first_new[placed.parent] + position_among(placed.parent)
    assignments = assignment_texts(messages.request, "topics.assignments", partition)
    t = TOPIC_CHANGES
    yield change_rows(exchanges, values.CREATE_PARTITIONS, exchange, {
        t.position: position_among(topics.parent),
        t.topic: exchanges.names.texts_of(name),
        t.num_partitions: topics.column("count"),
        t.assignments: group_into_lists(assignments, placed.parent, topics.column("assignments.count") > 0),
        t.validate_only: messages.request.levels[""].column("validate_only")[topics.parent] == 1,
        t.error_code: pick_values(answer.column("error_code"), row, UNKNOWN),
    })  # fmt: skip


def reassigned_partitions(exchanges: Exchanges, messages: Messages) -> Iterator[pa.RecordBatch]:
    """One row for each partition in AlterPartitionReassignments requests. A null assignment cancels a reassignment
    (KIP-455).
    """
    topics, level = messages.request.levels["topics"], messages.request.levels["topics.partitions"]
    answer_topics, answer = messages.response.levels["responses"], messages.response.levels["responses.partitions"]
    name, frame = name_hashes(exchanges, topics)[level.parent], topics.parent[level.parent]
    exchange, partition = messages.request_exchanges[frame], level.column("partition_index")
    row = places_of_keys(
        partition_keys(exchange, name, partition),
        partition_keys(
            messages.response_exchanges[answer_topics.parent[answer.parent]],
            name_hashes(exchanges, answer_topics)[answer.parent],
            answer.column("partition_index"),
        ),
    )
    # If a request is refused as a whole, the response has no error for a partition.
    refused = np.zeros(len(exchanges), np.int64)
    refused[messages.response_exchanges] = messages.response.levels[""].column("error_code")
    error = pick_values(answer.column("error_code"), row, UNKNOWN)
    is_refused = ((error == 0) | (error == UNKNOWN)) & (refused[exchange] != 0)
    moved = assignment_texts(messages.request, "topics.partitions", partition, "replicas")
    t = TOPIC_CHANGES
    yield change_rows(exchanges, values.REASSIGN_PARTITION, exchange, {
        t.position: position_among(frame),
        t.topic: exchanges.names.texts_of(name),
        t.partition: partition,
        t.assignments: group_into_lists(moved, np.arange(level.rows), level.column("replicas.count") >= 0),
        t.error_code: np.where(is_refused, refused[exchange], error),
    })  # fmt: skip


def auto_created_topics(exchanges: Exchanges, messages: Messages) -> pa.RecordBatch:
    """One row for each topic that a Metadata request may have created.

    The request names the topic and allows its creation. The response could be decoded, and lacks the topic or has an
    error for it.
    """
    topics, answer = messages.request.levels["topics"], messages.response.levels["topics"]
    name = name_hashes(exchanges, topics)
    exchange = messages.request_exchanges[topics.parent]
    row = answer_of(exchange, name, messages.response_exchanges[answer.parent], name_hashes(exchanges, answer))
    error = pick_values(answer.column("error_code"), row, UNKNOWN)
    allowed = messages.request.levels[""].column("allow_auto_topic_creation")[topics.parent] == 1
    is_read = np.isin(exchange, messages.response_exchanges[messages.response.fault == 0])
    wanted = np.flatnonzero(allowed & (name != ABSENT) & is_read & (error != 0))
    t = TOPIC_CHANGES
    return change_rows(exchanges, values.AUTO_CREATE, exchange[wanted], {
        t.position: position_among(topics.parent)[wanted],
        t.topic: exchanges.names.texts_of(name[wanted]),
        t.error_code: error[wanted],
    })  # fmt: skip


def name_hashes(exchanges: Exchanges, level: Level, name: str = "name") -> Ints:
    """Remember the names in a level. Returns their hashes, ABSENT for null: int64[rows]."""
    return exchanges.names.learn(exchanges.frames.arena, *level.span(name))


def answer_of(exchange: Ints, topic: Ints, answered: Ints, answer: Ints) -> Ints:
    """The row of the response about each requested topic, UNKNOWN if there is none: int64[n].

    exchange, topic: int64[n], exchange and hash of each requested topic. answered, answer: int64[m], exchange and hash
    of each topic in the responses.
    """
    requested = partition_keys(exchange, topic, np.zeros_like(topic))
    return places_of_keys(requested, partition_keys(answered, answer, np.zeros_like(answer)))


def topic_ids_in_response(exchanges: Exchanges, answer: Level, rows: Ints) -> pa.Array[Any]:
    """The ids of topics in a response; rows: int64[n], rows of its level. Null if there is no row or no id."""
    ids = exchanges.names.learn_ids(exchanges.frames.arena, answer)
    return exchanges.names.topic_columns(pick_values(ids, rows, ABSENT))[1]


def response_counts(answer: Level, name: str, rows: Ints) -> pa.Array[Any]:
    """A count of each topic in a response; null if there is none, as in older versions and for topics with an error.

    rows: int64[n], rows of its level.
    """
    count = pick_values(answer.column(name), rows, NO_COUNT)
    return arrow_array(count, count != NO_COUNT)


def assignment_texts(request: DecodedFrames, path: str, partition: Ints, nodes: str = "broker_ids") -> pa.Array[Any]:
    """PARTITION:BROKER,BROKER,... for each row of a level, string[n].

    partition: int64[n], of each row. nodes: the name of the level's array of broker ids.
    """
    brokers = request.levels[f"{path}.{nodes}"]
    ids = group_into_lists(
        pa.array(brokers.column("value")).cast(pa.string()), brokers.parent, np.full(len(partition), True)
    )
    parts = [pa.array(partition).cast(pa.string()), pc.binary_join(ids, ",")]
    return pc.binary_join_element_wise(*parts, ":")  # type: ignore[call-overload]  # the stubs lack ":"


def group_into_lists(values: pa.Array[Any], parent: Ints, there: Bools) -> pa.Array[Any]:
    """The values as one list for each parent; parent: int64[values], ascending. A list is null if not `there`."""
    offsets = np.searchsorted(parent, np.arange(len(there) + 1))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=pa.array(~there))


def max_message_bytes(exchanges: Exchanges, topics: int, configs: Level) -> pa.Array[Any]:
    """max.message.bytes of each topic, int64[topics]; null if the request lacks it, or has a text that is no number.

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
    """compression.type of each topic, string[topics]; null if the request lacks it, or has one that Kafka does not
    know.

    configs: the level of the topics' configurations.
    """
    return chosen_words(exchanges, topics, configs, _COMPRESSION_TYPE, COMPRESSION_TYPES)


def remote_storage(exchanges: Exchanges, topics: int, configs: Level) -> pa.Array[Any]:
    """remote.storage.enable of each topic, bool[topics]; null if the request lacks it, or has neither `true` nor
    `false`.

    Kafka accepts these words in upper and lower case (ConfigDef.parseType); its own tools send lower case. configs: the
    level of the topics' configurations.
    """
    return compute.equal(chosen_words(exchanges, topics, configs, _REMOTE_STORAGE_ENABLE, ("false", "true")), "true")


def chosen_words(exchanges: Exchanges, topics: int, configs: Level, config: int, words: Sequence[str]) -> pa.Array[Any]:
    """The value of a configuration for each topic, string[topics]; null if it has none, or one that is not in `words`.

    configs: the level of the topics' configurations. config: the hash of the configuration's name.
    """
    arena = exchanges.frames.arena
    rows = np.flatnonzero(hash_spans(arena, *configs.span("name")) == config)
    starts, lengths = configs.span("value")
    hashes = hash_spans(arena, starts[rows], lengths[rows])
    given = np.full(topics, -1)
    for number, word in enumerate(words):
        given[configs.parent[rows[hashes == hash_of(word.encode())]]] = number
    return pa.array(words, pa.string()).take(arrow_array(given, given >= 0))
