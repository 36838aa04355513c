"""Rows between silver and gold of the replay of memory; see steps.py."""

from __future__ import annotations

from schemas.tables.table import Spec as C
from schemas.tables.table import table

GROUP_FETCHES = table(
    "group_fetches", "silver",
    "The partitions that members of a consumer group fetch, for groups with members in several processes.",
    ("group_id", "topic", "partition", "time", "connection_id", "exchange_no"), "group_id",
    group_id=C("string", "The group"),
    topic=C("string", "As in fetch_partitions", nullable=True),
    partition=C("int", "As in fetch_partitions"),
    time=C("bigint", "When the request had arrived", "us since 1970"),
    connection_id=C("bigint", "As in fetch_partitions"),
    exchange_no=C("bigint", "As in fetch_partitions"),
    client_id=C("string", "As in fetch_partitions; empty for none"),
    client_address=C("string", "As in fetch_partitions"),
)  # fmt: skip

LOG_BATCHES = table(
    "log_batches", "silver",
    "The batches that produce requests with acks=all brought to a partition's log, and the batches that fetches "
    "returned.",
    ("broker", "topic", "partition", "base_offset", "is_produced", "connection_id", "exchange_no"), "broker",
    broker=C("string", "As in record_batches"),
    topic=C("string", "As in record_batches", nullable=True),
    partition=C("int", "As in record_batches"),
    base_offset=C("bigint", "As in record_batches", nullable=True),
    is_produced=C("boolean", "A produce request brought the batch"),
    connection_id=C("bigint", "As in record_batches"),
    exchange_no=C("bigint", "As in record_batches"),
    request_time=C("bigint", "When the request had arrived", "us since 1970", nullable=True),
    response_time=C("bigint", "When the response had arrived", "us since 1970", nullable=True),
)  # fmt: skip

MEMORY_EVENTS = table(
    "memory_events", "silver",
    "What held memory of a consumer, a broker or a producer. A producer has only batches. A broker has its requests "
    "and, for each batch of a produce request, a row of kind -1. A consumer has its exchanges, with the partitions and "
    "batches of its fetches, and the responses that it would get under other fetch limits. A row of kind 3 has many "
    "responses of a lane. A row of kind 4 has the connection, exchange and time of the other member's fetch.",
    ("side", "unit", "unit_address", "time", "connection_id", "exchange_no", "kind", "lane"), "unit",
    side=C("string", "consumer, broker or producer"),
    unit=C("string", "client.id, empty for none, or the broker"),
    unit_address=C("string", "The client's IP address, with the port of its first connection for each of several "
                             "producer processes that share client.id and address; empty for a broker"),
    time=C("bigint", "When the request had arrived, or a producer's first record was appended", "us since 1970"),
    connection_id=C("bigint", "As in exchanges"),
    exchange_no=C("bigint", "As in exchanges"),
    kind=C("tinyint", "-1 when a fetch first returned a produced batch, 0 an exchange, 1 a partition, 2 a batch, "
                      "3 responses of the closed loop, 4 a partition that another member of the group fetched next, "
                      "5 records in a response of kind 3 that the consumer gives up before it takes them, 6 a "
                      "connection whose captured fetches the closed loop replaces"),
    started=C("bigint", "When the first byte of the message whose memory counts had arrived, null if not known; "
                        "when a produced batch was sent. Kind 4: when the member that took the partition over had last "
                        "asked to join the group, null for never. Kind 5: when the captured consumer last requested "
                        "the partition", "us since 1970", nullable=True),
    came=C("bigint", "When that message had arrived; when a produced batch was answered, null without an answer. "
                     "Kind 4: when the member's request to join was answered. Kind 5: when the consumer begins with "
                     "the records", "us since 1970", nullable=True),
    size=C("bigint", "Bytes of that message without its size field, or of a batch", "bytes", nullable=True),
    held=C("bigint", "Time from a broker's request to its response, 0 without a response; null in other rows", "us",
           nullable=True),
    released=C("bigint", "When a broker's request was handled. Kind -1: when the fetch returned the batch, null for "
                         "never. Kind 5: when the captured consumer requests the partition again, null for never",
               "us since 1970", nullable=True),
    released_by=C("tinyint", "What shows that a request was handled: 0 its response, 1 fetches of its batches, 2 the "
                             "request log, 3 its response, which waited for replicas (acks=all)", nullable=True),
    max_bytes=C("bigint", "fetch.max.bytes of a fetch", "bytes", nullable=True),
    api_key=C("smallint", "Kafka's API key", nullable=True),
    closes_session=C("boolean", "The exchange is a fetch that closes its session", nullable=True),
    librdkafka=C("bigint", "Release of librdkafka, 1000 x major + minor, if the client is or uses it; 0 if it does not "
                           "say its release, null for other clients", nullable=True),
    broker_key=C("bigint", "Hash of the broker", nullable=True),
    partition_key=C("bigint", "Hash of topic and partition; for a produced batch, also of producer id and epoch",
                    nullable=True),
    sequence=C("bigint", "Sequence number of a produced batch's first record", nullable=True),
    error_code=C("smallint", "Error of a produced batch", nullable=True),
    first_timestamp=C("bigint", "Timestamp of a produced batch's first record", "ms since 1970", nullable=True),
    last_timestamp=C("bigint", "Greatest timestamp of a produced batch's records", "ms since 1970", nullable=True),
    is_java=C("boolean", "A produced batch comes from a Java client, or may come from one", nullable=True),
    is_told_apart=C("boolean", "It is known which of the processes that share client.id and address fetched a "
                               "partition or sent a produced batch", nullable=True),
    fetch_offset=C("bigint", "Offset from which a fetch reads the partition; null if it does not", nullable=True),
    partition_max_bytes=C("bigint", "Most record bytes that a fetch wants of the partition", "bytes", nullable=True),
    returned_bytes=C("bigint", "Record bytes in the response", "bytes", nullable=True),
    end_offset=C("bigint", "Offset after a batch that came whole", nullable=True),
    cut_end_offset=C("bigint", "Offset after a batch of which only a part came", nullable=True),
    records=C("bigint", "Records in a batch", nullable=True),
    compressed=C("boolean", "The batch is compressed. A fetched batch must also be whole, because a consumer does not "
                            "decompress a cut one", nullable=True),
    uncompressed=C("bigint", "Bytes of a compressed batch without compression, with its header; null if they are not "
                             "known", "bytes", nullable=True),
    lane=C("int", "Number of the fetch limits under which the closed loop gives the responses, 0 as captured; null in "
                  "other rows", nullable=True),
    responses=C("binary", "Responses of kind 3 in the order of their requests: rows of closed_responses as an Arrow "
                          "IPC stream", nullable=True),
    unchecked=C("string", "Why the closed loop of the client cannot be compared with the capture", nullable=True),
    left_out=C("bigint", "How many responses of the client in the lane had no room, in the first row of these "
                         "responses", nullable=True),
)  # fmt: skip

CLOSED_RESPONSES = table(
    "closed_responses", "silver", "A response that a client gets under other fetch limits, in the closed loop.",
    ("number",), "connection_id",
    number=C("bigint", "Its index among the responses of the client in the lane"),
    connection_id=C("bigint", "As in exchanges; if a connection was opened anew, that of the first one"),
    time=C("bigint", "When the request was sent", "us since 1970"),
    came=C("bigint", "When the response had arrived", "us since 1970"),
    held=C("bigint", "How long its memory is held; null if it is held until all records that are given up are gone",
           "us", nullable=True),
    returned_bytes=C("bigint", "Record bytes in the response", "bytes"),
    records=C("bigint", "Records in the batches that came whole"),
    partitions=C("bigint", "Partitions with records"),
)  # fmt: skip
