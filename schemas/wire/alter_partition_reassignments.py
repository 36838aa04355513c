"""AlterPartitionReassignments (key 45): its Request.json and Response.json."""

from __future__ import annotations

from schemas.wire.message import Field, Message

# One line for each field, nested as in Kafka's JSON.
# fmt: off

ALTER_PARTITION_REASSIGNMENTS_REQUEST = Message(
    "AlterPartitionReassignmentsRequest", api_key=45, versions="0-1", flexible="0+", fields=(
        Field("timeout_ms", "int32", "0+", default="60000"),
        Field("allow_replication_factor_change", "bool", "1+", default="true"),
        Field("topics", "[]ReassignableTopic", "0+", fields=(
            Field("name", "string", "0+"),
            Field("partitions", "[]ReassignablePartition", "0+", fields=(
                Field("partition_index", "int32", "0+"),
                Field("replicas", "[]int32", "0+", nullable="0+", default="null"),
            )),
        )),
    ),
)

ALTER_PARTITION_REASSIGNMENTS_RESPONSE = Message(
    "AlterPartitionReassignmentsResponse", api_key=45, versions="0-1", flexible="0+", fields=(
        Field("throttle_time_ms", "int32", "0+"),
        Field("allow_replication_factor_change", "bool", "1+", default="true"),
        Field("error_code", "int16", "0+"),
        Field("error_message", "string", "0+", nullable="0+"),
        Field("responses", "[]ReassignableTopicResponse", "0+", fields=(
            Field("name", "string", "0+"),
            Field("partitions", "[]ReassignablePartitionResponse", "0+", fields=(
                Field("partition_index", "int32", "0+"),
                Field("error_code", "int16", "0+"),
                Field("error_message", "string", "0+", nullable="0+"),
            )),
        )),
    ),
)
