"""ShareGroupDescribe (key 77): ShareGroupDescribeRequest.json and ShareGroupDescribeResponse.json."""

from __future__ import annotations

from schemas.wire.message import Field, Message

# One line for each field, nested as in Kafka's JSON.
# fmt: off

SHARE_GROUP_DESCRIBE_REQUEST = Message("ShareGroupDescribeRequest", api_key=77, versions="0-1", flexible="0+", fields=(
    Field("group_ids", "[]string", "0+"),
    Field("include_authorized_operations", "bool", "0+"),
))

SHARE_GROUP_DESCRIBE_RESPONSE = Message(
    "ShareGroupDescribeResponse", api_key=77, versions="0-1", flexible="0+", fields=(
        Field("throttle_time_ms", "int32", "0+"),
        Field("groups", "[]DescribedGroup", "0+", fields=(
            Field("error_code", "int16", "0+"),
            Field("error_message", "string", "0+", nullable="0+", default="null"),
            Field("group_id", "string", "0+"),
            Field("group_state", "string", "0+"),
            Field("group_epoch", "int32", "0+"),
            Field("assignment_epoch", "int32", "0+"),
            Field("assignor_name", "string", "0+"),
            Field("members", "[]Member", "0+", fields=(
                Field("member_id", "string", "0+"),
                Field("rack_id", "string", "0+", nullable="0+", default="null"),
                Field("member_epoch", "int32", "0+"),
                Field("client_id", "string", "0+"),
                Field("client_host", "string", "0+"),
                Field("subscribed_topic_names", "[]string", "0+"),
                Field("assignment", "Assignment", "0+", fields=(
                    Field("topic_partitions", "[]TopicPartitions", "0+", fields=(
                        Field("topic_id", "uuid", "0+"),
                        Field("topic_name", "string", "0+"),
                        Field("partitions", "[]int32", "0+"),
                    )),
                )),
            )),
            Field("authorized_operations", "int32", "0+", default="-2147483648"),
        )),
    ),
)
