"""SyncGroup (key 14): SyncGroupRequest.json and SyncGroupResponse.json."""

from __future__ import annotations

from schemas.wire.message import Field, Message

# One line for each field, nested as in Kafka's JSON.
# fmt: off

SYNC_GROUP_REQUEST = Message("SyncGroupRequest", api_key=14, versions="0-5", flexible="4+", fields=(
    Field("group_id", "string", "0+"),
    Field("generation_id", "int32", "0+"),
    Field("member_id", "string", "0+"),
    Field("group_instance_id", "string", "3+", nullable="3+", default="null"),
    Field("protocol_type", "string", "5+", nullable="5+", default="null"),
    Field("protocol_name", "string", "5+", nullable="5+", default="null"),
    Field("assignments", "[]SyncGroupRequestAssignment", "0+", fields=(
        Field("member_id", "string", "0+"),
        Field("assignment", "bytes", "0+"),
    )),
))

SYNC_GROUP_RESPONSE = Message("SyncGroupResponse", api_key=14, versions="0-5", flexible="4+", fields=(
    Field("throttle_time_ms", "int32", "1+"),
    Field("error_code", "int16", "0+"),
    Field("protocol_type", "string", "5+", nullable="5+", default="null"),
    Field("protocol_name", "string", "5+", nullable="5+", default="null"),
    Field("assignment", "bytes", "0+"),
))
