"""No packets, however hostile, crash reassembly, make it hang, or lose a byte without a word."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.capture.conversations import Connection, accounted, batch, cut, frame, request, response, understand
from udfs.capture.connection_boundaries import IS_REQUEST, IS_RESPONSE
from udfs.capture.sasl import SASL_HANDSHAKE
from udfs.capture.tcp_headers import ACK, RST, SYN

FUZZ = settings(derandomize=True, max_examples=400, deadline=None)

payloads = st.one_of(
    st.binary(max_size=80),
    st.integers(0, 9).map(request),
    st.integers(0, 9).map(response),
    st.integers(0, 9).map(lambda i: request(i, key=SASL_HANDSHAKE)),
    st.binary(max_size=20).map(frame),
    st.sampled_from(
        [bytes.fromhex("15030300"), b"\x06\x40\0\0", b"\0\0\0\4" * 5, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 9]
    ),
    st.tuples(st.integers(0, 9).map(request), st.binary(max_size=9)).map(b"".join),
)
sequences = st.one_of(
    st.integers(0, 2**32 - 1),
    st.integers(0, 300),
    st.sampled_from([2**32 - 1, 2**31, 2**31 - 1, 1 << 26, (1 << 26) + 1, 1 << 22]),
)
flags = st.one_of(st.integers(0, 255), st.sampled_from([IS_REQUEST, IS_RESPONSE]))


def hostile_packet(
    n: int, key: bytes, direction: int, sequence: int, flags: int, payload: bytes, captured: int = 90
) -> dict[str, Any]:
    """The packet with number n; captured: how many bytes of its payload were captured."""
    return {
        "bucket": 0,
        "connection": key,
        "direction": direction,
        "sort_ns": n * 1000,
        "point": n % 3,
        "file_no": n // 9,
        "packet_no": n,
        "ts_ns": n * 1000,
        "seq": sequence,
        "flags": flags,
        "payload_bytes": len(payload),
        "payload": payload[:captured],
    }


@st.composite
def hostile_packets(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Any payloads, flags and sequence numbers, in a few connections."""
    connections = [Connection(client=("10.0.0.1", port)).key for port in (1, 2)]
    drawn = draw(
        st.lists(
            st.tuples(
                st.sampled_from(connections),
                st.integers(0, 1),
                sequences,
                flags,
                payloads,
                st.integers(0, 90),
            ),
            min_size=1,
            max_size=25,
        )
    )
    drawn.sort(key=lambda row: row[0])
    return [hostile_packet(n, *fields) for n, fields in enumerate(drawn)]


@FUZZ
@given(hostile_packets())
def test_every_byte_of_hostile_packets_is_accounted_for(rows: list[dict[str, Any]]) -> None:
    for most in (len(rows), 1, 3):
        found = understand(cut(batch(rows), most), rows=most, payload_bytes=1)
        assert accounted(found)
        assert found.counts["payload_bytes"] == sum(len(row["payload"]) for row in rows)
        assert sum(connection["packets"] for connection in found.connections) == len(rows)
        lost = sum(loss[3] for loss in found.losses)
        is_kafka = [c for c in found.connections if c["protocol"] == "kafka"]
        assert lost == sum(connection["unframed_bytes"] for connection in is_kafka)


@FUZZ
@given(hostile_packets())
def test_frames_lie_inside_the_bytes_that_were_captured(rows: list[dict[str, Any]]) -> None:
    found = understand([batch(rows)])
    framed = sum(
        len(content) for exchange in found.exchanges for content in (exchange.request, exchange.response) if content
    )
    assert framed <= found.counts["framed_bytes"]


@FUZZ
@given(hostile_packets())
def test_hostile_packets_give_the_same_however_they_are_cut(rows: list[dict[str, Any]]) -> None:
    whole = understand([batch(rows)])
    for most in (1, 3):
        assert understand(cut(batch(rows), most), rows=most, payload_bytes=1) == whole


def test_packets_after_a_connections_end_belong_to_the_next_connection_wherever_chunks_end() -> None:
    key = Connection(client=("10.0.0.1", 1)).key
    frames = [
        (IS_REQUEST, bytes(4)),
        (IS_REQUEST, request(1)),
        (SYN | RST | ACK, frame(bytes(17))),
        (0, b""),
        (IS_REQUEST, request(2)),
    ]
    rows = [hostile_packet(n, key, 0, 0, flags, payload) for n, (flags, payload) in enumerate(frames)]
    whole = understand([batch(rows)])
    assert [connection["packets"] for connection in whole.connections] == [2, 2, 1]
    for most in range(1, len(rows)):
        assert understand(cut(batch(rows), most), rows=most, payload_bytes=1) == whole
