"""JoinGroup (key 11): JoinGroupRequest.json and JoinGroupResponse.json."""

from __future__ import annotations

from schemas.wire.message import Field, Message

# One line for each field, nested as in Kafka's JSON.
# fmt: off

JOIN_GROUP_REQUEST = Message("JoinGroupRequest", api_key=11, versions="0-9", flexible="6+", fields=(
    Field("group_id", "string", "0+"),
    Field("session_timeout_ms", "int32", "0+"),
    Field("rebalance_timeout_ms", "int32", "1+", default="-1"),
    Field("member_id", "string", "0+"),
    Field("group_instance_id", "string", "5+", nullable="5+", default="null"),
    Field("protocol_type", "string", "0+"),
    Field("protocols", "[]JoinGroupRequestProtocol", "0+", fields=(
        Field("name", "string", "0+"),
        Field("metadata", "bytes", "0+"),
    )),
    Field("reason", "string", "8+", nullable="8+", default="null"),
))

JOIN_GROUP_RESPONSE = Message("JoinGroupResponse", api_key=11, versions="0-9", flexible="6+", fields=(
    Field("throttle_time_ms", "int32", "2+"),
    Field("error_code", "int16", "0+"),
    Field("generation_id", "int32", "0+", default="-1"),
    Field("protocol_type", "string", "7+", nullable="7+", default="null"),
    Field("protocol_name", "string", "0+", nullable="7+"),
    Field("leader", "string", "0+"),
    Field("skip_assignment", "bool", "9+"),
    Field("member_id", "string", "0+"),
    Field("members", "[]JoinGroupResponseMember", "0+", fields=(
        Field("member_id", "string", "0+"),
        Field("group_instance_id", "string", "5+", nullable="5+", default="null"),
        Field("metadata", "bytes", "0+"),
    )),
))
