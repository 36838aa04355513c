"""FindCoordinator (key 10): FindCoordinatorRequest.json and FindCoordinatorResponse.json."""

from __future__ import annotations

from schemas.wire.message import Field, Message

# One line for each field, nested as in Kafka's JSON.
# fmt: off

FIND_COORDINATOR_REQUEST = Message("FindCoordinatorRequest", api_key=10, versions="0-6", flexible="3+", fields=(
    Field("key", "string", "0-3"),
    Field("key_type", "int8", "1+"),
    Field("coordinator_keys", "[]string", "4+"),
))

FIND_COORDINATOR_RESPONSE = Message("FindCoordinatorResponse", api_key=10, versions="0-6", flexible="3+", fields=(
    Field("throttle_time_ms", "int32", "1+"),
    Field("error_code", "int16", "0-3"),
    Field("error_message", "string", "1-3", nullable="1-3"),
    Field("node_id", "int32", "0-3"),
    Field("host", "string", "0-3"),
    Field("port", "int32", "0-3"),
    Field("coordinators", "[]Coordinator", "4+", fields=(
        Field("key", "string", "4+"),
        Field("node_id", "int32", "4+"),
        Field("host", "string", "4+"),
        Field("port", "int32", "4+"),
        Field("error_code", "int16", "4+"),
        Field("error_message", "string", "4+", nullable="4+"),
    )),
))
