"""CreatePartitions (key 37): CreatePartitionsRequest.json and CreatePartitionsResponse.json."""

from __future__ import annotations

from schemas.wire.message import Field, Message

# One line for each field, nested as in Kafka's JSON.
# fmt: off

CREATE_PARTITIONS_REQUEST = Message("CreatePartitionsRequest", api_key=37, versions="0-3", flexible="2+", fields=(
    Field("topics", "[]CreatePartitionsTopic", "0+", fields=(
        Field("name", "string", "0+"),
        Field("count", "int32", "0+"),
        Field("assignments", "[]CreatePartitionsAssignment", "0+", nullable="0+", fields=(
            Field("broker_ids", "[]int32", "0+"),
        )),
    )),
    Field("timeout_ms", "int32", "0+"),
    Field("validate_only", "bool", "0+"),
))

CREATE_PARTITIONS_RESPONSE = Message("CreatePartitionsResponse", api_key=37, versions="0-3", flexible="2+", fields=(
    Field("throttle_time_ms", "int32", "0+"),
    Field("results", "[]CreatePartitionsTopicResult", "0+", fields=(
        Field("name", "string", "0+"),
        Field("error_code", "int16", "0+"),
        Field("error_message", "string", "0+", nullable="0+", default="null"),
    )),
))
