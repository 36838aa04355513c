"""Connections as people write them."""

from __future__ import annotations

import ipaddress

import numpy as np

from udfs.capture.endpoints import connection_endpoints


def endpoint(address: str, port: int) -> bytes:
    packed = ipaddress.ip_address(address).packed
    return (bytes(10) + b"\xff\xff" + packed if len(packed) == 4 else packed) + port.to_bytes(2, "big")


CONNECTIONS = [
    endpoint("10.0.0.1", 50000) + endpoint("10.0.0.2", 9092),
    endpoint("::1", 9092) + endpoint("2001:db8::1:0", 65535),
]
LOWER, HIGHER = ["10.0.0.1:50000", "[::1]:9092"], ["10.0.0.2:9092", "[2001:db8::1:0]:65535"]


def test_addresses_and_ports_are_written_as_usual() -> None:
    assert connection_endpoints(b"".join(CONNECTIONS)) == (LOWER, HIGHER)


def test_an_array_of_connections_is_taken_as_well() -> None:
    rows = np.frombuffer(b"".join(CONNECTIONS), np.uint8).reshape(2, 36)
    assert connection_endpoints(rows) == (LOWER, HIGHER)
    assert connection_endpoints(rows[:0]) == ([], [])
