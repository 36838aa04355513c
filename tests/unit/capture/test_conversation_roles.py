"""What is sent, and never the port, shows which side is the client and whether a connection speaks Kafka."""

from __future__ import annotations

import pytest

from tests.unit.capture.conversations import (
    OPENING,
    Connection,
    Segment,
    answers,
    asks,
    batch,
    packets,
    produce,
    request,
    response,
    shifted,
    talk,
    understand,
)
from tests.unit.capture.packet_builders import ACK, BROKER, CLIENT, SYN
from tests.unit.wire.reference import be

EXCHANGE = (asks(request(7)), answers(response(7)))
CLIENT_IS_HIGHER = Connection(client=(BROKER, 50000), broker=(CLIENT, 9092))
TLS_HELLO = bytes([22, 3, 1, 0, 200]) + bytes(200)
HTTP = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"


@pytest.mark.parametrize(("connection", "client"), [(Connection(), 0), (CLIENT_IS_HIGHER, 1)])
@pytest.mark.parametrize("is_opened", [True, False], ids=["from its SYN", "in mid-stream"])
def test_the_client_is_the_side_that_sends_requests(connection: Connection, client: int, is_opened: bool) -> None:
    found = talk(*EXCHANGE, connection=connection, is_opened=is_opened)
    assert (found.only["protocol"], found.only["client"]) == ("kafka", client)
    assert found.only["began_before_capture"] is not is_opened
    assert found.pairs() == [(request(7)[4:], response(7)[4:])]


def test_a_connection_shows_its_role_by_syn_alone_when_the_client_has_no_id() -> None:
    found = talk(asks(request(1, client_id=None)), answers(response(1)))
    assert found.only["client"] == 0
    assert found.pairs() == [(request(1, client_id=None)[4:], response(1)[4:])]


def test_three_requests_with_rising_correlation_ids_show_a_client_without_id_in_mid_stream() -> None:
    segments = [s for i in (4, 5, 6) for s in (asks(request(i, client_id=None)), answers(response(i)))]
    found = talk(*segments, is_opened=False)
    assert (found.only["protocol"], found.only["client"]) == ("kafka", 0)
    assert [exchange.correlation_id for exchange in found.exchanges] == [4, 5, 6]


def test_one_request_without_id_in_mid_stream_is_no_evidence() -> None:
    found = talk(asks(request(4, client_id=None)), answers(response(4)), is_opened=False)
    assert (found.only["protocol"], found.only["client"]) == ("other", None)
    assert found.only["unframed_bytes"] == found.only["payload_bytes"] > 0


@pytest.mark.parametrize(
    "body",
    [be("ih", 99, -1) + bytes(20), be("ih", 1, 5) + b"topic" + be("iihqq", 1, 0, 0, -1, 12)],
    ids=["no client id", "a topic for the client id"],
)
@pytest.mark.parametrize("is_opened", [True, False], ids=["from its SYN", "in mid-stream"])
def test_responses_that_look_like_produce_requests_do_not_make_the_broker_the_client(
    is_opened: bool, body: bytes
) -> None:
    """Correlation id 3 looks like Produce v3, and the first bytes of the body like a correlation id and a client id."""
    found = talk(answers(response(3, body)), asks(request(4)), answers(response(4, body)), is_opened=is_opened)
    assert (found.only["protocol"], found.only["client"]) == ("kafka", 0)
    assert [(exchange.number, exchange.status) for exchange in found.exchanges] == [(-1, "orphan"), (0, "answered")]


@pytest.mark.parametrize(("payload", "protocol"), [(TLS_HELLO, "tls"), (HTTP, "other"), (bytes(100), "other")])
def test_other_protocols_are_named_and_their_bytes_counted(payload: bytes, protocol: str) -> None:
    found = talk(asks(payload), answers(payload))
    assert found.only["protocol"] == protocol
    assert found.only["unframed_bytes"] == found.only["payload_bytes"] == 2 * len(payload)
    assert (found.exchanges, found.losses) == ([], [])


def test_a_connection_without_payload_has_no_protocol() -> None:
    assert talk().only["protocol"] == "undecided"


@pytest.mark.parametrize("version", [2, 7])
def test_a_produce_request_in_mid_stream_shows_a_client(version: int) -> None:
    found = talk(asks(produce(9, 1, version=version)), answers(response(9)), is_opened=False)
    assert (found.only["protocol"], found.only["client"]) == ("kafka", 0)


def test_requests_of_unknown_apis_and_of_versions_too_new_are_kept_once_the_client_is_known() -> None:
    no_tags = b"\0"
    strange = [request(2, key=4321), request(3, no_tags, version=90), request(4, no_tags, key=1, version=99)]
    segments = [s for i, asked in enumerate(strange, 2) for s in (asks(asked), answers(response(i)))]
    found = talk(asks(request(1)), answers(response(1)), *segments)
    assert found.pairs()[1:] == [(asked[4:], response(i)[4:]) for i, asked in enumerate(strange, 2)]
    assert found.losses == []


def test_the_same_endpoints_connect_again() -> None:
    first = packets([*OPENING, asks(request(1)), answers(response(1))])
    again = Connection(first=(900_001, 77))
    second = shifted(packets([*OPENING, asks(request(1, b"new")), answers(response(1))], again), 10)
    found = understand([batch(first + second)])
    assert [connection["key"][1] for connection in found.connections] == [0, 1]
    assert [connection["packets"] for connection in found.connections] == [4, 4]
    assert [pair[0] for pair in found.pairs()] == [request(1)[4:], request(1, b"new")[4:]]


def test_a_repeated_syn_opens_no_other_connection() -> None:
    found = talk(Segment(0, flags=SYN, at=0), Segment(1, flags=SYN | ACK, at=0), *EXCHANGE)
    assert found.only["packets"] == 6
    assert len(found.exchanges) == 1


def test_what_the_first_connection_left_unanswered_is_not_answered_by_the_next() -> None:
    first = packets([*OPENING, asks(request(1))])
    second = shifted(packets([*OPENING, asks(request(1)), answers(response(1))], Connection(first=(5, 6))), 10)
    found = understand([batch(first + second)])
    assert [exchange.status for exchange in found.exchanges] == ["unanswered", "answered"]


def test_connections_with_different_endpoints_are_different() -> None:
    other = Connection(client=(CLIENT, 50001))
    rows = packets([*OPENING, asks(request(1)), answers(response(1))])
    rows += packets([*OPENING, asks(request(1)), answers(response(1)), asks(produce(2, 0))], other)
    found = understand([batch(sorted(rows, key=lambda row: row["connection"]))])
    assert [connection["requests"] for connection in found.connections] == [1, 2]
