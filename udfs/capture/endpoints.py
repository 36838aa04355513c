"""Connections as people write them."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address

import numpy as np

from udfs.capture.tcp_headers import CONNECTION_BYTES, ENDPOINT_BYTES


def connection_endpoints(connections: bytes | np.ndarray) -> tuple[list[str], list[str]]:
    """The lower and the higher endpoint of each connection: `10.0.0.1:9092`, `[2001:db8::1]:9092`.

    connections: uint8[n, 36], or as many bytes one after the other (column `connection` of PACKETS)
    """
    packed = connections if isinstance(connections, bytes) else np.ascontiguousarray(connections, np.uint8).tobytes()
    starts = range(0, len(packed), CONNECTION_BYTES)
    lower = [_endpoint(packed[at : at + ENDPOINT_BYTES]) for at in starts]
    higher = [_endpoint(packed[at + ENDPOINT_BYTES : at + CONNECTION_BYTES]) for at in starts]
    return lower, higher


@lru_cache(maxsize=65_536)
def _endpoint(endpoint: bytes) -> str:
    address = IPv6Address(endpoint[:16])
    port = int.from_bytes(endpoint[16:], "big")
    return f"{address.ipv4_mapped}:{port}" if address.ipv4_mapped else f"[{address.compressed}]:{port}"
