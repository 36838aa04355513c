"""Where consumers and brokers are: what is stated, and what the capture shows (KIP-392)."""

from __future__ import annotations

import pytest

from jobs.replays.fetch_max_bytes.racks import Consumer, rack_of_consumer, racks_in_force

STATED = {
    "client.app.client.rack": "of-client",
    "address.10.0.0.0/8.client.rack": "of-subnet",
    "address.10.1.0.0/16.client.rack": "of-smaller-subnet",
    "address.10.1.0.9.client.rack": "of-address",
    "address.host-0123456789abcdef.client.rack": "of-pseudonym",
}
OF_ALL = {"consumer.client.rack": "of-all"}


@pytest.mark.parametrize(
    ("client_id", "address", "rack"),
    [
        ("app", "10.1.0.9", "of-client"),
        ("other", "10.1.0.9", "of-address"),
        ("other", "10.1.0.8", "of-smaller-subnet"),
        ("other", "10.2.0.1", "of-subnet"),
        ("other", "host-0123456789abcdef", "of-pseudonym"),
        ("other", "[2001:db8::1]", "shown"),
        ("other", "host-ffffffffffffffff", "shown"),
    ],
)
def test_the_client_goes_before_the_address_and_that_before_what_its_requests_state(
    client_id: str, address: str, rack: str
) -> None:
    assert rack_of_consumer(Consumer(client_id, address, "shown"), STATED) == rack


def test_what_is_stated_of_all_goes_before_what_requests_state() -> None:
    assert rack_of_consumer(Consumer("a", "10.0.0.1", "shown"), OF_ALL) == "of-all"
    assert rack_of_consumer(Consumer("app", "10.0.0.1", "shown"), {**STATED, **OF_ALL}) == "of-client"


@pytest.mark.parametrize("shown", [None, ""])
def test_a_consumer_that_states_no_rack_is_nowhere(shown: str | None) -> None:
    assert rack_of_consumer(Consumer("app", "10.0.0.1", shown), {}) is None


def test_a_brokers_rack_is_what_is_stated_of_it_or_what_metadata_shows() -> None:
    shown = {"1": "a", "2": None, "3": ""}
    assert racks_in_force(shown, {}) == {"1": "a"}
    assert racks_in_force(shown, {"broker.2.broker.rack": "b", "broker.4.broker.rack": "d"}) == {
        "1": "a", "2": "b", "4": "d"
    }  # fmt: skip
    assert racks_in_force(shown, {"broker.rack": "z", "broker.2.broker.rack": "b"}) == {"1": "z", "2": "b", "3": "z"}
