"""Connections as text: endpoints as address:port, and the names of connections in request logs."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import numpy as np
import pyarrow as pa

from udfs.capture.tcp_headers import ENDPOINT_BYTES
from udfs.columns.arrays import Bools, Bytes
from udfs.columns.arrow_columns import arrow_array, arrow_array_over, binary_column
from udfs.columns.arrow_columns import compute as pc

ADDRESS_BYTES = 16
MAPPED = bytes(10) + b"\xff\xff"
"""The bytes before an IPv4 address that is written as an IPv6 address."""
NUMBERS = pa.array([str(number) for number in range(256)])


def connection_endpoints(connections: bytes) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """(lower, higher) endpoint of each connection, string[n] both: `10.0.0.1:9092`, `[2001:db8::1]:9092`.

    connections: 36 bytes each, one after the other (column `connection` of PACKETS).
    """
    ends = np.frombuffer(connections, np.uint8).reshape(-1, 2, ENDPOINT_BYTES)
    return _endpoints(ends[:, 0]), _endpoints(ends[:, 1])


def _endpoints(ends: Bytes) -> pa.Array[Any]:
    """The texts of endpoints, uint8[n, 18]."""
    addresses, ports = ends[:, :ADDRESS_BYTES], ends[:, ADDRESS_BYTES:].copy().view(">u2").astype(np.uint16)
    is_mapped = np.all(addresses[:, : len(MAPPED)] == np.frombuffer(MAPPED, np.uint8), axis=1)
    texts = pc.if_else(
        arrow_array(is_mapped), _ipv4_texts(addresses[:, len(MAPPED) :]), _ipv6_texts(addresses, ~is_mapped)
    )
    return pc.binary_join_element_wise(texts, arrow_array_over(pa.uint16(), len(ends), ports).cast(pa.string()), ":")


def _ipv4_texts(addresses: Bytes) -> pa.Array[Any]:
    """IPv4 addresses, uint8[n, 4], as text."""
    parts = (NUMBERS.take(arrow_array_over(pa.uint8(), len(part), part)) for part in addresses.T)
    return pc.binary_join_element_wise(*parts, ".")


def _ipv6_texts(addresses: Bytes, wanted: Bools) -> pa.Array[Any]:
    """IPv6 addresses, uint8[n, 16], as text in brackets; null where not `wanted`. Equal ones are formatted once."""
    raw = np.ascontiguousarray(addresses).ravel()
    coded = (
        binary_column(raw, np.arange(len(addresses) + 1) * ADDRESS_BYTES)
        .filter(arrow_array(wanted))
        .dictionary_encode()
    )
    texts = pa.array([f"[{IPv6Address(address).compressed}]" for address in coded.dictionary.to_pylist()], pa.string())
    place = np.where(wanted, np.cumsum(wanted) - 1, 0)
    return texts.take(coded.indices).take(arrow_array_over(pa.int64(), len(place), place, known=wanted))


@lru_cache(maxsize=65_536)
def logged_connection(text: str) -> tuple[bytes, int] | None:
    """(36 bytes: lower endpoint, higher endpoint; which of the two is the client) of a connection in a request log.

    text: SERVER:PORT-CLIENT:PORT-INDEX, since Kafka 4.0 with the network thread before the index
    (org.apache.kafka.common.network.ServerConnectionId). Returns None if it is no such name.
    """
    named = LOGGED.fullmatch(text)
    if named is None:
        return None
    try:
        server = _pack_endpoint(named["server"], int(named["server_port"]))
        client = _pack_endpoint(named["client"], int(named["client_port"]))
    except (ValueError, OverflowError):
        return None
    return (client + server, 0) if client < server else (server + client, 1)


LOGGED = re.compile(
    r"(?P<server>[0-9A-Fa-f.:%\w]+):(?P<server_port>\d{1,5})-(?P<client>[0-9A-Fa-f.:%\w]+):(?P<client_port>\d{1,5})"
    r"(?:-\d{1,19}){1,2}",
    re.ASCII,
)


def _pack_endpoint(address: str, port: int) -> bytes:
    """An endpoint in 18 bytes. Raises ValueError if the text is no address, OverflowError for an invalid port."""
    return endpoint_bytes(ip_address(address.partition("%")[0]), port)


def endpoint_bytes(address: IPv4Address | IPv6Address, port: int) -> bytes:
    """An endpoint in 18 bytes, as in the column `connection` of PACKETS. Raises OverflowError for an invalid port."""
    packed = address.packed if isinstance(address, IPv6Address) else MAPPED + address.packed
    return packed + port.to_bytes(2, "big")
