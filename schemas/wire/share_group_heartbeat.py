"""ShareGroupHeartbeat (key 76): its Request.json and Response.json."""

from __future__ import annotations

from schemas.wire.message import Field, Message

# One line for each field, nested as in Kafka's JSON.
# fmt: off

SHARE_GROUP_HEARTBEAT_REQUEST = Message(
    "ShareGroupHeartbeatRequest", api_key=76, versions="0-1", flexible="0+", fields=(
        Field("group_id", "string", "0+"),
        Field("member_id", "string", "0+"),
        Field("member_epoch", "int32", "0+"),
        Field("rack_id", "string", "0+", nullable="0+", default="null"),
        Field("subscribed_topic_names", "[]string", "0+", nullable="0+", default="null"),
    ),
)

SHARE_GROUP_HEARTBEAT_RESPONSE = Message(
    "ShareGroupHeartbeatResponse", api_key=76, versions="0-1", flexible="0+", fields=(
        Field("throttle_time_ms", "int32", "0+"),
        Field("error_code", "int16", "0+"),
        Field("error_message", "string", "0+", nullable="0+", default="null"),
        Field("member_id", "string", "0+", nullable="0+", default="null"),
        Field("member_epoch", "int32", "0+"),
        Field("heartbeat_interval_ms", "int32", "0+"),
        Field("assignment", "Assignment", "0+", nullable="0+", default="null", fields=(
            Field("topic_partitions", "[]TopicPartitions", "0+", fields=(
                Field("topic_id", "uuid", "0+"),
                Field("partitions", "[]int32", "0+"),
            )),
        )),
    ),
)
