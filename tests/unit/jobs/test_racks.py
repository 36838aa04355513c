"""The racks of consumers and brokers, as they are stated or as the capture shows them (KIP-392)."""

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
def test_a_rack_stated_for_a_client_overrides_one_for_its_address_which_overrides_its_requests(
    client_id: str, address: str, rack: str
) -> None:
    assert rack_of_consumer(Consumer(client_id, address, "shown"), STATED) == rack


def test_a_rack_stated_for_all_clients_overrides_what_requests_state() -> None:
    assert rack_of_consumer(Consumer("a", "10.0.0.1", "shown"), OF_ALL) == "of-all"
    assert rack_of_consumer(Consumer("app", "10.0.0.1", "shown"), {**STATED, **OF_ALL}) == "of-client"


@pytest.mark.parametrize("shown", [None, ""])
def test_a_consumer_that_states_no_rack_has_none(shown: str | None) -> None:
    assert rack_of_consumer(Consumer("app", "10.0.0.1", shown), {}) is None


def test_a_brokers_rack_is_the_stated_one_or_else_that_in_metadata() -> None:
    shown = {"1": "a", "2": None, "3": ""}
    assert racks_in_force(shown, {}) == {"1": "a"}
    assert racks_in_force(shown, {"broker.2.broker.rack": "b", "broker.4.broker.rack": "d"}) == {
        "1": "a", "2": "b", "4": "d"
    }  # fmt: skip
    assert racks_in_force(shown, {"broker.rack": "z", "broker.2.broker.rack": "b"}) == {"1": "z", "2": "b", "3": "z"}
