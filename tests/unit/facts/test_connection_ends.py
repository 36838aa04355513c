"""Whether the capture shows the end of a connection."""

from __future__ import annotations

import pytest

from tests.unit.capture.conversations import Segment, answers, asks, request, response
from tests.unit.capture.packet_builders import ACK, FIN, RST
from tests.unit.facts.brokers import tables

TURN = (asks(request(1)), answers(response(1)))


@pytest.mark.parametrize(
    ("end", "is_shown"),
    [
        ((), False),
        ((asks(b"", flags=FIN | ACK),), True),
        ((answers(b"", flags=FIN | ACK),), True),
        ((asks(b"", flags=RST),), True),
        ((asks(b"", flags=ACK),), False),
    ],
)
@pytest.mark.parametrize("rows", [1, 10_000])
def test_a_fin_or_rst_of_either_side_is_a_connections_end(end: tuple[Segment, ...], is_shown: bool, rows: int) -> None:
    [row] = tables(*TURN, *end, rows=rows)["connections"]
    assert row["ended"] is is_shown
