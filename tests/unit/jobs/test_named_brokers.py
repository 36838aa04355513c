"""A setting can be stated only for a broker that the capture set shows."""

from __future__ import annotations

import pytest

from jobs.captures.named_brokers import unknown_brokers_text

SECOND, SEVENTH = ("broker.2.fetch.max.bytes", "broker.2"), ("broker.7.fetch.max.bytes", "broker.7")


def test_brokers_that_the_capture_shows_are_known() -> None:
    assert unknown_brokers_text([SECOND], {"1", "2"}) == ""
    assert unknown_brokers_text([], set()) == ""


@pytest.mark.parametrize(
    ("known", "shown"),
    [
        ({"12", "2"}, "the capture shows the brokers 2, 12"),
        ({"2", "10.0.0.1:9092"}, "the capture shows the brokers 2, 10.0.0.1:9092; --brokers=FILE says which node id a"),
        (set[str](), "the capture shows no broker"),
    ],
)
def test_another_broker_is_named_with_those_that_the_capture_shows(known: set[str], shown: str) -> None:
    assert unknown_brokers_text([SEVENTH], known).startswith(f"--captured: broker.7.fetch.max.bytes: {shown}")
