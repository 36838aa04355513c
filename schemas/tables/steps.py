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

TOPIC_EVENTS = table(
    "topic_events", "silver",
    "What is known of a cluster's topics: its brokers (entry 0), each partition as Metadata first shows it (1), and "
    "the changes asked for (2).",
    ("entry", "time", "connection_id", "exchange_no", "position"), "entry",
    entry=C("tinyint", "0 a broker, 1 a partition, 2 a change"),
    time=C("bigint", "When a partition was first seen, or a change asked for", "us since 1970", nullable=True),
    node_id=C("int", "As in cluster_metadata", nullable=True),
    rack=C("string", "As in cluster_metadata", nullable=True),
    topic=C("string", "Topic name, else its id", nullable=True),
    partition=C("int", "Partition seen, or to be moved", nullable=True),
    is_internal=C("boolean", "As in cluster_metadata", nullable=True),
    replica_nodes=C("array<int>", "As in cluster_metadata, when first seen", nullable=True),
    kind=C("string", "As in topic_changes", nullable=True),
    connection_id=C("bigint", "As in topic_changes", nullable=True),
    exchange_no=C("bigint", "As in topic_changes", nullable=True),
    position=C("int", "As in topic_changes", nullable=True),
    api_version=C("smallint", "Version of the request", nullable=True),
    client_id=C("string", "As in topic_changes; empty for none", nullable=True),
    num_partitions=C("int", "As in topic_changes", nullable=True),
    replication_factor=C("smallint", "As in topic_changes", nullable=True),
    assignments=C("array<string>", "As in topic_changes", nullable=True),
    validate_only=C("boolean", "As in topic_changes", nullable=True),
    error_code=C("smallint", "As in topic_changes", nullable=True),
    answered_num_partitions=C("int", "As in topic_changes", nullable=True),
    answered_replication_factor=C("smallint", "As in topic_changes", nullable=True),
)  # fmt: skip

REPEATED_LINES = table(
    "repeated_lines", "silver", "Lines of a request log that a file before theirs has too, a part of them a row.",
    ("file_no",), "file_no",
    file_no=C("int", "The file's place in the capture set"),
    lines=C("bigint", "How many lines"),
)  # fmt: skip

SESSION_EVENTS = table(
    "session_events", "silver",
    "What a broker's fetch sessions are replayed from: a row a fetch, with position -1, and one a partition of it.",
    ("connection_id", "exchange_no", "position"), "connection_id",
    shard=C("int", "Spark partition that works on the broker"),
    broker=C("string", "As in exchanges"),
    connection_id=C("bigint", "As in exchanges"),
    exchange_no=C("bigint", "As in exchanges"),
    request_time=C("bigint", "When the request had come", "us since 1970"),
    position=C("bigint", "-1 for the fetch, else the place in the order in which the broker reads; what it does not "
                         "read comes last"),
    client_id=C("string", "As in exchanges; empty for none", nullable=True),
    client_address=C("string", "As in exchanges", nullable=True),
    response_time=C("bigint", "When the response had come", "us since 1970", nullable=True),
    api_version=C("smallint", "Version of the request", nullable=True),
    session_id=C("int", "Fetch session id of the request", nullable=True),
    session_epoch=C("int", "Fetch session epoch of the request", nullable=True),
    fetch_error=C("smallint", "The response's error, of the session or else of no more than a partition",
                  nullable=True),
    throttle_time_ms=C("int", "Throttle time the response tells", "ms", nullable=True),
    request_bytes=C("bigint", "Size of the request; null where the capture does not tell", "bytes", nullable=True),
    response_bytes=C("bigint", "Size of the response; null where the capture does not tell", "bytes", nullable=True),
    is_follower=C("boolean", "As in fetch_partitions", nullable=True),
    max_wait_ms=C("int", "As in fetch_partitions", "ms", nullable=True),
    session_known=C("boolean", "As in fetch_partitions", nullable=True),
    response_session_id=C("int", "As in fetch_partitions", nullable=True),
    topic_key=C("bigint", "Hash of the topic's id where it is known, else of its name", nullable=True),
    name_length=C("int", "Bytes of the topic's name", "bytes", nullable=True),
    partition=C("int", "Partition of the topic", nullable=True),
    is_wanted=C("boolean", "The broker reads it for the fetch", nullable=True),
    is_listed=C("boolean", "The request names it", nullable=True),
    is_returned=C("boolean", "The response has it", nullable=True),
    fetch_offset=C("bigint", "As in fetch_partitions", nullable=True),
    partition_max_bytes=C("int", "As in fetch_partitions", "bytes", nullable=True),
    current_leader_epoch=C("int", "As in fetch_partitions", nullable=True),
    returned_bytes=C("bigint", "As in fetch_partitions", "bytes", nullable=True),
    high_watermark=C("bigint", "As in fetch_partitions", nullable=True),
    log_start_offset=C("bigint", "As in fetch_partitions", nullable=True),
    error_code=C("smallint", "The partition's error", nullable=True),
    preferred_read_replica=C("int", "As in fetch_partitions", nullable=True),
)  # fmt: skip
