"""ShareFetch (key 78): ShareFetchRequest.json and ShareFetchResponse.json."""

from __future__ import annotations

from schemas.wire.message import Field, Message

# One line for each field, nested as in Kafka's JSON.
# fmt: off

SHARE_FETCH_REQUEST = Message("ShareFetchRequest", api_key=78, versions="0-2", flexible="0+", fields=(
    Field("group_id", "string", "0+", nullable="0+", default="null"),
    Field("member_id", "string", "0+", nullable="0+"),
    Field("share_session_epoch", "int32", "0+"),
    Field("max_wait_ms", "int32", "0+"),
    Field("min_bytes", "int32", "0+"),
    Field("max_bytes", "int32", "0+", default="0x7fffffff"),
    Field("max_records", "int32", "1+"),
    Field("batch_size", "int32", "1+"),
    Field("share_acquire_mode", "int8", "2+"),
    Field("is_renew_ack", "bool", "2+"),
    Field("topics", "[]FetchTopic", "0+", fields=(
        Field("topic_id", "uuid", "0+"),
        Field("partitions", "[]FetchPartition", "0+", fields=(
            Field("partition_index", "int32", "0+"),
            Field("partition_max_bytes", "int32", "0"),
            Field("acknowledgement_batches", "[]AcknowledgementBatch", "0+", fields=(
                Field("first_offset", "int64", "0+"),
                Field("last_offset", "int64", "0+"),
                Field("acknowledge_types", "[]int8", "0+"),
            )),
        )),
    )),
    Field("forgotten_topics_data", "[]ForgottenTopic", "0+", fields=(
        Field("topic_id", "uuid", "0+"),
        Field("partitions", "[]int32", "0+"),
    )),
))

SHARE_FETCH_RESPONSE = Message("ShareFetchResponse", api_key=78, versions="0-2", flexible="0+", fields=(
    Field("throttle_time_ms", "int32", "0+"),
    Field("error_code", "int16", "0+"),
    Field("error_message", "string", "0+", nullable="0+", default="null"),
    Field("acquisition_lock_timeout_ms", "int32", "1+"),
    Field("responses", "[]ShareFetchableTopicResponse", "0+", fields=(
        Field("topic_id", "uuid", "0+"),
        Field("partitions", "[]PartitionData", "0+", fields=(
            Field("partition_index", "int32", "0+"),
            Field("error_code", "int16", "0+"),
            Field("error_message", "string", "0+", nullable="0+", default="null"),
            Field("acknowledge_error_code", "int16", "0+"),
            Field("acknowledge_error_message", "string", "0+", nullable="0+", default="null"),
            Field("current_leader", "LeaderIdAndEpoch", "0+", fields=(
                Field("leader_id", "int32", "0+"),
                Field("leader_epoch", "int32", "0+"),
            )),
            Field("records", "records", "0+", nullable="0"),
            Field("acquired_records", "[]AcquiredRecords", "0+", fields=(
                Field("first_offset", "int64", "0+"),
                Field("last_offset", "int64", "0+"),
                Field("delivery_count", "int16", "0+"),
            )),
        )),
    )),
    Field("node_endpoints", "[]NodeEndpoint", "0+", fields=(
        Field("node_id", "int32", "0+"),
        Field("host", "string", "0+"),
        Field("port", "int32", "0+"),
        Field("rack", "string", "0+", nullable="0+", default="null"),
    )),
))
