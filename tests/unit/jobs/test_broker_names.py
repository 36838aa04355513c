"""Which node a server is: it follows from advertised addresses, followers and leaders, and is never guessed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.captures.broker_names import BrokerEvidence, Follows, name_brokers
from jobs.captures.cluster_names import AdvertisedBroker

LISTER = "10.10.0.1:9092"


def advertised(*brokers: tuple[str, int, int]) -> list[AdvertisedBroker]:
    """Brokers that a server lists: (host, port, node id)."""
    return [AdvertisedBroker(LISTER, *broker) for broker in brokers]


def named(evidence: BrokerEvidence) -> dict[str, str]:
    """Node ids by server; each other server has a reason."""
    names = name_brokers(evidence)
    assert names.named.keys() | names.unnamed.keys() == set(evidence.servers) - set(evidence.controllers)
    assert not names.named.keys() & names.unnamed.keys()
    return names.named


NODES = (1, 2, 3)
CLIENTS = [f"10.10.0.{node}:9092" for node in NODES]
REPLICATION = [f"10.10.0.{node}:9999" for node in NODES]
LISTED = advertised(*((f"10.10.0.{node}", 9092, node) for node in NODES))
FOLLOWERS = [Follows(f"10.10.0.{of}:9999", f"10.10.0.{node}", node) for of in NODES for node in NODES if node != of]
TWO_LISTENERS = BrokerEvidence([*CLIENTS, *REPLICATION], LISTED, FOLLOWERS)
PODS = [f"10.1.0.{node}:9092" for node in NODES]
OF_PODS = [Follows(f"10.1.0.{of}:9092", f"10.1.0.{node}", node) for of in NODES for node in NODES if node != of]
KUBERNETES = BrokerEvidence(PODS, advertised(*((f"kafka-{node}.svc", 9092, node) for node in NODES)), OF_PODS)
LOCAL = [f"127.0.0.1:{9090 + node}" for node in NODES]
LAB = BrokerEvidence(
    LOCAL,
    advertised(*(("127.0.0.1", 9090 + node, node) for node in NODES)),
    [Follows(LOCAL[of - 1], "127.0.0.1", node) for of in NODES for node in NODES if node != of],
)


def test_a_broker_is_recognised_by_the_address_that_it_advertises() -> None:
    brokers = advertised(("10.0.0.1", 9092, 1), ("10.0.0.2", 9092, 2), ("2001:db8::1", 9092, 3))
    servers = ["10.0.0.1:9092", "10.0.0.2:9092", "[2001:db8::1]:9092"]
    assert named(BrokerEvidence(servers, brokers)) == dict(zip(servers, "123", strict=True))


def test_a_broker_that_advertises_a_host_name_is_recognised_by_a_port_of_its_own() -> None:
    brokers = advertised(("kafka-1", 9092, 1), ("kafka-2", 9093, 2))
    servers = ["10.0.0.1:9092", "10.0.0.2:9093"]
    assert named(BrokerEvidence(servers, brokers)) == dict(zip(servers, "12", strict=True))


@pytest.mark.parametrize(
    ("brokers", "servers"),
    [
        pytest.param([("a", 9092, 1), ("b", 9092, 2)], ["10.0.0.1:9092"], id="two brokers advertise the port"),
        pytest.param([("a", 9092, 1)], ["10.0.0.1:9092", "10.0.0.2:9092"], id="two servers have the port"),
        pytest.param([("a", 9092, 1)], ["10.0.0.1:9093"], id="another port"),
        pytest.param([], ["10.0.0.1:9092"], id="no metadata"),
        pytest.param([("10.0.0.1", 9092, 1), ("10.0.0.1", 9092, 2)], ["10.0.0.1:9092"], id="an endpoint of two"),
        pytest.param([("10.0.0.1", 9092, 1), ("kafka-2", 9093, 2)], ["10.0.0.1:9093"], id="port against address"),
    ],
)
def test_a_broker_is_not_guessed(brokers: list[tuple[str, int, int]], servers: list[str]) -> None:
    assert named(BrokerEvidence(servers, advertised(*brokers))) == {}


def test_an_address_overrides_a_port() -> None:
    """Broker 2 advertises a port that only broker 1's server was seen with."""
    brokers = advertised(("10.0.0.1", 9092, 1), ("kafka-2", 9092, 2))
    assert named(BrokerEvidence(["10.0.0.1:9092"], brokers)) == {"10.0.0.1:9092": "1"}


@pytest.mark.parametrize("followers", [FOLLOWERS, ()], ids=["with followers", "without"])
def test_all_listeners_of_an_address_belong_to_the_only_node_that_advertises_it(followers: list[Follows]) -> None:
    expected = dict(zip([*CLIENTS, *REPLICATION], "123123", strict=True))
    assert named(replace(TWO_LISTENERS, followers=followers)) == expected


def test_on_kubernetes_followers_show_which_node_has_an_address() -> None:
    assert named(KUBERNETES) == dict(zip(PODS, "123", strict=True))
    assert named(replace(KUBERNETES, followers=())) == {}


def test_on_kubernetes_leaders_show_it_if_no_follower_is_captured() -> None:
    led_by = {PODS[0]: {1}, PODS[2]: {3}}
    assert named(replace(KUBERNETES, followers=(), led_by=led_by)) == {PODS[0]: "1", PODS[2]: "3"}


def test_several_nodes_on_one_address_are_distinguished_by_their_ports() -> None:
    """A port that nobody advertises may be any of them, unless leaders show which."""
    expected, other = dict(zip(LOCAL, "123", strict=True)), "127.0.0.1:9999"
    assert named(LAB) == expected
    assert named(replace(LAB, servers=[*LOCAL, other])) == expected
    assert named(replace(LAB, servers=[*LOCAL, other], led_by={other: {2}})) == expected | {other: "2"}
    by_name = replace(LAB, advertised=advertised(*(("localhost", 9090 + node, node) for node in NODES)))
    assert named(by_name) == expected


def test_a_follower_that_fetches_from_its_own_address_shares_it() -> None:
    """The only captured follower is node 2, in a lab that advertises a host name. The server is another node."""
    lab = BrokerEvidence(
        ["127.0.0.1:9999"], advertised(("localhost", 9091, 1)), [Follows("127.0.0.1:9999", "127.0.0.1", 2)]
    )
    assert named(lab) == {}


def test_followers_behind_one_address_do_not_name_it() -> None:
    """With NAT, node 1 is at 10.1.0.1, and nodes 2 and 3 come from one address."""
    hidden = [Follows("10.1.0.1:9092", "192.168.0.1", node) for node in (2, 3)]
    assert named(replace(KUBERNETES, servers=["10.1.0.1:9092", "192.168.0.1:9092"], followers=hidden)) == {}


@pytest.mark.parametrize(
    ("changes", "server", "reason"),
    [
        pytest.param({"led_by": {REPLICATION[0]: {2}}}, REPLICATION[0], "contradicts itself", id="another leader"),
        pytest.param({"led_by": {REPLICATION[0]: {1, 2}}}, REPLICATION[0], "partitions of nodes 1, 2", id="a proxy"),
        pytest.param(
            {"followers": [Follows(REPLICATION[0], "10.10.0.9", 1)]},
            REPLICATION[0], "fetches from it", id="its follower",
        ),
        pytest.param(
            {"advertised": [*LISTED, *advertised(("10.10.0.1", 9095, 4))], "led_by": {REPLICATION[0]: {2}},
             "followers": ()},
            REPLICATION[0], "its address is that of nodes 1, 4", id="no node of the address",
        ),
    ],
)  # fmt: skip
def test_evidence_that_contradicts_itself_names_nobody(changes: dict[str, object], server: str, reason: str) -> None:
    names = name_brokers(replace(TWO_LISTENERS, **changes))  # type: ignore[arg-type]  # fields by name
    assert server not in names.named
    assert reason in names.unnamed[server]
    assert f'--brokers=FILE, in which a line is `"{server}": NODE_ID`' in names.unnamed[server]


def test_a_controllers_listener_is_no_broker_and_not_a_shared_address() -> None:
    """The controller runs beside broker 1, whose follower fetches the metadata log from it."""
    controller = "10.10.0.1:9093"
    evidence = replace(
        TWO_LISTENERS,
        servers=[*TWO_LISTENERS.servers, controller],
        followers=[*FOLLOWERS, Follows(controller, "10.10.0.1", 1)],
        controllers={controller},
    )
    assert named(evidence) == named(TWO_LISTENERS)


def test_nodes_of_two_clusters_on_one_address_are_two() -> None:
    first, second, other = "10.0.0.1:9092", "10.0.0.1:9192", "10.0.0.1:9999"
    brokers = [AdvertisedBroker(first, "10.0.0.1", 9092, 1), AdvertisedBroker(second, "10.0.0.1", 9192, 1)]
    clusters = {first: "a", second: "b"}
    evidence = BrokerEvidence([first, second, other], brokers, cluster_of=clusters)
    assert named(evidence) == {first: "1", second: "1"}
    assert named(replace(evidence, cluster_of=clusters | {other: "a"})) == {first: "1", second: "1", other: "1"}


def test_a_stated_node_overrides_what_the_capture_shows() -> None:
    stated = {REPLICATION[0]: "7", CLIENTS[1]: "8"}
    assert name_brokers(TWO_LISTENERS, stated).named == named(TWO_LISTENERS) | stated
