"""DeleteTopics (key 20): DeleteTopicsRequest.json and DeleteTopicsResponse.json."""

from __future__ import annotations

from schemas.wire.message import Field, Message

# One line for each field, nested as in Kafka's JSON.
# fmt: off

DELETE_TOPICS_REQUEST = Message("DeleteTopicsRequest", api_key=20, versions="0-6", flexible="4+", fields=(
    Field("topics", "[]DeleteTopicState", "6+", fields=(
        Field("name", "string", "6+", nullable="6+", default="null"),
        Field("topic_id", "uuid", "6+"),
    )),
    Field("topic_names", "[]string", "0-5"),
    Field("timeout_ms", "int32", "0+"),
))

DELETE_TOPICS_RESPONSE = Message("DeleteTopicsResponse", api_key=20, versions="0-6", flexible="4+", fields=(
    Field("throttle_time_ms", "int32", "1+"),
    Field("responses", "[]DeletableTopicResult", "0+", fields=(
        Field("name", "string", "0+", nullable="6+"),
        Field("topic_id", "uuid", "6+"),
        Field("error_code", "int16", "0+"),
        Field("error_message", "string", "5+", nullable="5+", default="null"),
    )),
))
