"""Rows between silver and gold. They are never stored, but declared like tables.

In rows that go to workers in bulk, a missing list is empty and not null. Spark asks how large an Arrow batch is after
each row that it adds, and Arrow's ListVector then goes over all nulls since its last list.
"""

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
    "request_time": C("bigint", "When the request had arrived", "us since 1970"),
    "response_time": C("bigint", "When the response had arrived", "us since 1970"),
    "api_version": C("smallint", "Version of the Fetch request", nullable=True),
    "max_wait_ms": C("int", "Longest wait that the request allows", "ms"),
    "max_bytes": C("int", "Most record bytes the response may have", "bytes"),
    "min_bytes": C("int", "Least record bytes for which the broker answers before max_wait_ms", "bytes", nullable=True),
    "in_session": C("boolean", "The fetch belongs to a session, or opens one (KIP-227)", nullable=True),
    "opens_session": C("boolean", "The fetch names all its partitions and asks for a session", nullable=True),
    "profile": C("tinyint", "Whose rules the client follows: see udfs.replay.fetch_max_bytes.settings", nullable=True),
    "fetch_offset": C("bigint", "Where a read begins", nullable=True),
    "response_bound": C(
        "bigint", "High watermark or last stable offset in the response: a consumer can read up to it", nullable=True
    ),
    "readable_known": C("boolean", "All partitions that had something to read for the fetch are known"),
    "redirected": C(
        "boolean", "The broker sent the consumer to another replica, or refused the partition with an error"
    ),
    "sent_to_replica": C("boolean", "The leader sent the consumer to another replica (KIP-392)", nullable=True),
    "may_be_remote": C("boolean", "What was read may have been in remote storage (KIP-405)", nullable=True),
    "refused": C("boolean", "The response has a top-level error"),
    "throttled": C("boolean", "The broker held the response back because of a quota"),
    "throttle_ms": C("int", "throttle_time_ms of the response", "ms"),
    "read_position": C("int", "Place in the order in which the broker reads"),
    "partition_max_bytes": C("int", "Most record bytes that the reader wants of the partition", "bytes"),
    "returned_bytes": C("bigint", "Record bytes in the response", "bytes"),
}

LOG_EVENTS = table(
    "log_events", "silver",
    "The rows from which a partition's log is rebuilt, and the reads of it.",
    ("topic", "partition", "kind"), "topic",
    topic=C("string", "Topic name"),
    topic_key=C("string", "Topic id if it is known, else the name"),
    partition=C("int", "Partition of the topic"),
    kind=C("tinyint", "-1 an aborted transaction, 0 a batch, 1 a read that shows where the log or a segment ended, "
                      "2 a read"),
    position=C("bigint", "Base offset of the batch; first offset of the transaction; for a read, time of the request"),
    last_offset=C("bigint", "Last offset of the batch", nullable=True),
    size_bytes=C("bigint", "Size of the batch", "bytes", nullable=True),
    append_after=C("bigint", "A produced batch was appended after this time; null for fetched batches",
                   "us since 1970", nullable=True),
    append_before=C("bigint", "The batch was appended before this time", "us since 1970", nullable=True),
    is_old_format=C("boolean", "The batch is a message or a wrapper of format 0 or 1", nullable=True),
    is_sparse=C("boolean", "The batch has fewer records than offsets, because compaction removed some", nullable=True),
    records=C("bigint", "Records of the batch that a consumer can get; 0 for the end marker of a transaction",
              nullable=True),
    producer_id=C("bigint", "Producer of the aborted transaction, or of a batch in a transaction; null for other "
                            "batches", nullable=True),
    is_control=C("boolean", "The batch is the end marker of a transaction", nullable=True),
    reads_committed=C("boolean", "The read leaves out aborted transactions (isolation.level)", nullable=True),
    leader_epoch=C("int", "Leader epoch at which a fetched batch was appended; null for produced batches",
                   nullable=True),
    bound_low=C("bigint", "Least offset up to which the read could go; null if only the times of appends show it",
                nullable=True),
    bound_high=C("bigint", "Greatest offset up to which the read could go; null if only the times of appends show it",
                 nullable=True),
    bound_known=C("boolean", "It is known up to where the read could go, or the times of appends show it",
                  nullable=True),
    response_record_bytes=C("bigint", "Record bytes of all partitions in the response", "bytes", nullable=True),
    found_nothing=C("boolean", "A follower's fetch was parked because no partition had any records for it",
                    nullable=True),
    **_FETCH,
)  # fmt: skip

READS = table(
    "reads", "silver",
    "One row per partition that a fetch read, with what there was to read. The rows before them, with an exchange_no "
    "below 0, have what is known about the logs that each connection read. Spark handles every column of a row by "
    "itself when it moves rows, so only texts and sort keys have columns of their own.",
    ("connection_id", "exchange_no", "read_position"), "connection_id",
    group=C("string", "Name of the readers that are replayed together: they share a quota in some lane, or they are "
                      "the fetchers of one follower and some lane changes their number. Empty for a reader that is "
                      "replayed alone"),
    topic=C("string", "Topic name"),
    **{name: _FETCH[name] for name in ("broker", "client_address", "client_id", "reader", "connection_id",
                                       "exchange_no", "request_time", "read_position")},
    numbers=C("binary", "The numbers of the read, a record CARRIED of udfs.replay.fetch_max_bytes.state"),
    lists=C("binary", "Sizes of the batches from the first one to read on, as far as they are known, int32 each. In a "
                      "row about a log: its batches, records READABLE_BATCH of udfs.replay.fetch_max_bytes.state"),
)  # fmt: skip

TOPIC_EVENTS = table(
    "topic_events", "silver",
    "The brokers of a cluster, each partition of a topic id as Metadata first shows it, and the requested changes of "
    "topics.",
    ("entry", "time", "connection_id", "exchange_no", "position"), "entry",
    entry=C("tinyint", "0 a broker, 1 a partition, 2 a change"),
    time=C("bigint", "When a partition was first seen, or a change requested", "us since 1970", nullable=True),
    node_id=C("int", "As in cluster_metadata", nullable=True),
    rack=C("string", "As in cluster_metadata", nullable=True),
    topic=C("string", "Topic name, else its id", nullable=True),
    topic_id=C("string", "As in cluster_metadata; null for a change", nullable=True),
    partition=C("int", "The partition that was seen, or is to be moved", nullable=True),
    is_internal=C("boolean", "As in cluster_metadata", nullable=True),
    replica_nodes=C("array<int>", "As in cluster_metadata, when first seen", nullable=True),
    kind=C("string", "As in topic_changes", nullable=True),
    connection_id=C("bigint", "As in topic_changes", nullable=True),
    exchange_no=C("bigint", "As in topic_changes", nullable=True),
    position=C("int", "As in topic_changes", nullable=True),
    api_version=C("smallint", "Version of the request", nullable=True),
    client_id=C("string", "As in topic_changes; empty for none", nullable=True),
    principal=C("string", "As in exchanges; empty for none", nullable=True),
    produce_requests=C("bigint", "Produce requests with batches for the topic, from the change to the topic's next one",
                       nullable=True),
    fetch_requests=C("bigint", "Consumers' Fetch requests for the topic in that time", nullable=True),
    metadata_requests=C("bigint", "Metadata requests that name the topic in that time", nullable=True),
    num_partitions=C("int", "As in topic_changes", nullable=True),
    replication_factor=C("smallint", "As in topic_changes", nullable=True),
    assignments=C("array<string>", "As in topic_changes", nullable=True),
    configs=C("int", "As in topic_changes", nullable=True),
    validate_only=C("boolean", "As in topic_changes", nullable=True),
    error_code=C("smallint", "As in topic_changes", nullable=True),
    answered_num_partitions=C("int", "As in topic_changes", nullable=True),
    answered_replication_factor=C("smallint", "As in topic_changes", nullable=True),
)  # fmt: skip

TOPIC_USES = table(
    "topic_uses", "silver", "The requests that use a topic after a change of it and before the next change.",
    ("change", "api_key", "connection_id", "exchange_no"), "change",
    change=C("bigint", "The index of the change among all changes"),
    api_key=C("smallint", "Kafka's API key"),
    connection_id=C("bigint", "As in exchanges"),
    exchange_no=C("bigint", "As in exchanges"),
)  # fmt: skip

REPEATED_LINES = table(
    "repeated_lines", "silver",
    "How many lines of a request log an earlier file also has. A file may have several rows.",
    ("file_no",), "file_no",
    file_no=C("int", "The file's place in the capture set"),
    lines=C("bigint", "How many such lines there are in a part of the file"),
)  # fmt: skip

EXCHANGE_COUNTS = table(
    "exchange_counts", "silver",
    "How many of a connection's exchanges are not whole, and why. A connection may have several rows, each about a "
    "part of its exchanges.",
    ("connection_id",), "connection_id",
    connection_id=C("bigint", "As in exchanges"),
    exchanges=C("bigint", "As in capture_quality"),
    unanswered_requests=C("bigint", "As in capture_quality"),
    orphan_responses=C("bigint", "As in capture_quality"),
    cut_exchanges=C("bigint", "As in capture_quality"),
    undecoded_exchanges=C("bigint", "As in capture_quality"),
    fetches=C("bigint", "As in capture_quality"),
    fetches_of_unknown_sessions=C("bigint", "As in capture_quality"),
)  # fmt: skip

SESSION_EVENTS = table(
    "session_events", "silver",
    "The rows from which a broker's fetch sessions are replayed: one per fetch, with position -1, and one per "
    "partition of the fetch.",
    ("connection_id", "exchange_no", "position"), "connection_id",
    broker=C("string", "As in exchanges"),
    life=C("int", "How often all connections to the broker had ended before this one was opened; each time, the broker "
                  "may have been restarted"),
    connection_id=C("bigint", "As in exchanges"),
    exchange_no=C("bigint", "As in exchanges"),
    request_time=C("bigint", "When the request had arrived", "us since 1970"),
    position=C("bigint", "-1 for the fetch, else the partition's place in the order in which the broker reads; "
                         "partitions that it does not read come last"),
    client_id=C("string", "As in exchanges; empty for none", nullable=True),
    client_address=C("string", "As in exchanges", nullable=True),
    response_time=C("bigint", "When the response began to arrive; by then the broker had decided about the session",
                    "us since 1970", nullable=True),
    api_version=C("smallint", "Version of the request", nullable=True),
    session_id=C("int", "Fetch session id of the request", nullable=True),
    session_epoch=C("int", "Fetch session epoch of the request; null if it is cut off", nullable=True),
    is_cut=C("boolean", "The request is cut off before it shows who sends it and which partitions it names",
             nullable=True),
    fetch_error=C("smallint", "The response's top-level error, or else the first error of a partition", nullable=True),
    throttle_time_ms=C("int", "Throttle time in the response", "ms", nullable=True),
    is_follower=C("boolean", "A follower sends it", nullable=True),
    request_bytes=C("bigint", "Size of the request; null if the capture does not show it", "bytes", nullable=True),
    response_bytes=C("bigint", "Size of the response; null if the capture does not show it", "bytes", nullable=True),
    max_wait_ms=C("int", "As in fetch_partitions", "ms", nullable=True),
    session_known=C("boolean", "As in fetch_partitions", nullable=True),
    response_session_id=C("int", "As in fetch_partitions", nullable=True),
    topic_key=C("bigint", "Hash of the topic's id, or of its name if the request names topics", nullable=True),
    name_length=C("int", "Bytes of the topic's name", "bytes", nullable=True),
    partition=C("int", "Partition of the topic", nullable=True),
    is_wanted=C("boolean", "The broker reads the partition for the fetch", nullable=True),
    is_listed=C("boolean", "The request names the partition", nullable=True),
    is_returned=C("boolean", "The response has the partition", nullable=True),
    fetch_offset=C("bigint", "As in fetch_partitions", nullable=True),
    partition_max_bytes=C("int", "As in fetch_partitions", "bytes", nullable=True),
    current_leader_epoch=C("int", "As in fetch_partitions", nullable=True),
    last_fetched_epoch=C("int", "As in fetch_partitions", nullable=True),
    reader_log_start_offset=C("bigint", "As in fetch_partitions", nullable=True),
    returned_bytes=C("bigint", "As in fetch_partitions", "bytes", nullable=True),
    high_watermark=C("bigint", "As in fetch_partitions", nullable=True),
    log_start_offset=C("bigint", "As in fetch_partitions", nullable=True),
    error_code=C("smallint", "The partition's error", nullable=True),
    preferred_read_replica=C("int", "As in fetch_partitions", nullable=True),
    diverging_epoch=C("int", "As in fetch_partitions", nullable=True),
)  # fmt: skip

SHARE_EVENTS = table(
    "share_events", "silver",
    "The rows from which a broker's share sessions are replayed: one per ShareFetch or ShareAcknowledge request, and "
    "one per response to a request that closes a session. A connection has a row for its end, and a row for its "
    "beginning if that was before the capture.",
    ("broker", "time", "kind", "connection_id", "exchange_no"), "broker",
    broker=C("string", "As in share_fetches"),
    life=C("int", "How often all connections to the broker had ended before this one was opened; each time, the broker "
                  "may have been restarted"),
    time=C("bigint", "When the request or the response had arrived, or when the connection began or ended",
           "us since 1970"),
    kind=C("tinyint", "What happens, as numbered by udfs.replay.session_cache.share_sessions.state"),
    connection_id=C("bigint", "As in share_fetches"),
    exchange_no=C("bigint", "As in share_fetches; -1 for a connection"),
    ended_time=C("bigint", "When the connection ended, null if that is not known", "us since 1970", nullable=True),
    is_logged=C("boolean", "The connection is in a request log, whose last response counts as its end"),
    client_id=C("string", "As in share_fetches; empty for none", nullable=True),
    group_id=C("string", "As in share_fetches; empty for none", nullable=True),
    member_id=C("string", "As in share_fetches; empty for none", nullable=True),
    share_session_epoch=C("int", "As in share_fetches", nullable=True),
    is_acknowledge=C("boolean", "The request is a ShareAcknowledge", nullable=True),
    error_code=C("smallint", "Top-level error of the response; null without one", nullable=True),
)  # fmt: skip

PRODUCE_EVENTS = table(
    "produce_events", "silver",
    "The rows from which producers' quotas are replayed: one per Produce request, and one per record batch whose "
    "timestamps say when its last record was made.",
    ("connection_id", "exchange_no", "made_time"), "unit",
    unit=C("string", "The first of the producers that share quotas in some lane, or the producer itself"),
    time=C("bigint", "When the request had arrived", "us since 1970"),
    connection_id=C("bigint", "As in exchanges"),
    exchange_no=C("bigint", "As in exchanges"),
    made_time=C("bigint", "For a batch, the greatest timestamp of its records; null for a request. All columns below "
                          "are null for a batch", "us since 1970", nullable=True),
    client_id=C("string", "As in exchanges; empty for none", nullable=True),
    client_address=C("string", "As in exchanges", nullable=True),
    broker=C("string", "As in exchanges", nullable=True),
    response_time=C("bigint", "When the response began to arrive; null without a response", "us since 1970",
                    nullable=True),
    api_version=C("smallint", "Version of the request", nullable=True),
    size=C("bigint", "Bytes of the request without its size field", "bytes", nullable=True),
    throttle_time_ms=C("int", "Throttle time in the response", "ms", nullable=True),
    is_answered=C("boolean", "The request has acks other than 0, so the broker answers it", nullable=True),
    began_before=C("boolean", "The capture does not show how the connection began", nullable=True),
)  # fmt: skip

SENT = table(
    "sent", "silver",
    "One row per batch of a produce request, in the order in which a client began to fill the batches.",
    ("client_id", "client_address", "append_from"), "topic",
    client_id=C("string", "As in record_batches; empty for none, and for all clients if those of an address count as "
                          "one process"),
    client_address=C("string", "As in record_batches; with the port of its first connection for each of several "
                               "processes that share client_id and address"),
    topic=C("string", "As in record_batches"),
    partition=C("int", "As in record_batches"),
    append_from=C("bigint", "When the first record was appended: its timestamp if that can be by the client's clock, "
                            "else request_time", "us since 1970"),
    request_time=C("bigint", "As in record_batches", "us since 1970"),
    response_time=C("bigint", "As in record_batches", "us since 1970", nullable=True),
    connection_id=C("bigint", "As in record_batches"),
    exchange_no=C("bigint", "As in record_batches"),
    position=C("int", "As in record_batches"),
    size_bytes=C("bigint", "As in record_batches", "bytes"),
    codec=C("string", "As in record_batches"),
    base_sequence=C("int", "As in record_batches; -1 without a producer id"),
    producer_id=C("bigint", "As in record_batches"),
    producer_epoch=C("smallint", "As in record_batches"),
    error_code=C("smallint", "As in record_batches", nullable=True),
    uncompressed_bytes=C("bigint", "As in record_batches", "bytes", nullable=True),
    keyless_records=C("int", "As in record_batches", nullable=True),
    record_sizes=C("array<int>", "As in record_batches, empty for null", "bytes"),
    create_times=C("array<bigint>", "As in record_batches, empty for null", "ms since 1970"),
    recompressed_bytes=C("array<int>", "As in record_batches, empty for null", "bytes"),
    is_java=C("boolean", "The client is, or may be, Apache Kafka's"),
    is_told_apart=C("boolean", "It is known which of the processes that share client_id and address sent it"),
    halves=C("boolean", "The client is, or may be, Apache Kafka's of release 4.2 or later"),
    linger_ms=C("int", "Default of linger.ms in the client's release, or in the newest one if it does not say its "
                       "release", "ms"),
    began_before=C("boolean", "The connection was opened before the capture began"),
    max_message_bytes=C("bigint", "As in topic_changes, from the last request that created the topic", "bytes",
                        nullable=True),
    stored_codec=C("string", "Codec in which brokers compress the topic's batches anew; null if they are not known to "
                             "do that", nullable=True),
)  # fmt: skip
