"""Connections as people write them."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

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


@lru_cache(maxsize=65_536)
def logged_connection(text: str) -> tuple[bytes, int] | None:
    """A connection as request logs name it: (36 bytes: lower endpoint, higher endpoint; which of them is the client).

    SERVER:PORT-CLIENT:PORT-INDEX, since Kafka 4.0 with the network thread before the index
    (org.apache.kafka.common.network.ServerConnectionId). None where the text is no such name.
    """
    named = LOGGED.fullmatch(text)
    if named is None:
        return None
    try:
        server = _packed(named["server"], int(named["server_port"]))
        client = _packed(named["client"], int(named["client_port"]))
    except (ValueError, OverflowError):
        return None
    return (client + server, 0) if client < server else (server + client, 1)


LOGGED = re.compile(
    r"(?P<server>[0-9A-Fa-f.:%\w]+):(?P<server_port>\d{1,5})-(?P<client>[0-9A-Fa-f.:%\w]+):(?P<client_port>\d{1,5})"
    r"(?:-\d{1,19}){1,2}",
    re.ASCII,
)


def _packed(address: str, port: int) -> bytes:
    """An endpoint in 18 bytes. Raises ValueError for a text that is no address, OverflowError for no port."""
    return endpoint_bytes(ip_address(address.partition("%")[0]), port)


def endpoint_bytes(address: IPv4Address | IPv6Address, port: int) -> bytes:
    """An endpoint in 18 bytes, as in the column `connection` of PACKETS. Raises OverflowError for no port."""
    packed = address.packed if isinstance(address, IPv6Address) else bytes(10) + b"\xff\xff" + address.packed
    return packed + port.to_bytes(2, "big")
