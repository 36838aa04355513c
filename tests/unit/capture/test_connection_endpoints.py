"""Endpoints and connections as text."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.capture.packet_builders import endpoint
from udfs.capture.endpoints import connection_endpoints

End = tuple[IPv4Address | IPv6Address, int]
ENDS = st.tuples(st.ip_addresses(), st.integers(0, 65535))

CONNECTIONS = [
    endpoint("10.0.0.1", 50000) + endpoint("10.0.0.2", 9092),
    endpoint("::1", 9092) + endpoint("2001:db8::1:0", 65535),
    endpoint("::1", 1) + endpoint("255.254.0.9", 0),
]
LOWER = ["10.0.0.1:50000", "[::1]:9092", "[::1]:1"]
HIGHER = ["10.0.0.2:9092", "[2001:db8::1:0]:65535", "255.254.0.9:0"]


def texts(connections: bytes) -> tuple[list[str], list[str]]:
    lower, higher = connection_endpoints(connections)
    return list(map(str, lower.to_pylist())), list(map(str, higher.to_pylist()))


def test_addresses_and_ports_are_written_as_usual() -> None:
    assert texts(b"".join(CONNECTIONS)) == (LOWER, HIGHER)
    assert texts(b"") == ([], [])


@given(st.lists(st.tuples(ENDS, ENDS)))
def test_each_address_is_written_as_python_writes_it(connections: list[tuple[End, End]]) -> None:
    packed = b"".join(endpoint(str(address), port) for ends in connections for address, port in ends)
    assert texts(packed) == (
        [written(*lower) for lower, _ in connections],
        [written(*higher) for _, higher in connections],
    )


def written(address: IPv4Address | IPv6Address, port: int) -> str:
    plain = address.ipv4_mapped or address if isinstance(address, IPv6Address) else address
    return f"{plain}:{port}" if isinstance(plain, IPv4Address) else f"[{plain}]:{port}"
