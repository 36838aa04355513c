"""The silver tables: what the captures show, every byte accounted for."""

from __future__ import annotations

from schemas.tables.table import Spec as C
from schemas.tables.table import table

CAPTURE_ID = C("string", "The capture set: a hash of the content of its files")
CONNECTION_ID = C(
    "bigint",
    "The TCP connection: a hash of its endpoints and of how often they had connected before, or "
    "of a request log's name for it",
)
EXCHANGE_NO = C("bigint", "The request's number in its connection from 0; responses nobody asked for are -1, -2, ...")
BROKER = C(
    "string", "The broker's node id where Metadata responses tell it, else its address and port", names="endpoint"
)
CLIENT_ID = C("string", "client.id of the request", nullable=True, names="client")
CLIENT_ADDRESS = C("string", "The client's IP address", names="host")
REQUEST_TIME = C(
    "timestamp",
    "When the last byte of the request was captured, or had come as the broker logged it",
    "UTC",
    nullable=True,
)
RESPONSE_TIME = C(
    "timestamp",
    "When the last byte of the response was captured, or had been sent as the broker logged it",
    "UTC",
    nullable=True,
)
TOPIC = C("string", "Topic name; the topic id where no response of the capture set names it", names="topic")
TOPIC_ID = C("string", "Topic id as Kafka prints it (url-safe base64)", nullable=True)
PARTITION = C("int", "Partition of the topic")

CAPTURES = table(
    "captures", "silver", "One row a capture file.", ("capture_id", "file_no"), "capture_id",
    capture_id=CAPTURE_ID,
    file_no=C("int", "The file's place in the capture set, by the time of its first packet"),
    path=C("string", "Where the file was read from"),
    content_hash=C("string", "SHA-256 of the file as stored"),
    format=C("string", "pcap, pcapng, request_log, or of a frame dump parquet or arrow"),
    compression=C("string", "none, gzip or zstd"),
    size_bytes=C("bigint", "Size of the file as stored", "bytes"),
    log_lines=C("bigint", "Lines of a request log that are not blank; else 0"),
    forwarded_lines=C("bigint", "... of requests that a broker had forwarded and logged itself: not counted again"),
    repeated_lines=C("bigint", "... that a file before it in the set has too, as rotated files and copies do: counted "
                               "once"),
    packets=C("bigint", "Packets in the file; of a frame dump, here and below, its rows; of a request log 0, here and "
                        "below"),
    tcp_packets=C("bigint", "Packets that are TCP segments"),
    other_packets=C("bigint", "Packets of other protocols, fragments and link types that are not read"),
    malformed_packets=C("bigint", "Packets whose headers contradict themselves or are cut by the snaplen; rows that "
                                  "are wrong"),
    tcp_payload_bytes=C("bigint", "TCP payload on the wire", "bytes"),
    tcp_captured_bytes=C("bigint", "TCP payload in the file; less where the snaplen cut packets", "bytes"),
    first_time=C("timestamp", "Time of the first packet or line, by the file's own clock", "UTC", nullable=True),
    last_time=C("timestamp", "Time of the last packet or line, by the file's own clock", "UTC", nullable=True),
    doubled_packets=C("bigint", "TCP packets with payload that the file has twice within 10 ms, as `-i any` sees them "
                                "on two interfaces"),
    point=C("int", "Capture point, from 0: the files of one follow one another, those of two saw the same packets or "
                   "the same time"),
    clock_offset_us=C("bigint", "Added to the file's times everywhere else: puts them on the clock of the first point "
                                "that saw the same packets", "microseconds"),
    faults=C("array<string>", "What could not be read of the file, and from which byte or row on"),
    unread_bytes=C("bigint", "Bytes of the file that could not be read", "bytes"),
    decoder=C("string", "refetch's version and a digest of its decoder: `pipeline` keeps rows of the same decoder"),
)  # fmt: skip

CONNECTIONS = table(
    "connections", "silver",
    "One row a TCP connection. Its captured payload is framed, unframed, repeated or late: payload_bytes is their sum.",
    ("capture_id", "connection_id"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    protocol=C("string", "kafka, tls, other, or unknown where no payload tells"),
    broker=C("string", "The broker as in exchanges; null where the connection is not Kafka's", nullable=True,
             names="endpoint"),
    server=C("string", "Address and port of the side that was connected to", nullable=True, names="endpoint"),
    client=C("string", "Address and port of the side that connected", nullable=True, names="endpoint"),
    client_software_name=C("string", "As the client's ApiVersions request says (KIP-511)", nullable=True),
    client_software_version=C("string", "As the client's ApiVersions request says (KIP-511)", nullable=True),
    began_before_capture=C("boolean", "The capture does not show the connection being opened"),
    first_time=C("timestamp", "Time of the first packet, or logged request", "UTC"),
    last_time=C("timestamp", "Time of the last packet, or logged response", "UTC"),
    packets=C("bigint", "Packets with payload or SYN, FIN, RST; 0 in a request log, as all bytes"),
    requests=C("bigint", "Requests seen"),
    orphan_responses=C("bigint", "Responses to requests that are not in the capture"),
    payload_bytes=C("bigint", "Captured TCP payload of both directions", "bytes"),
    framed_bytes=C("bigint", "... that is in an exchange", "bytes"),
    unframed_bytes=C("bigint", "... that is in no Kafka frame: in quarantine, or the connection is not Kafka's",
                     "bytes"),
    sasl_token_bytes=C("bigint", "... of unframed_bytes: SASL tokens as before KIP-152, passed over and never read",
                       "bytes"),
    repeated_bytes=C("bigint", "... that was captured before: retransmissions, overlaps", "bytes"),
    late_bytes=C("bigint", "... that came too late or too far away to be placed in the stream", "bytes"),
    missing_bytes=C("bigint", "Bytes the stream had that the capture does not", "bytes"),
    repeated_packets=C("bigint", "Packets of which every byte was captured before: retransmissions, and packets seen "
                                 "twice"),
    doubled_packets=C("bigint", "... by a capture point before theirs: the same packet in the files of two points"),
)  # fmt: skip

EXCHANGES = table(
    "exchanges", "silver", "One row a request and its response.",
    ("capture_id", "connection_id", "exchange_no"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    client_software_name=C("string", "As the connection's ApiVersions request says (KIP-511)", nullable=True),
    client_software_version=C("string", "As the connection's ApiVersions request says (KIP-511)", nullable=True),
    api_key=C("smallint", "Kafka's API key", nullable=True),
    api_name=C("string", "The API as Kafka's request log names it", nullable=True),
    api_version=C("smallint", "Version of request and response", nullable=True),
    correlation_id=C("int", "Correlation id of both"),
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    request_first_time=C("timestamp", "When the first byte of the request, and so its size, was captured; in a request "
                                      "log as request_time", "UTC", nullable=True),
    response_first_time=C("timestamp", "When the first byte of the response, and so its size, was captured; in a "
                                       "request log as response_time", "UTC", nullable=True),
    request_packet=C("bigint", "Packet that completed the request, or log line: file_no << 40 | number", nullable=True),
    response_packet=C("bigint", "Packet that completed the response, or log line: file_no << 40 | number",
                      nullable=True),
    request_bytes=C("bigint", "The request's bytes in the capture, its 4-byte size included; 0 in a request log",
                    "bytes"),
    response_bytes=C("bigint", "The response's bytes in the capture, its 4-byte size included; 0 in a request log",
                     "bytes"),
    missing_bytes=C("bigint", "Bytes of both that the capture does not have", "bytes"),
    status=C("string", "answered, no_response (acks=0), unanswered, or orphan_response"),
    error_code=C("smallint", "Top-level error of the response, else the first of a topic or partition", nullable=True),
    throttle_time_ms=C("int", "Throttle time the response tells", "ms", nullable=True),
    fetch_max_bytes=C("int", "max_bytes of a Fetch request, also without partitions", "bytes", nullable=True),
    fetch_session_id=C("int", "Fetch session id of a Fetch request (KIP-227)", nullable=True),
    fetch_session_epoch=C("int", "Fetch session epoch of a Fetch request (KIP-227)", nullable=True),
    group_id=C("string", "Group that a JoinGroup, SyncGroup, ConsumerGroupHeartbeat or ShareFetch request is of; null "
                         "in a request log",
               nullable=True, names="group"),
    member_id=C("string", "Member of the group that sent it; null before it has an id", nullable=True, names="member"),
    decode_fault=C("string", "Why the body could not be decoded", nullable=True),
    listener=C("string", "The broker's listener, as its request log says; here and below null without a log",
               nullable=True),
    security_protocol=C("string", "Security protocol of the listener", nullable=True),
    principal=C("string", "Who the client is to the broker, as TYPE:NAME", nullable=True, names="principal"),
    request_queue_time_ms=C("double", "The log's requestQueueTimeMs: until a request handler took the request", "ms",
                            nullable=True),
    local_time_ms=C("double", "The log's localTimeMs: in the request handler", "ms", nullable=True),
    remote_time_ms=C("double", "The log's remoteTimeMs: waiting for others, as a Fetch does for min_bytes", "ms",
                     nullable=True),
    api_throttle_time_ms=C("double", "The log's throttleTimeMs (RequestChannel.Request.apiThrottleTimeMs)", "ms",
                           nullable=True),
    response_queue_time_ms=C("double", "The log's responseQueueTimeMs: until a network thread took the response", "ms",
                             nullable=True),
    send_time_ms=C("double", "The log's sendTimeMs: until the response was sent", "ms", nullable=True),
    total_time_ms=C("double", "The log's totalTimeMs: from the request's arrival to that", "ms", nullable=True),
    log_line=C("bigint", "The line of a request log that tells it: file_no << 40 | number", nullable=True),
)  # fmt: skip

FETCH_PARTITIONS = table(
    "fetch_partitions", "silver",
    "One row a partition that a fetch wanted or got. An incremental fetch names only what changed (KIP-227): the rest "
    "of its session's partitions have rows too, with request_position null.",
    ("capture_id", "connection_id", "exchange_no", "topic", "partition"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    reader=C("string", "consumer or follower"),
    replica_id=C("int", "Node id of the follower, -1 for a consumer"),
    api_version=C("smallint", "Version of the Fetch request"),
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    max_wait_ms=C("int", "Longest wait the request allows", "ms"),
    min_bytes=C("int", "Least bytes to answer with before max_wait_ms", "bytes"),
    max_bytes=C("int", "Most record bytes the response may have (KIP-74)", "bytes"),
    isolation_level=C("tinyint", "0 read_uncommitted, 1 read_committed"),
    kind=C("string", "full, incremental or sessionless (KIP-227)"),
    session_id=C("int", "Fetch session id of the request"),
    session_epoch=C("int", "Fetch session epoch of the request"),
    response_session_id=C("int", "Fetch session id of the response", nullable=True),
    session_known=C("boolean", "The capture shows all partitions of the session, and so all that the fetch wanted"),
    topic=TOPIC,
    topic_id=TOPIC_ID,
    partition=PARTITION,
    request_position=C("int", "Place in the request from 0; null where the session implies the partition",
                       nullable=True),
    read_position=C("int", "Place in the order in which the broker reads; null where the fetch did not want it",
                    nullable=True),
    response_position=C("int", "Place in the response from 0; null where it is not there", nullable=True),
    fetch_offset=C("bigint", "Offset from which records are wanted", nullable=True),
    partition_max_bytes=C("int", "Most record bytes wanted of the partition", "bytes", nullable=True),
    current_leader_epoch=C("int", "Leader epoch the client knows, -1 for none", nullable=True),
    returned_bytes=C("bigint", "Record bytes in the response, 0 where the partition is not in it; null without a "
                               "response",
                     "bytes", nullable=True),
    response_record_bytes=C("bigint", "Record bytes of all partitions in the response", "bytes", nullable=True),
    high_watermark=C("bigint", "High watermark the response tells, or told last where it leaves the partition out",
                     nullable=True),
    last_stable_offset=C("bigint", "Last stable offset the response tells", nullable=True),
    log_start_offset=C("bigint", "Log start offset the response tells", nullable=True),
    preferred_read_replica=C("int", "Replica the consumer is sent to, -1 for none (KIP-392)", nullable=True),
    error_code=C("smallint", "The partition's error", nullable=True),
    response_error_code=C("smallint", "The response's top-level error", nullable=True),
    throttle_time_ms=C("int", "Throttle time the response tells", "ms", nullable=True),
)  # fmt: skip

RECORD_BATCHES = table(
    "record_batches", "silver",
    "One row a record batch of a produce request or a fetch response; in formats 0 and 1 an entry of the message set: "
    "a message, or a wrapper of compressed ones, which is decompressed for its offsets, count and times.",
    ("capture_id", "connection_id", "exchange_no", "topic", "partition", "position"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    source=C("string", "produce or fetch"),
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    topic=TOPIC,
    topic_id=TOPIC_ID,
    partition=PARTITION,
    position=C("int", "Place among the partition's batches in the message, from 0"),
    base_offset=C("bigint", "First offset; of a produced batch as the response says, null where there is none or a "
                            "wrapper cannot be read",
                  nullable=True),
    last_offset_delta=C("int", "Last offset less the first", nullable=True),
    record_count=C("int", "Records in the batch", nullable=True),
    size_bytes=C("bigint", "Declared size of the batch with its header; null where cut before the size",
                 "bytes", nullable=True),
    available_bytes=C("bigint", "... of which so many are there", "bytes"),
    is_cut=C("boolean", "The message ends within the batch: a fetch is a slice of bytes (KIP-74)"),
    magic=C("tinyint", "Format of the batch: 0, 1 or 2", nullable=True),
    codec=C("string", "none, gzip, snappy, lz4 or zstd", nullable=True),
    timestamp_type=C("string", "CreateTime or LogAppendTime", nullable=True),
    base_timestamp=C("bigint", "Timestamp of the first record", "ms since 1970", nullable=True),
    max_timestamp=C("bigint", "Greatest timestamp of a record", "ms since 1970", nullable=True),
    producer_id=C("bigint", "Producer id, -1 without idempotence", nullable=True),
    producer_epoch=C("smallint", "Producer epoch", nullable=True),
    base_sequence=C("int", "Sequence number of the first record", nullable=True),
    partition_leader_epoch=C("int", "Leader epoch at which the batch was appended", nullable=True),
    is_transactional=C("boolean", "Part of a transaction", nullable=True),
    is_control=C("boolean", "A transaction's end marker", nullable=True),
    crc_valid=C("boolean", "The checksum fits; null where the batch is cut", nullable=True),
    error_code=C("smallint", "The partition's error: a produced batch is in the log only with 0", nullable=True),
    acks=C("smallint", "acks of the produce request", nullable=True),
    uncompressed_bytes=C("bigint", "Bytes of the records without compression: of wrappers, and as what follows of "
                                   "produced batches where batch_split was asked for at ingest",
                         "bytes", nullable=True),
    keyless_records=C("int", "Records without key, which the client's partitioner places", nullable=True),
    record_sizes=C("array<int>", "Of each record, key, value and headers with their lengths: what it takes in any "
                                 "batch, but for its own length, attributes and deltas", "bytes", nullable=True),
    create_times=C("array<bigint>", "Timestamp of each record", "ms since 1970", nullable=True),
    recompressed_bytes=C("array<int>", "In sampled batches: compressed bytes of the first eighth of the records, the "
                                       "first two, ..., all, by gzip, then by snappy, lz4 and zstd, at Kafka's levels",
                         "bytes", nullable=True),
    records_fault=C("string", "Why the records could not be read: see udfs.wire.records", nullable=True),
)  # fmt: skip

CLUSTER_METADATA = table(
    "cluster_metadata", "silver",
    "One row a broker or partition in a Metadata response, or an ApiVersions response that tells the broker's release.",
    ("capture_id", "connection_id", "exchange_no", "entry", "position"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    response_time=RESPONSE_TIME,
    entry=C("string", "broker or partition; topic for a topic without partitions; release"),
    position=C("int", "Place in the response among entries of its kind, from 0"),
    node_id=C("int", "The broker's node id", nullable=True),
    host=C("string", "The host the broker advertises", nullable=True, names="host"),
    port=C("int", "The port the broker advertises", nullable=True),
    rack=C("string", "The broker's rack", nullable=True, names="host"),
    topic=C("string", "Topic name", nullable=True, names="topic"),
    topic_id=TOPIC_ID,
    is_internal=C("boolean", "An internal topic of Kafka", nullable=True),
    partition=C("int", "Partition of the topic", nullable=True),
    leader_id=C("int", "Node id of the leader, -1 for none", nullable=True),
    leader_epoch=C("int", "The leader's epoch", nullable=True),
    replica_nodes=C("array<int>", "Node ids of the replicas", nullable=True),
    isr_nodes=C("array<int>", "Node ids of the replicas in sync", nullable=True),
    error_code=C("smallint", "The entry's error", nullable=True),
    release=C("string", "Kafka release of the broker that answers: the newest one of schemas/wire/releases.py of which "
                        "it offers the APIs", nullable=True),
)  # fmt: skip

TOPIC_CHANGES = table(
    "topic_changes", "silver",
    "One row a topic that a request asks to make, delete or grow, or a partition that it asks to move; also those that "
    "were refused.",
    ("capture_id", "connection_id", "exchange_no", "position"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    kind=C("string", "create_topic, delete_topic, create_partitions, reassign_partition, or auto_create: a Metadata "
                     "request that names the topic and allows to make it, and a response that does not show it"),
    position=C("int", "Place in the request among its topics, or partitions to be moved, from 0"),
    topic=TOPIC,
    topic_id=TOPIC_ID,
    partition=C("int", "Partition to be moved", nullable=True),
    num_partitions=C("int", "Partitions asked for, -1 for the broker's default; all there shall be where some are "
                            "added",
                     nullable=True),
    replication_factor=C("smallint", "Replication factor asked for, -1 for the broker's default", nullable=True),
    assignments=C("array<string>", "PARTITION:BROKER,BROKER,... of each partition that the request places itself; null "
                                   "where Kafka is to place them, or a move is to be cancelled",
                  nullable=True),
    validate_only=C("boolean", "Nothing is to be done, only checked", nullable=True),
    error_code=C("smallint", "The error of the topic or partition, else of the whole response; null without an answer",
                 nullable=True),
    answered_num_partitions=C("int", "Partitions of the new topic as the response says", nullable=True),
    answered_replication_factor=C("smallint", "Replication factor of the new topic as the response says",
                                  nullable=True),
)  # fmt: skip

QUARANTINE = table(
    "quarantine", "silver",
    "One row a thing that could not be decoded, or a row that a gate refused, with the reason; no content.",
    ("capture_id", "connection_id", "direction", "stream_offset", "refused_from", "refused_row"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=C("bigint", "As in connections; 0 for a line of a request log that names none"),
    direction=C("string", "request, response, or unknown before the client is known; line in a request log; row "
                          "where a gate refused a row of a table"),
    stream_offset=C("bigint", "Place in what that side sent, from the first byte the capture could have; of a line "
                              "the same as packet; null for a refused row", "bytes", nullable=True),
    exchange_no=C("bigint", "The exchange it belongs to; null for bytes in no frame", nullable=True),
    reason=C("string", "Why: see the module udfs.facts.reasons; the names of the rules that refused a row"),
    bytes=C("bigint", "Bytes in hand that the reason concerns; 0 for a refused row of another table than exchanges",
            "bytes"),
    missing_bytes=C("bigint", "Bytes of the frame that the capture does not have", "bytes"),
    time=C("timestamp", "When the first of the bytes was captured; null for a line that does not tell", "UTC",
           nullable=True),
    packet=C("bigint", "The packet that brought it, or the line from 0: file_no << 40 | number; null for a refused "
                       "row", nullable=True),
    refused_from=C("string", "The table that a gate took the row out of; null where none did", nullable=True),
    refused_row=C("string", "That row, as JSON", nullable=True),
)  # fmt: skip

CAPTURE_QUALITY = table(
    "capture_quality", "silver", "What the capture lacks: one row a connection, and one for the capture set.",
    ("capture_id", "connection_id"), "capture_id",
    capture_id=CAPTURE_ID,
    scope=C("string", "connection or capture set"),
    connection_id=C("bigint", "The connection; null in the row of the capture set", nullable=True),
    protocol=C("string", "The connection's, as in connections", nullable=True),
    broker=C("string", "The connection's, as in connections", nullable=True, names="endpoint"),
    client=C("string", "The connection's, as in connections", nullable=True, names="endpoint"),
    connections=C("bigint", "TCP connections"),
    foreign_connections=C("bigint", "... that are TLS, another protocol or without payload that tells"),
    connections_begun_before=C("bigint", "... that the capture does not show being opened"),
    payload_bytes=C("bigint", "Captured TCP payload", "bytes"),
    repeated_bytes=C("bigint", "... that was captured before", "bytes"),
    foreign_bytes=C("bigint", "... of foreign connections", "bytes"),
    quarantined_bytes=C("bigint", "... of Kafka connections that is in no frame", "bytes"),
    missing_bytes=C("bigint", "Bytes the streams had that the capture does not", "bytes"),
    missing_share=C("double", "missing_bytes of all bytes that the streams had"),
    exchanges=C("bigint", "Requests, and responses nobody asked for"),
    unanswered_requests=C("bigint", "... requests whose response is not in the capture"),
    orphan_responses=C("bigint", "... responses whose request is not in the capture"),
    cut_exchanges=C("bigint", "... with missing bytes"),
    undecoded_exchanges=C("bigint", "... with a body that could not be decoded"),
    fetches=C("bigint", "Fetches that name a partition or whose session does"),
    fetches_of_unknown_sessions=C("bigint", "... in a session whose beginning the capture does not show (KIP-227)"),
)  # fmt: skip

LOG_AGREEMENT = table(
    "log_agreement", "silver",
    "Packets beside the request logs of the same traffic: one row a broker and a column of exchanges in which they are "
    "compared, and one for the requests themselves. No rows where there is one of both only.",
    ("capture_id", "broker", "field"), "capture_id",
    capture_id=CAPTURE_ID,
    broker=BROKER,
    field=C("string", "The column; request for whether a request is there at all"),
    in_both=C("bigint", "Requests that packets and log tell; of a column, those of which both tell the value"),
    different=C("bigint", "... and differently; of the requests, those that differ in any column"),
    only_in_packets=C("bigint", "Requests that the log does not tell; of a column, values"),
    only_in_log=C("bigint", "Requests that the packets do not tell; of a column, values"),
    different_connection_id=C("bigint", "The first exchange that differs: its connection", nullable=True),
    different_exchange_no=C("bigint", "... and its number", nullable=True),
    log_behind_us=C("bigint", "How much later than packets the log says that responses had gone, the median: hours "
                              "where its times are not UTC; null but for the requests",
                    "microseconds", nullable=True),
)  # fmt: skip

DECODED = (CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES, CLUSTER_METADATA, TOPIC_CHANGES, QUARANTINE)
"""What is decoded from packets, one table beside the other."""
SILVER = (CAPTURES, CAPTURE_QUALITY, LOG_AGREEMENT, *DECODED)
