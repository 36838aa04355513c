"""Brokers' own request logs (kafka.request.logger), an independent record of the traffic in a capture."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Key = tuple[str, str, int]
"""Server and client as address:port, and the correlation id."""

Partition = tuple[str, int]
"""The topic, by id if the version has topic ids and else by name, and the partition."""


@dataclass(frozen=True)
class LoggedRequest:
    """One line: a request that a broker answered, with request and response but without their records.

    completed: when the broker had sent the response, aware, UTC. taken_ms: the time from the request's arrival until
    then.
    """

    key: Key
    api_key: int
    api_name: str
    api_version: int
    client_id: str | None
    completed: datetime
    taken_ms: float
    request: dict[str, Any]
    response: dict[str, Any]


def read_request_logs(folder: Path, capture: str) -> dict[Key, LoggedRequest]:
    """The lines of the logs of all brokers that lie beside the capture, by key."""
    lines = [line for path in sorted(folder.glob(f"{capture}.requests-*.log.gz")) for line in logged_requests(path)]
    by_key = {line.key: line for line in lines}
    assert len(by_key) == len(lines), "server, client and correlation id name a request"
    return by_key


def logged_requests(path: Path) -> Iterator[LoggedRequest]:
    """The lines of one broker's log."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            told = json.loads(line[line.index("{") : line.rindex("}") + 1])
            header = told["requestHeader"]
            # SERVER-CLIENT-PROCESSOR-COUNT (org.apache.kafka.common.network.ServerConnectionId)
            server, client, _, _ = told["connection"].split("-")
            yield LoggedRequest(
                (server, client, header["correlationId"]),
                header["requestApiKey"],
                header["requestApiKeyName"],
                header["requestApiVersion"],
                header.get("clientId"),
                datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC),
                told["totalTimeMs"],
                told["request"],
                # A produce request with acks=0 has none.
                told["response"] or {},
            )


def wanted_partitions(request: dict[str, Any]) -> list[tuple[Partition, int, int]]:
    """(partition, fetch offset, partition max bytes) in the order of a Fetch request."""
    return [
        ((topic.get("topicId") or topic["topic"], part["partition"]), part["fetchOffset"], part["partitionMaxBytes"])
        for topic in request["topics"]
        for part in topic["partitions"]
    ]


def returned_partitions(response: dict[str, Any]) -> list[tuple[Partition, int, int, int | None]]:
    """(partition, record bytes, error code, high watermark or None) in the order of a Fetch response."""
    return [
        (
            (topic.get("topicId") or topic["topic"], part["partitionIndex"]),
            part["recordsSizeInBytes"],
            part["errorCode"],
            part["highWatermark"] if part["highWatermark"] >= 0 else None,
        )
        for topic in response["responses"]
        for part in topic["partitions"]
    ]


def produced_partitions(request: dict[str, Any]) -> dict[Partition, int]:
    """Record bytes by partition of a Produce request."""
    return {
        (topic.get("topicId") or topic["name"], part["index"]): part["recordsSizeInBytes"]
        for topic in request["topicData"]
        for part in topic["partitionData"]
    }
