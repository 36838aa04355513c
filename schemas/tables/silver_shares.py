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
MEMBER_ID = C("string", "The member of the group that sent the request", nullable=True, names="member")

SHARE_FETCHES = table(
    "share_fetches", "silver",
    "One row per ShareFetch or ShareAcknowledge request (KIP-932). These requests are not in fetch_partitions, because "
    "members of share groups are not consumers of a consumer group.",
    ("capture_id", "connection_id", "exchange_no"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    kind=C("string", "fetch for a ShareFetch request, acknowledge for a ShareAcknowledge request"),
    api_version=C("smallint", "Version of the request"),
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    group_id=GROUP_ID,
    member_id=MEMBER_ID,
    share_session_epoch=C("int", "Epoch of the share session; 0 opens a session, -1 closes it"),
    is_renew_ack=C("boolean", "The request renews locks on records and reads no records (KIP-1222)"),
    max_wait_ms=C("int", "Longest time that a ShareFetch lets the broker wait. This column and those below it up to "
                         "share_acquire_mode are null for a ShareAcknowledge", "ms", nullable=True),
    min_bytes=C("int", "Fewest bytes for which the broker answers before max_wait_ms is over", "bytes", nullable=True),
    max_bytes=C("int", "Most record bytes that the response may have, except that its first batch is always whole",
                "bytes", nullable=True),
    max_records=C("int", "Most records to acquire; whole batches may exceed it unless share_acquire_mode is 1. Null "
                         "before version 1", nullable=True),
    batch_size=C("int", "About how many records an acquired range may have before the broker begins another; null "
                        "before version 1", nullable=True),
    share_acquire_mode=C("tinyint", "0 for batch_optimized, 1 for record_limit (KIP-1206); null before version 2",
                         nullable=True),
    named_partitions=C("int", "Partitions that the request names, because they are new in the session or have "
                              "acknowledgements"),
    forgotten_partitions=C("int", "Partitions that the request removes from the session"),
    acknowledged_records=C("bigint", "Records in the ranges that the request accepts, releases, rejects or renews"),
    returned_partitions=C("int", "Partitions in the response. This column and those below are null if no response was "
                                 "decoded", nullable=True),
    returned_bytes=C("bigint", "Record bytes in the response: whole batches, which may contain records that other "
                               "members hold. Null in a request log, which does not have their size",
                     "bytes", nullable=True),
    acquired_ranges=C("int", "Ranges of records that the member acquired", nullable=True),
    acquired_records=C("bigint", "Records in the acquired ranges", nullable=True),
    redelivered_records=C("bigint", "Acquired records that had been delivered before (delivery_count above 1)",
                          nullable=True),
    failed_partitions=C("int", "Partitions in the response with an error, either of the fetch or of an acknowledgement",
                        nullable=True),
    error_code=C("smallint", "Top-level error of the response", nullable=True),
    acquisition_lock_timeout_ms=C("int", "How long the member holds acquired records; null in versions whose responses "
                                         "do not have it", "ms", nullable=True),
    throttle_time_ms=C("int", "Throttle time in the response", "ms", nullable=True),
)  # fmt: skip

SHARE_PARTITIONS = table(
    "share_partitions", "silver",
    "One row per partition that a ShareFetch or ShareAcknowledge request (KIP-932) names or forgets, and per partition "
    "in its response.",
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
    entry=C("string", "named or forgotten for a partition in the request, returned for one in the response"),
    position=C("int", "Position among the entries of the same kind in the request or response, from 0"),
    topic=TOPIC,
    topic_id=TOPIC_ID,
    partition=PARTITION,
    returned_bytes=C("bigint", "Record bytes of a returned partition; null in a request log", "bytes", nullable=True),
    first_offsets=C("array<bigint>", "First offset of each range: acknowledged ranges for a named partition, acquired "
                                     "ranges for a returned one; null if there are none", nullable=True),
    last_offsets=C("array<bigint>", "Last offset of each range, in the same order as first_offsets", nullable=True),
    delivery_counts=C("array<int>", "For each acquired range, how often its records have been delivered, including "
                                    "this time", nullable=True),
    error_code=C("smallint", "Error of the fetch from a returned partition", nullable=True),
    acknowledge_error_code=C("smallint", "Error of the acknowledgements that a ShareFetch sent for the partition",
                             nullable=True),
)  # fmt: skip
