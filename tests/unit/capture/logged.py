"""Lines of brokers' request logs."""

from __future__ import annotations

import json
from typing import Any

TOPIC_ID = "ZJlaQkQ9S7C2CwLZu1K4eA"
CONNECTION = "127.0.0.1:9092-127.0.0.1:50000-1-2"
PARTITION = {"partition": 0, "currentLeaderEpoch": 0, "fetchOffset": 7, "partitionMaxBytes": 100}
LIMITS = {"maxWaitMs": 500, "minBytes": 1, "maxBytes": 1000, "isolationLevel": 0}


def line(
    api_key: int, api_version: int, correlation_id: int, request: object, response: object, *,
    time: str = "2026-11-21 12:00:48,601", connection: str = CONNECTION, forwarded: bool = False, **told: Any,
) -> str:  # fmt: skip
    """A line in the layout of Kafka's own log4j configuration."""
    header = {
        "requestApiKey": api_key, "requestApiVersion": api_version, "correlationId": correlation_id,
        "clientId": "app", "requestApiKeyName": "ANY",
    }  # fmt: skip
    content = {
        "isForwarded": forwarded, "requestHeader": header, "request": request, "response": response,
        "connection": connection, "totalTimeMs": 1.5, "listener": "PLAINTEXT", "principal": "User:ANONYMOUS",
        "clientInformation": {"softwareName": "unknown", "softwareVersion": "unknown"},
    } | told  # fmt: skip
    text = json.dumps(content, separators=(",", ":"))
    return f"[{time}] DEBUG Completed request:{text} (kafka.request.logger)\n"


def heartbeat(correlation_id: int, **told: Any) -> str:
    return line(12, 4, correlation_id, {"groupId": "g"}, {"throttleTimeMs": 0, "errorCode": 0}, **told)


def fetch(
    correlation_id: int, *, session: tuple[int, int], wanted: list[dict[str, Any]], answer: dict[str, Any], **told: Any
) -> str:
    """A Fetch v13; wanted: topics. session: id and epoch."""
    asked = {**LIMITS, "sessionId": session[0], "sessionEpoch": session[1], "topics": wanted, "forgottenTopicsData": []}
    return line(1, 13, correlation_id, asked, answer, **told)


def topics(*partitions: dict[str, Any], topic_id: str = TOPIC_ID) -> list[dict[str, Any]]:
    return [{"topicId": topic_id, "partitions": list(partitions)}]


def answered(session_id: int, *partitions: tuple[int, int, int], topic_id: str = TOPIC_ID) -> dict[str, Any]:
    """A Fetch response; partitions: (index, record bytes, high watermark)."""
    told = [
        {
            "partitionIndex": index, "errorCode": 0, "highWatermark": high, "lastStableOffset": high,
            "logStartOffset": 0, "abortedTransactions": None, "preferredReadReplica": -1, "recordsSizeInBytes": size,
        }
        for index, size, high in partitions
    ]  # fmt: skip
    responses = [{"topicId": topic_id, "partitions": told}] if told else []
    return {"throttleTimeMs": 0, "errorCode": 0, "sessionId": session_id, "responses": responses}
