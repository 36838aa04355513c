"""The silver tables: what the captures show. Every byte is accounted for."""

from __future__ import annotations

from schemas.tables.silver_columns import (
    BROKER,
    CAPTURE_ID,
    CLIENT_ADDRESS,
    CLIENT_ID,
    CONNECTION_ID,
    EXCHANGE_NO,
    PARTITION,
    REQUEST_TIME,
    RESPONSE_TIME,
    TOPIC,
    TOPIC_ID,
)
from schemas.tables.silver_shares import SHARE_FETCHES, SHARE_PARTITIONS
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.table import Spec as C
from schemas.tables.table import table

CAPTURES = table(
    "captures", "silver", "One row per capture file.", ("capture_id", "file_no"), "capture_id",
    capture_id=CAPTURE_ID,
    file_no=C("int", "The file's place in the capture set, by the time of its first packet"),
    path=C("string", "Where the file was read from"),
    content_hash=C("string", "SHA-256 of the file as stored"),
    format=C("string", "pcap, pcapng or request_log; for a frame dump, parquet or arrow; none for a file that is empty "
             "or no capture"),
    compression=C("string", "none, gzip or zstd"),
    size_bytes=C("bigint", "Size of the file as stored", "bytes"),
    log_lines=C("bigint", "Lines of a request log that are not blank; otherwise 0"),
    forwarded_lines=C("bigint", "... of requests that a broker had forwarded and logged itself: not counted again"),
    repeated_lines=C("bigint", "... that a file before it in the set has too, as rotated files and copies do: counted "
                               "once"),
    log_zone=C("string", "For a request log, the time zone in which its times without one are read", nullable=True),
    packets=C("bigint", "Packets in the file; here and below, the rows of a frame dump, and 0 for a request log"),
    tcp_packets=C("bigint", "Packets that are TCP segments, including those in an envelope such as VXLAN"),
    other_packets=C("bigint", "Packets of other protocols, fragments and link types that are not read"),
    malformed_packets=C("bigint", "Packets whose headers contradict themselves or are cut by the snaplen; rows that "
                                  "are wrong"),
    tcp_payload_bytes=C("bigint", "TCP payload on the wire", "bytes"),
    tcp_captured_bytes=C("bigint", "TCP payload in the file; less if the snaplen cut packets", "bytes"),
    first_time=C("timestamp", "Time of the first packet or line, by the file's own clock", "UTC", nullable=True),
    last_time=C("timestamp", "Time of the last packet or line, by the file's own clock", "UTC", nullable=True),
    doubled_packets=C("bigint", "TCP packets with payload that the file has twice within 10 ms: on two interfaces "
                                "(`-i any`), or plain and in an envelope"),
    point=C("int", "Capture point, from 0: files of one point follow one another, files of different points saw the "
                   "same packets or the same time"),
    clock_offset_us=C("bigint", "Added to the file's times everywhere else: puts them on the clock of the first point "
                                "that saw the same packets", "microseconds"),
    faults=C("array<string>", "What could not be read of the file, and from which byte or row on: docs/reasons.md "
                              "explains the words"),
    unread_bytes=C("bigint", "Bytes of the file that could not be read", "bytes"),
    decoder=C("string", "refetch's version and a digest of its decoder: `pipeline` keeps rows of the same decoder"),
    continues=C("string", "The capture set that this one goes on from (`--continue`); null for none", nullable=True),
)  # fmt: skip

CONNECTIONS = table(
    "connections", "silver",
    "One row per TCP connection. Its captured payload is framed, unframed, repeated or late: payload_bytes is their "
    "sum.",
    ("capture_id", "connection_id"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    protocol=C("string", "kafka, tls, other, or unknown if no payload shows it"),
    broker=C("string", "The broker as in exchanges; null if the connection is not Kafka's", nullable=True,
             names="endpoint"),
    cluster_id=C("string", "The cluster of the broker, from its Metadata responses or from those of other brokers "
                           "that list its address. If the capture set shows only one cluster, it is that one. Null "
                           "if nothing shows it, and if the connection is not Kafka's",
                 nullable=True),
    server=C("string", "Address and port of the side that was connected to", nullable=True, names="endpoint"),
    client=C("string", "Address and port of the side that connected", nullable=True, names="endpoint"),
    client_software_name=C("string", "As the last ApiVersions request that tells it says (KIP-511)", nullable=True),
    client_software_version=C("string", "As the last ApiVersions request that tells it says (KIP-511)", nullable=True),
    began_before_capture=C("boolean", "The capture does not show the connection being opened"),
    continuation=C("string", "Where the set goes on from another (`--continue`), for a connection begun before: "
                             "continued, not_there if the other set does not have it, does_not_fit if its requests do "
                             "not follow those there, no_request if it has none; otherwise null",
                   nullable=True),
    first_time=C("timestamp", "Time of the first packet, or logged request", "UTC"),
    last_time=C("timestamp", "Time of the last packet, or logged response", "UTC"),
    ended=C("boolean", "The capture shows its end, a FIN or RST: at last_time. Null in a request log, and in lakes of "
                       "releases that did not look for it",
            nullable=True),
    packets=C("bigint", "Packets with payload or SYN, FIN, RST; 0 in a request log, as all bytes"),
    requests=C("bigint", "Requests seen"),
    orphan_responses=C("bigint", "Responses to requests that are not in the capture"),
    one_sided=C("boolean", "All captured payload was sent by the same side; false if there is none"),
    payload_bytes=C("bigint", "Captured TCP payload of both directions", "bytes"),
    framed_bytes=C("bigint", "... that is in an exchange", "bytes"),
    unframed_bytes=C("bigint", "... that is in no Kafka frame: in quarantine, or the connection is not Kafka's",
                     "bytes"),
    sasl_token_bytes=C("bigint", "... of unframed_bytes: SASL tokens as before KIP-152, passed over and never read",
                       "bytes"),
    repeated_bytes=C("bigint", "... that was captured before: retransmissions, overlaps", "bytes"),
    late_bytes=C("bigint", "... that came too late or too far away to be placed in the stream", "bytes"),
    missing_bytes=C("bigint", "Bytes of the stream that the capture lacks", "bytes"),
    repeated_packets=C("bigint", "Packets whose every byte was captured before: retransmissions, and packets seen "
                                 "twice"),
    doubled_packets=C("bigint", "... by a capture point before theirs: the same packet in the files of two points"),
)  # fmt: skip

EXCHANGES = table(
    "exchanges", "silver", "One row per request, with its response.",
    ("capture_id", "connection_id", "exchange_no"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    client_software_name=C("string", "As the connection's last ApiVersions so far says (KIP-511)", nullable=True),
    client_software_version=C("string", "As the connection's last ApiVersions so far says (KIP-511)", nullable=True),
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
    missing_bytes=C("bigint", "Bytes of both that the capture lacks", "bytes"),
    unsent_bytes=C("bigint", "Bytes of both that were never sent: the sender ended the connection within its frame",
                   "bytes"),
    status=C("string", "answered, no_response (acks=0), unanswered, or orphan_response"),
    error_code=C("smallint", "Top-level error of the response, otherwise the first of a topic or partition. Only the "
                             "top-level one counts for Fetch, and in a request log for APIs that no other table is "
                             "made from",
                 nullable=True),
    throttle_time_ms=C("int", "Throttle time in the response", "ms", nullable=True),
    fetch_max_bytes=C("int", "max_bytes of a Fetch request, also without partitions", "bytes", nullable=True),
    fetch_replica_id=C("int", "Node id of the follower that sent a Fetch request; -1 for a consumer; null if "
                              "the request is cut", nullable=True),
    fetch_session_id=C("int", "Fetch session id of a Fetch request (KIP-227), also of one that is cut after the epoch",
                       nullable=True),
    fetch_session_epoch=C("int", "Fetch session epoch of a Fetch request (KIP-227), also of one that is cut after it",
                          nullable=True),
    fetch_rack_id=C("string", "Rack of the consumer that sent a Fetch request, its client.rack (KIP-392); empty if it "
                              "states none, null before version 11, if the request is cut, and in lakes of releases "
                              "that did not look for it", nullable=True, names="host"),
    group_id=C("string", "Group of a JoinGroup, SyncGroup, ConsumerGroupHeartbeat, ShareFetch, ShareAcknowledge or "
                         "ShareGroupHeartbeat request; null in a request log, but for ShareFetch and ShareAcknowledge",
               nullable=True, names="group"),
    member_id=C("string", "Member of the group that sent the request; null before it has an id",
                nullable=True, names="member"),
    decode_fault=C("string", "Why the body could not be decoded: docs/reasons.md explains the words", nullable=True),
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
    log_line=C("bigint", "The line of a request log that has it: file_no << 40 | number", nullable=True),
)  # fmt: skip

FETCH_PARTITIONS = table(
    "fetch_partitions", "silver",
    "One row per partition that a fetch wanted or got. An incremental fetch names only what changed (KIP-227): the "
    "rest of its session's partitions have rows too, with request_position null.",
    ("capture_id", "connection_id", "exchange_no", "topic", "partition"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    reader=C("string", "consumer or follower"),
    replica_id=C("int", "Node id of the follower, -1 for a consumer; -2 for a debugging one, such as Kafka's "
                        "ReplicaVerificationTool"),
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
    readable_known=C("boolean", "The capture shows all of them that had records to read, and from which offset. That "
                                "holds for a session from before the capture, too, once responses have named those"),
    is_delayed=C("boolean", "The high watermark in the response shows that a follower's fetch was parked "
                            "(DelayedFetch): when it came there was less than min_bytes"),
    topic=TOPIC,
    topic_id=TOPIC_ID,
    partition=PARTITION,
    request_position=C("int", "Place in the request from 0; null if the session implies the partition",
                       nullable=True),
    read_position=C("int", "Place in the order in which the broker reads; null if the fetch did not want it",
                    nullable=True),
    response_position=C("int", "Place in the response from 0; null if it is not in it", nullable=True),
    fetch_offset=C("bigint", "Offset from which records are wanted; where a session from before the capture implies "
                             "it, that of the first batch returned", nullable=True),
    partition_max_bytes=C("int", "Most record bytes wanted of the partition", "bytes", nullable=True),
    current_leader_epoch=C("int", "Leader epoch the client knows, -1 for none", nullable=True),
    last_fetched_epoch=C("int", "Leader epoch of the last record that the reader has, -1 for none (KIP-595)",
                         nullable=True),
    reader_log_start_offset=C("bigint", "Where the follower's own log begins, -1 of a consumer (KIP-107)",
                              nullable=True),
    returned_bytes=C("bigint", "Record bytes in the response, 0 if the partition is not in it; null without a response",
                     "bytes", nullable=True),
    response_record_bytes=C("bigint", "Record bytes of all partitions in the response", "bytes", nullable=True),
    high_watermark=C("bigint", "High watermark in the response, or the last one seen if the response leaves the "
                               "partition out",
                     nullable=True),
    last_stable_offset=C("bigint", "Last stable offset in the response", nullable=True),
    log_start_offset=C("bigint", "Log start offset in the response", nullable=True),
    preferred_read_replica=C("int", "Replica the consumer is sent to, -1 for none (KIP-392)", nullable=True),
    diverging_epoch=C("int", "Leader epoch from which on the reader's log differs from the leader's, -1 if it does not",
                      nullable=True),
    aborted_producer_ids=C("array<bigint>", "Producers of the aborted transactions that the response names, null for "
                                            "none", nullable=True),
    aborted_first_offsets=C("array<bigint>", "The first offset of each of them", nullable=True),
    error_code=C("smallint", "The partition's error", nullable=True),
    response_error_code=C("smallint", "The response's top-level error", nullable=True),
    throttle_time_ms=C("int", "Throttle time in the response", "ms", nullable=True),
)  # fmt: skip

RECORD_BATCHES = table(
    "record_batches", "silver",
    "One row per record batch of a produce request or a fetch response. In formats 0 and 1 it is one per entry of "
    "the message set. An entry is a message, or a wrapper of compressed ones, which is decompressed for its offsets, "
    "count and times.",
    ("capture_id", "connection_id", "exchange_no", "topic", "partition", "position"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    source=C("string", "produce or fetch"),
    api_version=C("smallint", "Version of the Produce or Fetch request", nullable=True),
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    topic=TOPIC,
    topic_id=TOPIC_ID,
    partition=PARTITION,
    position=C("int", "Place among the partition's batches in the message, from 0"),
    base_offset=C("bigint", "First offset; for a produced batch as the response says, null if there is none or a "
                            "wrapper cannot be read",
                  nullable=True),
    last_offset_delta=C("int", "Last offset minus the first", nullable=True),
    record_count=C("int", "Records in the batch", nullable=True),
    size_bytes=C("bigint", "Declared size of the batch with its header; null if cut before the size",
                 "bytes", nullable=True),
    available_bytes=C("bigint", "... of which this many are present", "bytes"),
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
    crc_valid=C("boolean", "The checksum matches; null if the batch is cut", nullable=True),
    error_code=C("smallint", "The partition's error: a produced batch is in the log only with 0", nullable=True),
    acks=C("smallint", "acks of the produce request", nullable=True),
    uncompressed_bytes=C("bigint", "Bytes of the records without compression: for wrappers; if batch_split was asked "
                                   "for at ingest, also for produced batches and compressed ones that consumers "
                                   "fetched",
                         "bytes", nullable=True),
    keyless_records=C("int", "For produced batches, as are the columns that follow except the fault: records without "
                             "key, which the client's partitioner places",
                      nullable=True),
    record_sizes=C("array<int>", "For each record, the bytes of key, value and headers with their lengths. That is "
                                 "what it takes in any batch, apart from its own length, attributes and deltas",
                   "bytes", nullable=True),
    create_times=C("array<bigint>", "Timestamp of each record", "ms since 1970", nullable=True),
    recompressed_bytes=C("array<int>", "In sampled batches: compressed bytes of the first eighth of the records, the "
                                       "first two, ..., all. They are by gzip, then by snappy, lz4 and zstd, at "
                                       "Kafka's levels",
                         "bytes", nullable=True),
    records_fault=C("string", "Why the records could not be read: docs/reasons.md explains the words", nullable=True),
)  # fmt: skip

QUARANTINE = table(
    "quarantine", "silver",
    "One row per thing that could not be decoded, or per row that a gate refused, with the reason; no content.",
    ("capture_id", "connection_id", "direction", "stream_offset", "refused_from", "refused_row"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=C("bigint", "As in connections; 0 for a line of a request log that names none"),
    direction=C("string", "request, response, or unknown before the client is known; line in a request log; row for a "
                          "row of a table that a gate refused"),
    stream_offset=C("bigint", "Place in what that side sent, from the first byte the capture could have. For a line "
                              "it is the same as packet; null for a refused row", "bytes", nullable=True),
    exchange_no=C("bigint", "The exchange it belongs to; null for bytes in no frame", nullable=True),
    reason=C("string",
             "Why: docs/reasons.md explains the words; for a row that a gate refused, its rules' names"),
    bytes=C("bigint", "Captured bytes that the reason concerns; 0 for a refused row of a table other than exchanges",
            "bytes"),
    missing_bytes=C("bigint", "Bytes of the frame that were sent and that the capture lacks", "bytes"),
    time=C("timestamp", "When the first of the bytes was captured; null for a line without a time", "UTC",
           nullable=True),
    packet=C("bigint", "The packet that carried it, or the line from 0: file_no << 40 | number; null for a refused row",
             nullable=True),
    refused_from=C("string", "The table that a gate took the row from; null if none did", nullable=True),
    refused_row=C("string", "That row, as JSON", nullable=True),
)  # fmt: skip

CAPTURE_QUALITY = table(
    "capture_quality", "silver", "What the capture lacks: one row per connection, and one for the capture set.",
    ("capture_id", "connection_id"), "capture_id",
    capture_id=CAPTURE_ID,
    scope=C("string", "connection or capture set"),
    connection_id=C("bigint", "The connection; null in the row of the capture set", nullable=True),
    protocol=C("string", "The connection's, as in connections", nullable=True),
    broker=C("string", "The connection's, as in connections", nullable=True, names="endpoint"),
    client=C("string", "The connection's, as in connections", nullable=True, names="endpoint"),
    connections=C("bigint", "TCP connections"),
    foreign_connections=C("bigint", "... that are TLS, another protocol, or without payload that shows which"),
    connections_begun_before=C("bigint", "... that the capture does not show being opened"),
    payload_bytes=C("bigint", "Captured TCP payload", "bytes"),
    repeated_bytes=C("bigint", "... that was captured before", "bytes"),
    foreign_bytes=C("bigint", "... of foreign connections", "bytes"),
    quarantined_bytes=C("bigint", "... of Kafka connections that is in no frame", "bytes"),
    missing_bytes=C("bigint", "Bytes of the streams that the capture lacks", "bytes"),
    missing_share=C("double", "missing_bytes of all bytes that the streams had"),
    exchanges=C("bigint", "Requests, and responses nobody asked for"),
    unanswered_requests=C("bigint", "... requests whose response is not in the capture"),
    orphan_responses=C("bigint", "... responses whose request is not in the capture"),
    cut_exchanges=C("bigint", "... with missing bytes"),
    undecoded_exchanges=C("bigint", "... with a body that could not be decoded"),
    fetches=C("bigint", "Fetches that name a partition or are in a session"),
    fetches_of_unknown_sessions=C("bigint", "... that could read more than the capture shows, because their session is "
                                            "from before it (KIP-227)"),
    continued_connections=C("bigint", "Kafka connections that go on from the set before (`--continue`)", nullable=True),
    uncontinued_connections=C("bigint", "... that were begun before and are not in that set, or do not fit it: "
                                        "connections.continuation says which", nullable=True),
    unnamed_connections=C("bigint", "Connections to a broker whose node id is not known, so that each of its "
                                    "listeners counts as a broker. Controllers' listeners are no brokers"),
    unnamed_brokers=C("array<string>", "Those brokers, in the row of the capture set the first 20: address, port, "
                                       "why the node id is not known, what to do"),
    other_brokers=C("array<string>", "Brokers that are not Apache Kafka's, in the row of the capture set the first 20: "
                                     "the broker, and whose it is as in cluster_metadata; null in lakes of releases "
                                     "that did not look for them",
                    nullable=True),
)  # fmt: skip

LOG_AGREEMENT = table(
    "log_agreement", "silver",
    "Packets beside the request logs of the same traffic: one row per broker and compared column of exchanges, and "
    "one for the requests themselves. No rows if only one of the two was given.",
    ("capture_id", "broker", "field"), "capture_id",
    capture_id=CAPTURE_ID,
    broker=BROKER,
    field=C("string", "The column; request for whether a request is there at all"),
    in_both=C("bigint", "Requests in both packets and log; for a column, those for which both have the value"),
    different=C("bigint", "... with different values; for the requests, those that differ in any column"),
    only_in_packets=C("bigint", "Requests that the log lacks; for a column, values"),
    only_in_log=C("bigint", "Requests that the packets lack; for a column, values"),
    different_connection_id=C("bigint", "The first exchange that differs: its connection", nullable=True),
    different_exchange_no=C("bigint", "... and its number", nullable=True),
    log_behind_us=C("bigint", "By how much the log's time of a response is later than the packets', the median. It "
                              "is hours if the log's times are not UTC; null but for the requests",
                    "microseconds", nullable=True),
)  # fmt: skip

DECODED = (
    CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, SHARE_FETCHES, SHARE_PARTITIONS, RECORD_BATCHES, CLUSTER_METADATA,
    TOPIC_CHANGES, QUARANTINE,
)  # fmt: skip
"""The tables that are decoded from packets together."""
SILVER = (CAPTURES, CAPTURE_QUALITY, LOG_AGREEMENT, *DECODED)
