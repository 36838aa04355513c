"""Fetch (key 1): FetchRequest.json and FetchResponse.json."""

from __future__ import annotations

from itertools import takewhile

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND, FETCH_SESSION_TOPIC_ID_ERROR, INVALID_FETCH_SESSION_EPOCH
from schemas.wire.message import Field, Message

SESSION_ERRORS = FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR
"""The errors of KIP-227, and as the last one that of KIP-516, in the order in which
org.apache.kafka.server.FetchManager.newContext checks for them (Kafka 4.3). They change nothing about an existing
session: its epoch, its place in the cache and the time when it was used last stay the same.
"""

RACKS_FROM = 11
"""The first version with a rack (KIP-392). Before it, only leaders answer consumers."""

# One line for each field, nested as in Kafka's JSON.
# fmt: off

FETCH_REQUEST = Message("FetchRequest", api_key=1, versions="0-18", flexible="12+", fields=(
    Field("cluster_id", "string", "12+", nullable="12+", tagged="12+", tag=0, default="null"),
    Field("replica_id", "int32", "0-14", default="-1"),
    Field("replica_state", "ReplicaState", "15+", tagged="15+", tag=1, fields=(
        Field("replica_id", "int32", "15+", default="-1"),
        Field("replica_epoch", "int64", "15+", default="-1"),
    )),
    Field("max_wait_ms", "int32", "0+"),
    Field("min_bytes", "int32", "0+"),
    Field("max_bytes", "int32", "3+", default="0x7fffffff"),
    Field("isolation_level", "int8", "4+"),
    Field("session_id", "int32", "7+"),
    Field("session_epoch", "int32", "7+", default="-1"),
    Field("topics", "[]FetchTopic", "0+", fields=(
        Field("topic", "string", "0-12"),
        Field("topic_id", "uuid", "13+"),
        Field("partitions", "[]FetchPartition", "0+", fields=(
            Field("partition", "int32", "0+"),
            Field("current_leader_epoch", "int32", "9+", default="-1"),
            Field("fetch_offset", "int64", "0+"),
            Field("last_fetched_epoch", "int32", "12+", default="-1"),
            Field("log_start_offset", "int64", "5+", default="-1"),
            Field("partition_max_bytes", "int32", "0+"),
            Field("replica_directory_id", "uuid", "17+", tagged="17+", tag=0),
            Field("high_watermark", "int64", "18+", tagged="18+", tag=1, default="9223372036854775807"),
        )),
    )),
    Field("forgotten_topics_data", "[]ForgottenTopic", "7+", fields=(
        Field("topic", "string", "7-12"),
        Field("topic_id", "uuid", "13+"),
        Field("partitions", "[]int32", "7+"),
    )),
    Field("rack_id", "string", "11+"),
))

FETCH_REQUEST_START = Message("FetchRequestStart", api_key=1, versions="7-18", flexible="none", fields=tuple(
    takewhile(lambda field: field.name != "topics", FETCH_REQUEST.fields)
))
"""The beginning of every request of the versions with sessions. It has the same length in all requests of a version. It
has no tags: they come last in a request."""

FETCH_RESPONSE = Message("FetchResponse", api_key=1, versions="0-18", flexible="12+", fields=(
    Field("throttle_time_ms", "int32", "1+"),
    Field("error_code", "int16", "7+"),
    Field("session_id", "int32", "7+"),
    Field("responses", "[]FetchableTopicResponse", "0+", fields=(
        Field("topic", "string", "0-12"),
        Field("topic_id", "uuid", "13+"),
        Field("partitions", "[]PartitionData", "0+", fields=(
            Field("partition_index", "int32", "0+"),
            Field("error_code", "int16", "0+"),
            Field("high_watermark", "int64", "0+"),
            Field("last_stable_offset", "int64", "4+", default="-1"),
            Field("log_start_offset", "int64", "5+", default="-1"),
            Field("diverging_epoch", "EpochEndOffset", "12+", tagged="12+", tag=0, fields=(
                Field("epoch", "int32", "12+", default="-1"),
                Field("end_offset", "int64", "12+", default="-1"),
            )),
            Field("current_leader", "LeaderIdAndEpoch", "12+", tagged="12+", tag=1, fields=(
                Field("leader_id", "int32", "12+", default="-1"),
                Field("leader_epoch", "int32", "12+", default="-1"),
            )),
            Field("snapshot_id", "SnapshotId", "12+", tagged="12+", tag=2, fields=(
                Field("end_offset", "int64", "0+", default="-1"),
                Field("epoch", "int32", "0+", default="-1"),
            )),
            Field("aborted_transactions", "[]AbortedTransaction", "4+", nullable="4+", fields=(
                Field("producer_id", "int64", "4+"),
                Field("first_offset", "int64", "4+"),
            )),
            Field("preferred_read_replica", "int32", "11+", default="-1"),
            Field("records", "records", "0+", nullable="0+"),
        )),
    )),
    Field("node_endpoints", "[]NodeEndpoint", "16+", tagged="16+", tag=0, fields=(
        Field("node_id", "int32", "16+"),
        Field("host", "string", "16+"),
        Field("port", "int32", "16+"),
        Field("rack", "string", "16+", nullable="16+", default="null"),
    )),
))
