"""The silver tables of share groups (KIP-932): what members of share groups fetch and acknowledge."""

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
from schemas.tables.table import Spec as C
from schemas.tables.table import table

GROUP_ID = C("string", "The share group", nullable=True, names="group")
MEMBER_ID = C("string", "The member of the group that sends the request", nullable=True, names="member")

SHARE_FETCHES = table(
    "share_fetches", "silver",
    "One row per ShareFetch or ShareAcknowledge request (KIP-932). None is in fetch_partitions, for who fetches "
    "for a share group is no consumer of a consumer group.",
    ("capture_id", "connection_id", "exchange_no"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    kind=C("string", "fetch or acknowledge: the API, ShareFetch or ShareAcknowledge"),
    api_version=C("smallint", "Version of the request"),
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    group_id=GROUP_ID,
    member_id=MEMBER_ID,
    share_session_epoch=C("int", "Epoch of the share session: 0 opens one, -1 closes it"),
    is_renew_ack=C("boolean", "The request renews locks on records, and reads none (KIP-1222)"),
    max_wait_ms=C("int", "Longest wait that a fetch allows; null here and below for what only a fetch has", "ms",
                  nullable=True),
    min_bytes=C("int", "Least bytes to answer with before max_wait_ms", "bytes", nullable=True),
    max_bytes=C("int", "Most record bytes that the response may have, its first batch excepted", "bytes",
                nullable=True),
    max_records=C("int", "Most records to acquire: whole batches may exceed it, unless share_acquire_mode is 1; null "
                         "before version 1",
                  nullable=True),
    batch_size=C("int", "Records of an acquired range, about which the broker cuts ranges; null before version 1",
                 nullable=True),
    share_acquire_mode=C("tinyint", "0 batch_optimized, 1 record_limit (KIP-1206); null before version 2",
                         nullable=True),
    named_partitions=C("int", "Partitions that the request names, as new in the session or with acknowledgements"),
    forgotten_partitions=C("int", "Partitions that the request takes out of the session"),
    acknowledged_records=C("bigint", "Records in the ranges that the request acknowledges: accepts, releases, rejects "
                                     "or renews"),
    returned_partitions=C("int", "Partitions in the response; null here and below without a decoded response",
                          nullable=True),
    returned_bytes=C("bigint", "Record bytes in the response: whole batches, which can have records that others hold; "
                               "null in a request log, which leaves their size out",
                     "bytes", nullable=True),
    acquired_ranges=C("int", "Ranges of records that the member acquires", nullable=True),
    acquired_records=C("bigint", "Records in these ranges", nullable=True),
    redelivered_records=C("bigint", "... that had been delivered before: delivery_count above 1", nullable=True),
    failed_partitions=C("int", "Partitions in the response with an error, of the fetch or of an acknowledgement",
                        nullable=True),
    error_code=C("smallint", "Top-level error of the response", nullable=True),
    acquisition_lock_timeout_ms=C("int", "For how long the member holds acquired records; null before a version that "
                                         "says it",
                                  "ms", nullable=True),
    throttle_time_ms=C("int", "Throttle time in the response", "ms", nullable=True),
)  # fmt: skip

SHARE_PARTITIONS = table(
    "share_partitions", "silver",
    "One row per partition that a ShareFetch or ShareAcknowledge request names or forgets, or that its response has "
    "(KIP-932).",
    ("capture_id", "connection_id", "exchange_no", "entry", "position"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    group_id=GROUP_ID,
    member_id=MEMBER_ID,
    entry=C("string", "named, forgotten or returned"),
    position=C("int", "Place among the entries of its kind in the message, from 0"),
    topic=TOPIC,
    topic_id=TOPIC_ID,
    partition=PARTITION,
    returned_bytes=C("bigint", "Record bytes of a returned partition; null in a request log", "bytes", nullable=True),
    first_offsets=C("array<bigint>", "The first offset of each range: acknowledged ones of a named partition, acquired "
                                     "ones of a returned one; null for none",
                    nullable=True),
    last_offsets=C("array<bigint>", "The last offset of each range", nullable=True),
    delivery_counts=C("array<int>", "How often the records of each acquired range have been delivered, this time "
                                    "included",
                      nullable=True),
    error_code=C("smallint", "A returned partition's error", nullable=True),
    acknowledge_error_code=C("smallint", "Error of the acknowledgements that a ShareFetch brought for it",
                             nullable=True),
)  # fmt: skip
