"""Rows between silver and gold. They are never stored, but declared like tables.

In rows that go to workers in bulk, a missing list is empty and not null. For each row that Spark adds to an Arrow
batch, it asks how large the batch is, and Arrow's ListVector then goes over all nulls since its last list.
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
    "request_time": C("bigint", "When the request had come", "us since 1970"),
    "response_time": C("bigint", "When the response had come", "us since 1970"),
    "api_version": C("smallint", "Version of the Fetch request", nullable=True),
    "max_wait_ms": C("int", "Longest wait the request allows", "ms"),
    "max_bytes": C("int", "Most record bytes the response may have", "bytes"),
    "min_bytes": C("int", "Least bytes to answer with before max_wait_ms", "bytes", nullable=True),
    "in_session": C("boolean", "The fetch is of a session, or opens one (KIP-227)", nullable=True),
    "opens_session": C("boolean", "The fetch names all its partitions and asks for a session", nullable=True),
    "profile": C("tinyint", "Whose rules the client follows: see udfs.replay.fetch_max_bytes.settings", nullable=True),
    "fetch_offset": C("bigint", "Where a read begins", nullable=True),
    "response_bound": C(
        "bigint", "High watermark or last stable offset that the response has, up to which it lets read", nullable=True
    ),
    "readable_known": C("boolean", "All partitions are known that had something to be read by the fetch"),
    "redirected": C(
        "boolean", "The broker sent the consumer to another replica, or refused the partition with an error"
    ),
    "sent_to_replica": C("boolean", "The leader sent the consumer to another replica (KIP-392)", nullable=True),
    "may_be_remote": C("boolean", "What was read may have been in remote storage (KIP-405)", nullable=True),
    "refused": C("boolean", "The response has a top-level error"),
    "throttled": C("boolean", "The broker held the response back for a quota"),
    "read_position": C("int", "Place in the order in which the broker reads"),
    "partition_max_bytes": C("int", "Most record bytes wanted of the partition", "bytes"),
    "returned_bytes": C("bigint", "Record bytes in the response", "bytes"),
}

LOG_EVENTS = table(
    "log_events", "silver",
    "What a partition's log is pieced together from, and the reads of it (kind 2). Kind -1 is an aborted transaction, "
    "0 a batch, 1 where a read ended.",
    ("topic", "partition", "kind"), "topic",
    topic=C("string", "Topic name"),
    topic_key=C("string", "Topic id where it is known, else the name"),
    partition=C("int", "Partition of the topic"),
    kind=C("tinyint", "-1 an aborted transaction, 0 a batch, 1 a read as a witness of the log end and of segments' "
                      "ends, 2 a read"),
    position=C("bigint", "A batch's base offset, or the first one of a transaction; else the time of the request"),
    last_offset=C("bigint", "Last offset of a batch", nullable=True),
    size_bytes=C("bigint", "Size of a batch", "bytes", nullable=True),
    append_after=C("bigint", "A batch was appended after this; null where no produce request shows it",
                   "us", nullable=True),
    append_before=C("bigint", "A batch was appended before this", "us", nullable=True),
    is_old_format=C("boolean", "A batch is a message or wrapper of format 0 or 1", nullable=True),
    is_sparse=C("boolean", "A batch has fewer records than offsets: compaction took some", nullable=True),
    records=C("bigint", "Records of a batch that a consumer can be given: none of a transaction's end marker",
              nullable=True),
    producer_id=C("bigint", "Producer of an aborted transaction, or of a batch that is part of one; null of other "
                            "batches", nullable=True),
    is_control=C("boolean", "A batch is a transaction's end marker", nullable=True),
    reads_committed=C("boolean", "A read leaves out aborted transactions (isolation.level)", nullable=True),
    leader_epoch=C("int", "Leader epoch at which a fetched batch was appended; null of a produced one", nullable=True),
    bound_low=C("bigint", "Offset up to which a read could go at least; null: known by appends alone", nullable=True),
    bound_high=C("bigint", "Offset up to which a read could go at most; null: known by appends alone", nullable=True),
    bound_known=C("boolean", "The reader's bound is known, or can be told by appends", nullable=True),
    response_record_bytes=C("bigint", "Record bytes of all partitions in the response", "bytes", nullable=True),
    found_nothing=C("boolean", "A follower's fetch was parked for lack of any records when it came", nullable=True),
    **_FETCH,
)  # fmt: skip

READS = table(
    "reads", "silver",
    "One row per partition that a fetch read, with what was there to be read. Before them (exchange_no below 0) is "
    "what is known of the logs that each connection read. Spark takes every column of a row by itself when it moves "
    "rows. So only texts, and what it sorts by, have a column.",
    ("connection_id", "exchange_no", "read_position"), "connection_id",
    group=C("string", "Readers that are replayed together: those that share a quota in some lane, and all fetchers of "
                      "a follower if a lane has another number of them; empty for one that is replayed alone"),
    topic=C("string", "Topic name"),
    **{name: _FETCH[name] for name in ("broker", "client_address", "client_id", "reader", "connection_id",
                                       "exchange_no", "request_time", "read_position")},
    numbers=C("binary", "The numbers of a read: record CARRIED of udfs.replay.fetch_max_bytes.events"),
    lists=C("binary", "Sizes of the batches from the first one to be read on, as far as they are known: int32 each. "
                      "Of a log its batches, records BATCH of udfs.replay.fetch_max_bytes.state"),
)  # fmt: skip

TOPIC_EVENTS = table(
    "topic_events", "silver",
    "What is known of a cluster's topics: its brokers, each partition of a topic id as Metadata first shows it, and "
    "the changes asked for.",
    ("entry", "time", "connection_id", "exchange_no", "position"), "entry",
    entry=C("tinyint", "0 a broker, 1 a partition, 2 a change"),
    time=C("bigint", "When a partition was first seen, or a change asked for", "us since 1970", nullable=True),
    node_id=C("int", "As in cluster_metadata", nullable=True),
    rack=C("string", "As in cluster_metadata", nullable=True),
    topic=C("string", "Topic name, else its id", nullable=True),
    topic_id=C("string", "As in cluster_metadata; null for a change", nullable=True),
    partition=C("int", "Partition seen, or to be moved", nullable=True),
    is_internal=C("boolean", "As in cluster_metadata", nullable=True),
    replica_nodes=C("array<int>", "As in cluster_metadata, when first seen", nullable=True),
    kind=C("string", "As in topic_changes", nullable=True),
    connection_id=C("bigint", "As in topic_changes", nullable=True),
    exchange_no=C("bigint", "As in topic_changes", nullable=True),
    position=C("int", "As in topic_changes", nullable=True),
    api_version=C("smallint", "Version of the request", nullable=True),
    client_id=C("string", "As in topic_changes; empty for none", nullable=True),
    principal=C("string", "As in exchanges; empty for none", nullable=True),
    produce_requests=C("bigint", "Produce requests with batches for the topic, from a change to the next one of it",
                       nullable=True),
    fetch_requests=C("bigint", "... Fetch requests of consumers that want it", nullable=True),
    metadata_requests=C("bigint", "... Metadata requests that name it", nullable=True),
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
    "topic_uses", "silver", "The requests that use a topic after a change of it and before the next one.",
    ("change", "api_key", "connection_id", "exchange_no"), "change",
    change=C("bigint", "The change, by its place among all"),
    api_key=C("smallint", "Kafka's API key"),
    connection_id=C("bigint", "As in exchanges"),
    exchange_no=C("bigint", "As in exchanges"),
)  # fmt: skip

REPEATED_LINES = table(
    "repeated_lines", "silver", "Lines of a request log that an earlier file has too, a part of them per row.",
    ("file_no",), "file_no",
    file_no=C("int", "The file's place in the capture set"),
    lines=C("bigint", "How many lines"),
)  # fmt: skip

EXCHANGE_COUNTS = table(
    "exchange_counts", "silver", "A connection's exchanges, a part of them per row: how many are not whole, and why.",
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
    "What a broker's fetch sessions are replayed from: one row per fetch, with position -1, and one per partition of "
    "it.",
    ("connection_id", "exchange_no", "position"), "connection_id",
    broker=C("string", "As in exchanges"),
    life=C("int", "How often before all connections to the broker had ended when others were opened"),
    connection_id=C("bigint", "As in exchanges"),
    exchange_no=C("bigint", "As in exchanges"),
    request_time=C("bigint", "When the request had come", "us since 1970"),
    position=C("bigint", "-1 for the fetch, else the place in the order in which the broker reads; what it does not "
                         "read comes last"),
    client_id=C("string", "As in exchanges; empty for none", nullable=True),
    client_address=C("string", "As in exchanges", nullable=True),
    response_time=C("bigint", "When the response began to come: the broker has decided on it by then", "us since 1970",
                    nullable=True),
    api_version=C("smallint", "Version of the request", nullable=True),
    session_id=C("int", "Fetch session id of the request", nullable=True),
    session_epoch=C("int", "Fetch session epoch of the request; null where it is cut off", nullable=True),
    is_cut=C("boolean", "The request is cut: of whom it is and what it names is not told", nullable=True),
    fetch_error=C("smallint", "The response's error, of the session or else of no more than a partition",
                  nullable=True),
    throttle_time_ms=C("int", "Throttle time in the response", "ms", nullable=True),
    is_follower=C("boolean", "A follower sends it", nullable=True),
    request_bytes=C("bigint", "Size of the request; null where the capture does not tell", "bytes", nullable=True),
    response_bytes=C("bigint", "Size of the response; null where the capture does not tell", "bytes", nullable=True),
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
    "What a broker's share sessions are replayed from: one row per ShareFetch or ShareAcknowledge request, and one per "
    "response to a request that closes a session. A connection has one for its end, and for its begin if that was "
    "before the capture.",
    ("broker", "time", "kind", "connection_id", "exchange_no"), "broker",
    broker=C("string", "As in share_fetches"),
    life=C("int", "How often before all connections to the broker had ended when others were opened"),
    time=C("bigint", "When the request, or the response, had come; when the connection began or ended",
           "us since 1970"),
    kind=C("tinyint", "What happens, as numbered by udfs.replay.session_cache.share_sessions.state"),
    connection_id=C("bigint", "As in share_fetches"),
    exchange_no=C("bigint", "As in share_fetches; -1 for a connection"),
    ended_time=C("bigint", "When the connection ends, as far as is known", "us since 1970", nullable=True),
    is_logged=C("boolean", "A request log has the connection, which does not say when it ends"),
    client_id=C("string", "As in share_fetches; empty for none", nullable=True),
    group_id=C("string", "As in share_fetches; empty for none", nullable=True),
    member_id=C("string", "As in share_fetches; empty for none", nullable=True),
    share_session_epoch=C("int", "As in share_fetches", nullable=True),
    is_acknowledge=C("boolean", "The request is a ShareAcknowledge", nullable=True),
    error_code=C("smallint", "Top-level error of the response; null without one", nullable=True),
)  # fmt: skip

PRODUCE_EVENTS = table(
    "produce_events", "silver",
    "What producers' quotas are replayed from: one row per Produce request, and one per record batch of it, which says "
    "when its last record was made.",
    ("connection_id", "exchange_no", "made_time"), "unit",
    unit=C("string", "The producers that share quotas in a lane: one of them; else the producer itself"),
    time=C("bigint", "When the request had come", "us since 1970"),
    connection_id=C("bigint", "As in exchanges"),
    exchange_no=C("bigint", "As in exchanges"),
    made_time=C("bigint", "Of a batch, greatest timestamp of its records where that can be when they were made; null "
                          "here and below for what only the other kind of row has", "us since 1970", nullable=True),
    client_id=C("string", "As in exchanges; empty for none", nullable=True),
    client_address=C("string", "As in exchanges", nullable=True),
    broker=C("string", "As in exchanges", nullable=True),
    response_time=C("bigint", "When the response began to come; null also without a response", "us since 1970",
                    nullable=True),
    api_version=C("smallint", "Version of the request", nullable=True),
    size=C("bigint", "Bytes of the request without its size field", "bytes", nullable=True),
    throttle_time_ms=C("int", "Throttle time in the response", "ms", nullable=True),
    is_answered=C("boolean", "The broker answers such a request: it has acks other than 0", nullable=True),
    began_before=C("boolean", "The capture does not show how the connection began", nullable=True),
)  # fmt: skip

GROUP_FETCHES = table(
    "group_fetches", "silver",
    "The partitions that members of a consumer group fetch, of groups that several processes are members of.",
    ("group_id", "topic", "partition", "time", "connection_id", "exchange_no"), "group_id",
    group_id=C("string", "The group"),
    topic=C("string", "As in fetch_partitions", nullable=True),
    partition=C("int", "As in fetch_partitions"),
    time=C("bigint", "When the request had come", "us since 1970"),
    connection_id=C("bigint", "As in fetch_partitions"),
    exchange_no=C("bigint", "As in fetch_partitions"),
    client_id=C("string", "As in fetch_partitions; empty for none"),
    client_address=C("string", "As in fetch_partitions"),
)  # fmt: skip

LOG_BATCHES = table(
    "log_batches", "silver",
    "The batches that produce requests with acks=all brought to a partition's log, and those that fetches returned.",
    ("broker", "topic", "partition", "base_offset", "is_produced", "connection_id", "exchange_no"), "broker",
    broker=C("string", "As in record_batches"),
    topic=C("string", "As in record_batches", nullable=True),
    partition=C("int", "As in record_batches"),
    base_offset=C("bigint", "As in record_batches", nullable=True),
    is_produced=C("boolean", "A produce request brought it"),
    connection_id=C("bigint", "As in record_batches"),
    exchange_no=C("bigint", "As in record_batches"),
    request_time=C("bigint", "When the request had come", "us since 1970", nullable=True),
    response_time=C("bigint", "When the response had come", "us since 1970", nullable=True),
)  # fmt: skip

MEMORY_EVENTS = table(
    "memory_events", "silver",
    "What held memory of a consumer, a broker or a producer, by kind; of a producer these are batches alone. For a "
    "broker's produce requests a row says when a fetch returned each of their batches (kind -1). A consumer's fetches "
    "have their partitions and batches, and what they would get under other fetch limits. A row of kind 3 has many "
    "responses of a lane; one of kind 4 is as of the other member's fetch.",
    ("side", "unit", "unit_address", "time", "connection_id", "exchange_no", "kind", "lane"), "unit",
    side=C("string", "consumer, broker or producer"),
    unit=C("string", "client.id, empty for none, or the broker"),
    unit_address=C("string", "The client's IP address; empty for a broker"),
    time=C("bigint", "When the request had come, or a producer's first record was appended", "us since 1970"),
    connection_id=C("bigint", "As in exchanges"),
    exchange_no=C("bigint", "As in exchanges"),
    kind=C("tinyint", "-1 a batch that a request brought, 0 an exchange, 1 a partition, 2 a batch. 3 responses of the "
                      "closed loop, 4 a partition that another member of the group fetched next. 5 what of a response "
                      "of kind 3 is given up before it is taken"),
    started=C("bigint", "When the first byte of that message was there, null where it is not known; when a produced "
                        "batch was sent. Of kind 4, when who took the partition over had last asked to join the "
                        "group, null for never. Of kind 5, when the capture last asked for the partition",
              "us since 1970", nullable=True),
    came=C("bigint", "When the message was there whose memory counts, or that request to join, or a produced batch was "
                     "answered. Of kind 5, when its turn comes; null without an answer",
           "us since 1970", nullable=True),
    size=C("bigint", "Bytes of that message without its size field, or of a batch", "bytes", nullable=True),
    held=C("bigint", "How long its memory is held, where that depends on nothing else; of a request until its response",
           "us", nullable=True),
    released=C("bigint", "When a request was handled; a partition that is given up is asked for again, null for never",
               "us since 1970", nullable=True),
    released_by=C("tinyint", "What tells that: 0 the response, 1 a fetch of what it appended, 2 the request log",
                  nullable=True),
    max_bytes=C("bigint", "fetch.max.bytes of a fetch", "bytes", nullable=True),
    api_key=C("smallint", "Kafka's API key", nullable=True),
    closes_session=C("boolean", "It is a fetch that closes its session", nullable=True),
    librdkafka=C("bigint", "Release of librdkafka, 1000 x major + minor, of a client that is or uses it, 0 where it "
                           "does not say; null of others", nullable=True),
    broker_key=C("bigint", "Hash of the broker", nullable=True),
    partition_key=C("bigint", "Hash of topic and partition; of a produced batch also of producer id and epoch",
                    nullable=True),
    sequence=C("bigint", "Sequence number of a produced batch's first record", nullable=True),
    error_code=C("smallint", "Error of a produced batch", nullable=True),
    first_timestamp=C("bigint", "Timestamp of its first record", "ms since 1970", nullable=True),
    last_timestamp=C("bigint", "Greatest timestamp of its records", "ms since 1970", nullable=True),
    is_java=C("boolean", "A Java client sent a produced batch, or may have", nullable=True),
    fetch_offset=C("bigint", "Offset from which a fetch wants records; null where it does not", nullable=True),
    partition_max_bytes=C("bigint", "Most record bytes wanted of the partition", "bytes", nullable=True),
    returned_bytes=C("bigint", "Record bytes in the response", "bytes", nullable=True),
    end_offset=C("bigint", "Offset behind a whole batch", nullable=True),
    cut_end_offset=C("bigint", "Offset behind a batch of which not all came", nullable=True),
    records=C("bigint", "Records in a batch", nullable=True),
    compressed=C("boolean", "The batch is compressed, and whole: of a cut one a consumer decompresses nothing",
                 nullable=True),
    uncompressed=C("bigint", "Bytes of that batch without compression, with its header; null where they are not known",
                   "bytes", nullable=True),
    lane=C("int", "Fetch limits under which the closed loop gives responses: their number, 0 as captured; null else",
           nullable=True),
    responses=C("binary", "Those responses in the order of their requests: rows of closed_responses as an Arrow IPC "
                          "stream", nullable=True),
    unchecked=C("string", "Why the closed loop of the client cannot be held against the capture", nullable=True),
    left_out=C("bigint", "Responses of the client and lane that there was no room for, in the first row of those",
               nullable=True),
)  # fmt: skip

CLOSED_RESPONSES = table(
    "closed_responses", "silver", "A response that a client gets under other fetch limits, in closed loop.",
    ("number",), "connection_id",
    number=C("bigint", "Its place among those of the client and lane"),
    connection_id=C("bigint", "As in exchanges, of the first connection in whose place it came"),
    time=C("bigint", "When the request was sent", "us since 1970"),
    came=C("bigint", "When it was there", "us since 1970"),
    held=C("bigint", "How long its memory is held; null until what is given up of it, and nothing else, tells", "us",
           nullable=True),
    returned_bytes=C("bigint", "Record bytes in it", "bytes"),
    records=C("bigint", "Records that the client got on by"),
    partitions=C("bigint", "Partitions with records"),
)  # fmt: skip

SENT = table(
    "sent", "silver",
    "One row per batch of a produce request, in the order in which a client began to fill them.",
    ("client_id", "client_address", "append_from"), "topic",
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
    base_sequence=C("int", "As in record_batches; -1 without a producer id"),
    producer_id=C("bigint", "As in record_batches"),
    producer_epoch=C("smallint", "As in record_batches"),
    error_code=C("smallint", "As in record_batches", nullable=True),
    uncompressed_bytes=C("bigint", "As in record_batches", "bytes", nullable=True),
    keyless_records=C("int", "As in record_batches", nullable=True),
    record_sizes=C("array<int>", "As in record_batches, empty for null", "bytes"),
    create_times=C("array<bigint>", "As in record_batches, empty for null", "ms since 1970"),
    recompressed_bytes=C("array<int>", "As in record_batches, empty for null", "bytes"),
    is_java=C("boolean", "The client is Apache Kafka's, or does not tell what it is"),
    halves=C("boolean", "... and 4.2 or later, or does not tell"),
    linger_ms=C("int", "linger.ms by default of the client's release, of the newest one if it does not tell", "ms"),
    began_before=C("boolean", "The capture does not show the connection being opened"),
    max_message_bytes=C("bigint", "As in topic_changes, of the topic's last creation", "bytes", nullable=True),
    stored_codec=C("string", "Codec that brokers compress the topic's batches into anew, as fetched ones show; null if "
                             "they show none", nullable=True),
)  # fmt: skip
