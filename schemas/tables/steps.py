"""Rows on their way from silver to gold: never stored, declared like tables."""

from __future__ import annotations

from schemas.tables.table import Spec as C
from schemas.tables.table import table

_FETCH = {
    "broker": C("string", "As in fetch_partitions"),
    "client_address": C("string", "As in fetch_partitions"),
    "client_id": C("string", "As in fetch_partitions; empty for none"),
    "reader": C("string", "consumer or follower"),
    "connection_id": C("bigint", "As in fetch_partitions"),
    "exchange_no": C("bigint", "As in fetch_partitions"),
    "request_time": C("bigint", "When the request had come", "us since 1970"),
    "response_time": C("bigint", "When the response had come", "us since 1970"),
    "max_wait_ms": C("int", "Longest wait the request allows", "ms"),
    "max_bytes": C("int", "Most record bytes the response may have", "bytes"),
    "session_known": C("boolean", "All partitions that the fetch wanted are known"),
    "redirected": C(
        "boolean", "The broker sent the consumer to another replica, or refused the partition with an error"
    ),
    "refused": C("boolean", "The response has a top-level error"),
    "throttled": C("boolean", "The broker held the response back for a quota"),
    "read_position": C("int", "Place in the order in which the broker reads"),
    "partition_max_bytes": C("int", "Most record bytes wanted of the partition", "bytes"),
    "returned_bytes": C("bigint", "Record bytes in the response", "bytes"),
}

LOG_EVENTS = table(
    "log_events", "silver",
    "What a partition's log is pieced together from (kind 0: a batch; 1: where a follower found the log to end), and "
    "the reads of it (kind 2).",
    ("topic", "partition", "kind"), "topic",
    shard=C("int", "Spark partition that works on the log"),
    topic=C("string", "Topic name"),
    topic_key=C("string", "Topic id where it is known, else the name"),
    partition=C("int", "Partition of the topic"),
    kind=C("tinyint", "0 a batch, 1 a follower's read as a witness of the log end, 2 a read"),
    position=C("bigint", "A batch's base offset; else the time of the request"),
    last_offset=C("bigint", "Last offset of a batch", nullable=True),
    size_bytes=C("bigint", "Size of a batch", "bytes", nullable=True),
    append_after=C("bigint", "A batch was appended after this; null where no produce request shows it",
                   "us", nullable=True),
    append_before=C("bigint", "A batch was appended before this", "us", nullable=True),
    fetch_offset=C("bigint", "Where a read begins", nullable=True),
    bound_low=C("bigint", "Offset up to which a read could go at least; null: known by appends alone", nullable=True),
    bound_high=C("bigint", "Offset up to which a read could go at most; null: known by appends alone", nullable=True),
    bound_known=C("boolean", "The reader's bound is known, or can be told by appends", nullable=True),
    response_record_bytes=C("bigint", "Record bytes of all partitions in the response", "bytes", nullable=True),
    **_FETCH,
)  # fmt: skip

READS = table(
    "reads", "silver",
    "One row a partition that a fetch read, with what was there to be read.",
    ("connection_id", "exchange_no", "read_position"), "connection_id",
    topic=C("string", "Topic name"),
    partition=C("int", "Partition of the topic"),
    **_FETCH,
    bound_known=C("boolean", "Up to where the read could go is known"),
    log_known=C("boolean", "Which batches there were up to that bound is known"),
    batch_sizes=C("array<int>", "Sizes of the batches from the first one to be read on, as far as they are known",
                  "bytes"),
    available_low=C("bigint", "Bytes that were there to be read, at least", "bytes"),
    available_high=C("bigint", "Bytes that were there to be read, at most", "bytes"),
    first_append=C("bigint", "When the first batch could be appended that may or may not have been there",
                   "us", nullable=True),
    available_first=C("bigint", "Bytes that were there with that batch", "bytes"),
)  # fmt: skip

SENT = table(
    "sent", "silver",
    "One row a batch of a produce request, in the order in which a client began to fill them.",
    ("client_id", "client_address", "append_from"), "topic",
    shard=C("int", "Spark partition that works on the client"),
    client_id=C("string", "As in record_batches; empty for none, and where all clients of an address are one process"),
    client_address=C("string", "As in record_batches"),
    topic=C("string", "As in record_batches"),
    partition=C("int", "As in record_batches"),
    append_from=C("bigint", "When the first record was appended: its timestamp where that can be the client's clock, "
                            "else request_time", "us since 1970"),
    request_time=C("bigint", "As in record_batches", "us since 1970"),
    response_time=C("bigint", "As in record_batches", "us since 1970", nullable=True),
    connection_id=C("bigint", "As in record_batches"),
    exchange_no=C("bigint", "As in record_batches"),
    position=C("int", "As in record_batches"),
    size_bytes=C("bigint", "As in record_batches", "bytes"),
    codec=C("string", "As in record_batches"),
    base_sequence=C("int", "As in record_batches"),
    producer_id=C("bigint", "As in record_batches"),
    producer_epoch=C("smallint", "As in record_batches"),
    error_code=C("smallint", "As in record_batches", nullable=True),
    uncompressed_bytes=C("bigint", "As in record_batches", "bytes", nullable=True),
    keyless_records=C("int", "As in record_batches", nullable=True),
    record_sizes=C("array<int>", "As in record_batches", "bytes", nullable=True),
    create_times=C("array<bigint>", "As in record_batches", "ms since 1970", nullable=True),
    recompressed_bytes=C("array<int>", "As in record_batches", "bytes", nullable=True),
    is_java=C("boolean", "The client is Apache Kafka's, or does not tell what it is"),
    halves=C("boolean", "... and 4.2 or later, or does not tell"),
    began_before=C("boolean", "The capture does not show the connection being opened"),
)  # fmt: skip
