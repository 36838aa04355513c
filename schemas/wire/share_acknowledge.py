"""ShareAcknowledge (key 79): ShareAcknowledgeRequest.json and ShareAcknowledgeResponse.json."""

from __future__ import annotations

from schemas.wire.message import Field, Message

# One line for each field, nested as in Kafka's JSON.
# fmt: off

SHARE_ACKNOWLEDGE_REQUEST = Message("ShareAcknowledgeRequest", api_key=79, versions="0-2", flexible="0+", fields=(
    Field("group_id", "string", "0+", nullable="0+", default="null"),
    Field("member_id", "string", "0+", nullable="0+"),
    Field("share_session_epoch", "int32", "0+"),
    Field("is_renew_ack", "bool", "2+"),
    Field("topics", "[]AcknowledgeTopic", "0+", fields=(
        Field("topic_id", "uuid", "0+"),
        Field("partitions", "[]AcknowledgePartition", "0+", fields=(
            Field("partition_index", "int32", "0+"),
            Field("acknowledgement_batches", "[]AcknowledgementBatch", "0+", fields=(
                Field("first_offset", "int64", "0+"),
                Field("last_offset", "int64", "0+"),
                Field("acknowledge_types", "[]int8", "0+"),
            )),
        )),
    )),
))

SHARE_ACKNOWLEDGE_RESPONSE = Message("ShareAcknowledgeResponse", api_key=79, versions="0-2", flexible="0+", fields=(
    Field("throttle_time_ms", "int32", "0+"),
    Field("error_code", "int16", "0+"),
    Field("error_message", "string", "0+", nullable="0+", default="null"),
    Field("acquisition_lock_timeout_ms", "int32", "2+"),
    Field("responses", "[]ShareAcknowledgeTopicResponse", "0+", fields=(
        Field("topic_id", "uuid", "0+"),
        Field("partitions", "[]PartitionData", "0+", fields=(
            Field("partition_index", "int32", "0+"),
            Field("error_code", "int16", "0+"),
            Field("error_message", "string", "0+", nullable="0+", default="null"),
            Field("current_leader", "LeaderIdAndEpoch", "0+", fields=(
                Field("leader_id", "int32", "0+"),
                Field("leader_epoch", "int32", "0+"),
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
