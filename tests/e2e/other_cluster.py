"""A capture as if another cluster had had the same traffic at the same time."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tests.bench.repeated_capture import ADDRESSES, record_starts
from udfs.capture.pcap import FILE_HEADER_BYTES, RECORD_HEADER_BYTES

HOST, OTHER_HOST = b"127.0.0.1", b"127.1.0.1"


def as_of_another_cluster(capture: Path, target: Path, cluster_id: str, topic_ids: Iterable[str]) -> str:
    """Write the capture with other addresses, other topic ids and another cluster id. Returns the new cluster id.

    capture: a little-endian pcap of Ethernet and IPv4, with all brokers and clients at HOST.
    """
    content, other_id = capture.read_bytes(), cluster_id[::-1]
    for raw in map(raw_id, topic_ids):
        content = content.replace(raw, bytes(byte ^ 1 for byte in raw))
    content = content.replace(cluster_id.encode(), other_id.encode()).replace(HOST, OTHER_HOST)
    packets = np.frombuffer(content, np.uint8).copy()
    at = FILE_HEADER_BYTES + record_starts(content) + RECORD_HEADER_BYTES
    packets[(at[:, None] + np.array(ADDRESSES) + 1).ravel()] = 1
    packets.tofile(target)
    return other_id


def raw_id(text: str) -> bytes:
    """The bytes of a topic id, from the text that Kafka prints."""
    return base64.urlsafe_b64decode(text + "==")
