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
from schemas.tables.silver_quality import CAPTURE_QUALITY, LOG_AGREEMENT
from schemas.tables.silver_shares import SHARE_FETCHES, SHARE_PARTITIONS
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.table import Spec as C
from schemas.tables.table import table

CAPTURES = table(
    "captures", "silver", "One row per capture file.", ("capture_id", "file_no"), "capture_id",
    capture_id=CAPTURE_ID,
    file_no=C("int", "The file's number in the capture set, in the order of first packets"),
    path=C("string", "Where the file was read from"),
    content_hash=C("string", "SHA-256 of the file as stored"),
    format=C("string", "pcap, pcapng or request_log; parquet or arrow for a frame dump; none for a file that is empty "
                       "or is no capture"),
    compression=C("string", "none, gzip or zstd"),
    size_bytes=C("bigint", "Size of the file as stored", "bytes"),
    log_lines=C("bigint", "Lines of a request log that are not blank; 0 for other files"),
    forwarded_lines=C("bigint", "Lines of a request log about requests that another broker had forwarded and logged "
                                "itself; they are not counted again"),
    repeated_lines=C("bigint", "Lines of a request log that an earlier file of the set has too, as with rotated files "
                               "and copies; they count once"),
    log_zone=C("string", "The time zone assumed for a request log's times that name none; null for other files",
               nullable=True),
    packets=C("bigint", "Packets in the file. In a frame dump, each row counts as a packet, here and in the columns "
                        "below; 0 for a request log"),
    tcp_packets=C("bigint", "Packets that are TCP segments, including those inside an envelope such as VXLAN"),
    other_packets=C("bigint", "Packets that are not read: other protocols, IP fragments and unknown link types"),
    malformed_packets=C("bigint", "Packets whose headers contradict themselves or are cut by the snaplen; in a frame "
                                  "dump, wrong rows"),
    tcp_payload_bytes=C("bigint", "Bytes of TCP payload as sent on the wire", "bytes"),
    tcp_captured_bytes=C("bigint", "Bytes of TCP payload in the file; fewer than tcp_payload_bytes if the snaplen cut "
                                   "packets", "bytes"),
    first_time=C("timestamp", "Time of the first packet or log line, by the file's own clock", "UTC", nullable=True),
    last_time=C("timestamp", "Time of the last packet or log line, by the file's own clock", "UTC", nullable=True),
    doubled_packets=C("bigint", "TCP packets with payload that the file has twice within 10 ms: on two interfaces (`-i "
                                "any`), or both plain and inside an envelope"),
    point=C("int", "Number of the capture point (the place where packets were captured), from 0. Files of one point "
                   "follow one another; files of different points saw the same packets, or cover the same time"),
    clock_offset_us=C("bigint", "What all other tables add to the file's times, to put them on the clock of the first "
                                "capture point that saw the same packets", "microseconds"),
    faults=C("array<string>", "What could not be read of the file, and from which byte or row on; docs/reasons.md "
                              "explains the words"),
    unread_bytes=C("bigint", "Bytes of the file that could not be read", "bytes"),
    decoder=C("string", "refetch's version and a digest of its decoder; `pipeline` does not decode again what the same "
                        "decoder wrote"),
    continues=C("string", "The capture set that this one continues (`--continue`); null if it continues none",
                nullable=True),
)  # fmt: skip

CONNECTIONS = table(
    "connections", "silver",
    "One row per TCP connection. Every captured byte of payload is framed, unframed, repeated or late: payload_bytes "
    "is the sum of these.",
    ("capture_id", "connection_id"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    protocol=C("string", "kafka, tls or other; unknown if no payload shows it"),
    broker=C("string", "The broker, as in exchanges; null if the connection does not speak Kafka",
             nullable=True, names="endpoint"),
    cluster_id=C("string", "Id of the broker's cluster, from its own Metadata responses or from those of other brokers "
                           "that list its address; if the capture set shows only one cluster, that one. Null if "
                           "nothing shows it, or if the connection does not speak Kafka", nullable=True),
    server=C("string", "Address and port of the side that was connected to", nullable=True, names="endpoint"),
    client=C("string", "Address and port of the side that connected", nullable=True, names="endpoint"),
    client_software_name=C("string", "Name of the client's software in the last ApiVersions request that has it "
                                     "(KIP-511); null if none has", nullable=True),
    client_software_version=C("string", "Version of the client's software in the last ApiVersions request that has it "
                                        "(KIP-511); null if none has", nullable=True),
    began_before_capture=C("boolean", "The capture does not show how the connection was opened"),
    continuation=C("string", "If the capture set continues another (`--continue`) and the connection began before it: "
                             "continued; not_there if the other set does not have the connection; does_not_fit if its "
                             "requests do not follow those in the other set; no_request if it has no requests. Null "
                             "otherwise", nullable=True),
    first_time=C("timestamp", "Time of the first packet, or of the first logged request", "UTC"),
    last_time=C("timestamp", "Time of the last packet, or of the last logged response", "UTC"),
    ended=C("boolean", "The capture shows the connection's end, a FIN or RST, at last_time. Null for a request log, "
                       "and in lakes written by releases that did not look for it", nullable=True),
    packets=C("bigint", "Packets with payload, SYN, FIN or RST. In a request log this is 0, as are all counts of bytes",
              ),
    requests=C("bigint", "Requests in the capture"),
    orphan_responses=C("bigint", "Responses whose request is not in the capture"),
    one_sided=C("boolean", "All captured payload was sent by the same side; false if there is no payload"),
    payload_bytes=C("bigint", "Captured TCP payload of both directions", "bytes"),
    framed_bytes=C("bigint", "Captured payload that belongs to an exchange", "bytes"),
    unframed_bytes=C("bigint", "Captured payload that is in no Kafka frame: it is in quarantine, or the connection "
                               "does not speak Kafka", "bytes"),
    sasl_token_bytes=C("bigint", "The part of unframed_bytes that is SASL tokens sent without Kafka's header, as "
                                 "before KIP-152; they are skipped and never read", "bytes"),
    repeated_bytes=C("bigint", "Captured payload that had been captured before: retransmissions and overlaps", "bytes"),
    late_bytes=C("bigint", "Captured payload that came too late, or too far away in the stream, to be put in its place",
                 "bytes"),
    missing_bytes=C("bigint", "Bytes of the stream that the capture lacks", "bytes"),
    repeated_packets=C("bigint", "Packets of which every byte had been captured before: retransmissions, and packets "
                                 "that were captured twice"),
    doubled_packets=C("bigint", "The part of repeated_packets that another capture point had captured: the same packet "
                                "is in the files of two points"),
)  # fmt: skip

EXCHANGES = table(
    "exchanges", "silver", "One row per request, with its response. Responses without a request have rows, too.",
    ("capture_id", "connection_id", "exchange_no"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    client_software_name=C("string", "Name of the client's software in the last ApiVersions request of the connection "
                                     "so far (KIP-511); null if none has it", nullable=True),
    client_software_version=C("string", "Version of the client's software in the last ApiVersions request of the "
                                        "connection so far (KIP-511); null if none has it", nullable=True),
    api_key=C("smallint", "Kafka's API key", nullable=True),
    api_name=C("string", "Name of the API, as in Kafka's request log", nullable=True),
    api_version=C("smallint", "Version of the request and its response", nullable=True),
    correlation_id=C("int", "Correlation id of the request and its response"),
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    request_first_time=C("timestamp", "When the first byte of the request was captured; in a request log, the same as "
                                      "request_time", "UTC", nullable=True),
    response_first_time=C("timestamp", "When the first byte of the response was captured; in a request log, the same "
                                       "as response_time", "UTC", nullable=True),
    request_packet=C("bigint", "The packet that completed the request, or its line in a request log: file_no << 40 | "
                               "number", nullable=True),
    response_packet=C("bigint", "The packet that completed the response, or its line in a request log: file_no << 40 | "
                                "number", nullable=True),
    request_bytes=C("bigint", "Captured bytes of the request, including its 4-byte size; 0 in a request log", "bytes"),
    response_bytes=C("bigint", "Captured bytes of the response, including its 4-byte size; 0 in a request log",
                     "bytes"),
    missing_bytes=C("bigint", "Bytes of request and response that the capture lacks", "bytes"),
    unsent_bytes=C("bigint", "Bytes of request and response that were never sent, because a side ended the "
                             "connection within the frame", "bytes"),
    status=C("string", "answered, no_response (acks=0, so none is sent), unanswered, or orphan_response (its request "
                       "is not in the capture)"),
    error_code=C("smallint", "The response's top-level error, otherwise the first error of a topic or partition. For "
                             "Fetch, and in a request log for APIs that no other table is made from, only the "
                             "top-level error counts", nullable=True),
    throttle_time_ms=C("int", "Throttle time in the response", "ms", nullable=True),
    fetch_max_bytes=C("int", "max_bytes of a Fetch request, even if the request names no partition",
                      "bytes", nullable=True),
    fetch_replica_id=C("int", "Node id of the follower that sent a Fetch request; -1 for a consumer; null if "
                              "the request is cut", nullable=True),
    fetch_session_id=C("int", "Fetch session id of a Fetch request (KIP-227); known even for a cut request if the cut "
                              "is after the epoch", nullable=True),
    fetch_session_epoch=C("int", "Fetch session epoch of a Fetch request (KIP-227); known even for a cut request if "
                                 "the cut is after the epoch", nullable=True),
    fetch_rack_id=C("string", "Rack (client.rack) that a Fetch request states (KIP-392); empty if it states none. Null "
                              "before version 11, if the request is cut, and in lakes written by releases that did not "
                              "read it", nullable=True, names="host"),
    group_id=C("string", "Group of a JoinGroup, SyncGroup, ConsumerGroupHeartbeat, ShareFetch, ShareAcknowledge or "
                         "ShareGroupHeartbeat request; in a request log, only for ShareFetch and ShareAcknowledge",
               nullable=True, names="group"),
    member_id=C("string", "Id of the group member that sent the request; null before it has an id",
                nullable=True, names="member"),
    decode_fault=C("string", "Why the body could not be decoded; docs/reasons.md explains the words", nullable=True),
    listener=C("string", "The broker's listener, as its request log says. This column and those below are null without "
                         "a request log", nullable=True),
    security_protocol=C("string", "Security protocol of the listener", nullable=True),
    principal=C("string", "The principal as which the client is authenticated, as TYPE:NAME",
                nullable=True, names="principal"),
    request_queue_time_ms=C("double", "requestQueueTimeMs in the request log: how long the request waited for a "
                                      "request handler", "ms", nullable=True),
    local_time_ms=C("double", "localTimeMs in the request log: how long a request handler worked on the request",
                    "ms", nullable=True),
    remote_time_ms=C("double", "remoteTimeMs in the request log: how long the request waited for others, as a Fetch "
                               "does for min_bytes", "ms", nullable=True),
    api_throttle_time_ms=C("double", "throttleTimeMs in the request log (RequestChannel.Request.apiThrottleTimeMs)",
                           "ms", nullable=True),
    response_queue_time_ms=C("double", "responseQueueTimeMs in the request log: how long the response waited for a "
                                       "network thread", "ms", nullable=True),
    send_time_ms=C("double", "sendTimeMs in the request log: how long sending the response took", "ms", nullable=True),
    total_time_ms=C("double", "totalTimeMs in the request log: from the arrival of the request until the response was "
                              "sent", "ms", nullable=True),
    log_line=C("bigint", "The line of the request log about this exchange: file_no << 40 | number", nullable=True),
)  # fmt: skip

FETCH_PARTITIONS = table(
    "fetch_partitions", "silver",
    "One row per partition that a fetch asked for or got. An incremental fetch (KIP-227) names only the partitions "
    "that changed; the other partitions of its session have rows too, with request_position null.",
    ("capture_id", "connection_id", "exchange_no", "topic", "partition"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    reader=C("string", "consumer or follower; also follower for what controllers send of the metadata log, which no "
                       "replay has"),
    replica_id=C("int", "Node id of the follower; -1 for a consumer; -2 for a debugging consumer, such as Kafka's "
                        "ReplicaVerificationTool"),
    api_version=C("smallint", "Version of the Fetch request"),
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    max_wait_ms=C("int", "Longest time that the request lets the broker wait for min_bytes", "ms"),
    min_bytes=C("int", "Fewest bytes for which the broker answers before max_wait_ms is over", "bytes"),
    max_bytes=C("int", "Most record bytes the response may have (KIP-74)", "bytes"),
    isolation_level=C("tinyint", "0 for read_uncommitted, 1 for read_committed"),
    kind=C("string", "full, incremental or sessionless (KIP-227)"),
    session_id=C("int", "Fetch session id of the request"),
    session_epoch=C("int", "Fetch session epoch of the request"),
    response_session_id=C("int", "Fetch session id of the response", nullable=True),
    session_known=C("boolean", "The capture shows all partitions of the session, and so all that the fetch asked for"),
    readable_known=C("boolean", "The capture shows every partition of the fetch that had records to read, and from "
                                "which offset. For a session from before the capture this is so once responses have "
                                "named all of them"),
    is_delayed=C("boolean", "The high watermark in the response shows that a follower's fetch had to wait on the "
                            "broker (DelayedFetch): when it came, there was less than min_bytes"),
    topic=TOPIC,
    topic_id=TOPIC_ID,
    partition=PARTITION,
    request_position=C("int", "Position in the request, from 0; null if the request does not name the partition "
                              "because its session has it", nullable=True),
    read_position=C("int", "Position in the order in which the broker reads; null if the fetch did not ask for the "
                           "partition", nullable=True),
    response_position=C("int", "Position in the response, from 0; null if the response does not have the partition",
                        nullable=True),
    fetch_offset=C("bigint", "Offset from which records are asked for. If only a session from before the capture has "
                             "it, the offset of the first batch returned", nullable=True),
    partition_max_bytes=C("int", "Most record bytes asked for of the partition", "bytes", nullable=True),
    current_leader_epoch=C("int", "Leader epoch that the client knows; -1 if none", nullable=True),
    last_fetched_epoch=C("int", "Leader epoch of the last record that the reader has; -1 if none (KIP-595)",
                         nullable=True),
    reader_log_start_offset=C("bigint", "Log start offset of the follower's own log; -1 for a consumer (KIP-107)",
                              nullable=True),
    returned_bytes=C("bigint", "Record bytes of the partition in the response; 0 if the response does not have the "
                               "partition; null without a response", "bytes", nullable=True),
    response_record_bytes=C("bigint", "Record bytes of all partitions in the response", "bytes", nullable=True),
    high_watermark=C("bigint", "High watermark in the response; if the response does not have the partition, the last "
                               "one seen", nullable=True),
    last_stable_offset=C("bigint", "Last stable offset in the response", nullable=True),
    log_start_offset=C("bigint", "Log start offset in the response", nullable=True),
    preferred_read_replica=C("int", "Node id of the replica to which the consumer is sent; -1 for none (KIP-392)",
                             nullable=True),
    diverging_epoch=C("int", "Leader epoch from which on the reader's log differs from the leader's; -1 if it does not "
                             "differ", nullable=True),
    aborted_producer_ids=C("array<bigint>", "Producer ids of the aborted transactions that the response names; null if "
                                            "it names none", nullable=True),
    aborted_first_offsets=C("array<bigint>", "First offsets of the aborted transactions, in the same order as "
                                             "aborted_producer_ids", nullable=True),
    error_code=C("smallint", "The partition's error in the response", nullable=True),
    response_error_code=C("smallint", "The response's top-level error", nullable=True),
    throttle_time_ms=C("int", "Throttle time in the response", "ms", nullable=True),
)  # fmt: skip

RECORD_BATCHES = table(
    "record_batches", "silver",
    "One row per record batch in a Produce request or Fetch response. In formats 0 and 1, one row per entry of the "
    "message set: a message, or a wrapper of compressed messages. A wrapper is decompressed to get its offsets, count "
    "and times.",
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
    position=C("int", "Position among the partition's batches in the request or response, from 0"),
    base_offset=C("bigint", "Offset of the first record; for a produced batch as the response says. Null if there is "
                            "no response, or if a wrapper cannot be read", nullable=True),
    last_offset_delta=C("int", "Offset of the last record minus that of the first", nullable=True),
    record_count=C("int", "Records in the batch", nullable=True),
    size_bytes=C("bigint", "Size that the batch declares, with its header; null if the batch is cut before its size",
                 "bytes", nullable=True),
    available_bytes=C("bigint", "How many bytes of the batch are present", "bytes"),
    is_cut=C("boolean", "The request or response ends within the batch, as a fetch returns a slice of bytes (KIP-74)"),
    magic=C("tinyint", "Format of the batch: 0, 1 or 2", nullable=True),
    codec=C("string", "none, gzip, snappy, lz4 or zstd", nullable=True),
    timestamp_type=C("string", "CreateTime or LogAppendTime", nullable=True),
    base_timestamp=C("bigint", "Timestamp of the first record", "ms since 1970", nullable=True),
    max_timestamp=C("bigint", "Largest timestamp of a record", "ms since 1970", nullable=True),
    producer_id=C("bigint", "Producer id; -1 without idempotence", nullable=True),
    producer_epoch=C("smallint", "Producer epoch", nullable=True),
    base_sequence=C("int", "Sequence number of the first record", nullable=True),
    partition_leader_epoch=C("int", "Leader epoch at which the batch was appended", nullable=True),
    is_transactional=C("boolean", "The batch is part of a transaction", nullable=True),
    is_control=C("boolean", "The batch is a control batch, such as the marker at a transaction's end", nullable=True),
    crc_valid=C("boolean", "The batch matches its checksum; null if the batch is cut", nullable=True),
    error_code=C("smallint", "The partition's error in the response; a produced batch was appended only if it is 0",
                 nullable=True),
    acks=C("smallint", "acks of the Produce request", nullable=True),
    uncompressed_bytes=C("bigint", "Bytes of the records without compression. Known for wrappers; and, if `ingest` was "
                                   "asked to prepare batch_split, for produced batches and for compressed batches that "
                                   "consumers fetched", "bytes", nullable=True),
    keyless_records=C("int", "Records without a key, which the client's partitioner places. This column and those "
                             "below, except records_fault, are for produced batches only", nullable=True),
    record_sizes=C("array<int>", "For each record, the bytes of its key, value and headers with their lengths: what "
                                 "the record takes in any batch, apart from its own length, attributes and deltas",
                   "bytes", nullable=True),
    create_times=C("array<bigint>", "Timestamp of each record", "ms since 1970", nullable=True),
    recompressed_bytes=C("array<int>", "In sampled batches: compressed bytes of the first eighth of the records, of "
                                       "the first two eighths, and so on to all records; first by gzip, then by "
                                       "snappy, lz4 and zstd, at Kafka's default levels", "bytes", nullable=True),
    records_fault=C("string", "Why the records could not be read; docs/reasons.md explains the words", nullable=True),
)  # fmt: skip

QUARANTINE = table(
    "quarantine", "silver",
    "One row for each frame, range of bytes or log line that could not be decoded, and for each row that a gate "
    "refused, with the reason. Content is not kept.",
    ("capture_id", "connection_id", "direction", "stream_offset", "refused_from", "refused_row"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=C("bigint", "The connection, as in connections; 0 for a line of a request log that names none"),
    direction=C("string", "request or response; unknown if it is not known which side is the client; line for a line "
                          "of a request log; row for a row that a gate refused"),
    stream_offset=C("bigint", "Position in what that side sent, counted from the first byte that the capture could "
                              "have. For a log line, the same as packet; null for a refused row",
                    "bytes", nullable=True),
    exchange_no=C("bigint", "Number of the exchange that it belongs to; null for bytes that are in no frame",
                  nullable=True),
    reason=C("string", "Why it is here; docs/reasons.md explains the words. For a row that a gate refused, the names "
                       "of the rules"),
    bytes=C("bigint", "Captured bytes that are affected; for a refused row, 0 unless it is a row of exchanges",
            "bytes"),
    missing_bytes=C("bigint", "Bytes of the frame that were sent but are not in the capture", "bytes"),
    time=C("timestamp", "When the first of the bytes was captured; null for a log line without a time",
           "UTC", nullable=True),
    packet=C("bigint", "The packet that carried it, or the log line, from 0: file_no << 40 | number; null for a "
                       "refused row", nullable=True),
    refused_from=C("string", "The table from which a gate took the row; null if no gate did", nullable=True),
    refused_row=C("string", "The refused row as JSON; null if no gate refused it", nullable=True),
)  # fmt: skip

DECODED = (
    CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, SHARE_FETCHES, SHARE_PARTITIONS, RECORD_BATCHES, CLUSTER_METADATA,
    TOPIC_CHANGES, QUARANTINE,
)  # fmt: skip
"""The tables that are decoded from packets together."""
SILVER = (CAPTURES, CAPTURE_QUALITY, LOG_AGREEMENT, *DECODED)
