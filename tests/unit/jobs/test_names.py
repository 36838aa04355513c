"""Brokers and topics get the names that the capture set shows, above all in Metadata responses."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from jobs.captures.cluster_names import AdvertisedBroker, name_clusters
from jobs.captures.names import learn_names, needs_leaders
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.table import Table
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.captured_names import captured_names
from udfs.facts.cluster_names import ClusterNames, IdInForce
from udfs.facts.leading_names import LEADING_COLUMNS, leading_names

KNOWN = ClusterNames({"id-orders": "orders"}, {"orders": [IdInForce("id-orders")]}, {"10.0.0.1:9092": "1"})


def rows_of(table: Table, *rows: dict[str, object]) -> tuple[Table, pa.RecordBatch]:
    """Rows of a table of which only some columns matter."""
    return table, pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(table))


def learnt(*parts: tuple[Table, pa.RecordBatch]) -> ClusterNames:
    """The names that rows show. They must not depend on which workers have the rows."""
    leading = [part for part in parts if part[0] in LEADING_COLUMNS]
    naming = [part for part in parts if part[0] not in (FETCH_PARTITIONS, RECORD_BATCHES)]
    names = learn_names(pa.concat_tables([captured_names(naming), leading_names(leading)]))
    apart = [*(captured_names([part]) for part in naming), *(leading_names([part]) for part in leading)]
    assert names == learn_names(pa.concat_tables(reversed(apart)))
    return names


def advertised(*brokers: tuple[str, int, int]) -> list[AdvertisedBroker]:
    """Brokers that a server lists: (host, port, node id)."""
    return [AdvertisedBroker("10.0.0.1:9092", *broker) for broker in brokers]


def test_names_come_from_metadata_anywhere_in_the_capture_set() -> None:
    metadata = rows_of(
        CLUSTER_METADATA,
        {"entry": "broker", "node_id": 1, "host": "10.0.0.1", "port": 9092},
        {"entry": "partition", "topic": "orders", "topic_id": "id-orders", "partition": 0},
        {"entry": "partition", "topic": "orders", "topic_id": "id-orders", "partition": 1},
        {"entry": "partition", "topic": "of an old version", "partition": 1},
    )  # fmt: skip
    connections = rows_of(CONNECTIONS, {"server": "10.0.0.1:9092"}, {"server": None})
    assert learnt(metadata, connections) == KNOWN


SECOND = 1_000_000
AT = dict(enumerate(datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(20)))


def test_a_topic_made_again_under_its_name_has_each_id_while_it_was_there() -> None:
    """An id that a creation was only checked for was never in force."""
    metadata = rows_of(
        CLUSTER_METADATA,
        {"topic": "orders", "topic_id": "id-1", "request_time": AT[1], "response_time": AT[2]},
        {"topic": "orders", "topic_id": "id-2", "request_time": AT[8], "response_time": AT[9]},
    )  # fmt: skip
    done = {"topic": "orders", "error_code": 0}
    changes = rows_of(
        TOPIC_CHANGES,
        {**done, "kind": "delete_topic", "request_time": AT[5]},
        {**done, "kind": "create_topic", "request_time": AT[6]},
        {**done, "kind": "create_topic", "request_time": AT[7], "topic_id": "id-3", "validate_only": True},
    )  # fmt: skip
    names = learnt(metadata, changes)
    assert names.topic_of == {"id-1": "orders", "id-2": "orders"}
    assert names.ids_of == {"orders": [IdInForce("id-1", until=5 * SECOND), IdInForce("id-2", since=6 * SECOND)]}


def test_a_topics_id_is_also_known_from_the_response_to_its_creation() -> None:
    orders = {"topic": "orders", "topic_id": "id-1", "error_code": 0, "kind": "create_topic"}
    changes = rows_of(TOPIC_CHANGES, orders, {"topic": "refused", "error_code": 36})
    names = learnt(changes)
    assert (names.topic_of, names.ids_of) == ({"id-1": "orders"}, {"orders": [IdInForce("id-1")]})


A, B = "10.0.0.1:9092", "10.0.1.1:9092"


def test_if_only_one_cluster_is_shown_all_servers_belong_to_it() -> None:
    """Servers to which only followers connect show none: followers request no Metadata from their leaders."""
    assert name_clusters([(A, "cluster-1")], [], [A, B]) == {A: "cluster-1", B: "cluster-1"}
    assert name_clusters([], advertised(("10.0.0.1", 9092, 1)), [A, B]) == {}


def test_a_server_that_shows_no_cluster_belongs_to_the_one_that_lists_its_address() -> None:
    told = [(A, "cluster-1"), (B, "cluster-2")]
    brokers = [
        AdvertisedBroker(A, "10.0.0.2", 9092, 2),
        AdvertisedBroker(A, "10.0.0.9", 9092, 3),
        AdvertisedBroker(B, "10.0.0.9", 9192, 3),
        AdvertisedBroker(B, "2001:db8::1", 9092, 2),
    ]
    of = {
        A: "cluster-1",
        B: "cluster-2",
        "10.0.0.2:9091": "cluster-1",  # another listener of a host of one cluster
        "10.0.0.9:9092": "cluster-1",
        "10.0.0.9:9192": "cluster-2",
        "[2001:db8::1]:9091": "cluster-2",
    }
    assert name_clusters(told, brokers, [*of, "10.0.0.9:9091", "10.0.7.7:9092"]) == of


def test_a_server_that_was_set_up_again_for_another_cluster_gets_only_one() -> None:
    """Its address does not show which connection is to which cluster. The result does not depend on their order."""
    told = [(A, "cluster-2"), (A, "cluster-1"), (B, "cluster-2")]
    assert name_clusters(told, [], [A, B]) == name_clusters(reversed(told), [], [A, B]) == {
        A: "cluster-1", B: "cluster-2",
    }  # fmt: skip


def test_topics_of_two_clusters_may_have_the_same_name() -> None:
    """Each has its own ids, and the deletion of one says nothing about the other."""
    of_a, of_b = ({"broker": A, "cluster_id": "cluster-1"}, {"broker": B, "cluster_id": "cluster-2"})
    orders = {"topic": "orders", "request_time": AT[1], "response_time": AT[2]}
    metadata = rows_of(
        CLUSTER_METADATA, of_a | orders | {"topic_id": "id-a"}, of_b | orders | {"topic_id": "id-b"}
    )  # fmt: skip
    deleted = {"kind": "delete_topic", "topic": "orders", "error_code": 0, "request_time": AT[5]}
    connections = rows_of(CONNECTIONS, {"server": A}, {"server": B})
    names = learnt(metadata, rows_of(TOPIC_CHANGES, {"broker": B} | deleted), connections)
    assert names.cluster_of == {A: "cluster-1", B: "cluster-2"}
    assert names.topic_of == {"id-a": "orders", "id-b": "orders"}
    assert names.ids_of == {
        "cluster-1/orders": [IdInForce("id-a")],
        "cluster-2/orders": [IdInForce("id-b", until=5 * SECOND)],
    }


def test_what_several_brokers_show_of_a_topic_is_one_id() -> None:
    orders = {"cluster_id": "cluster-1", "topic": "orders", "topic_id": "id-1"}
    metadata = rows_of(
        CLUSTER_METADATA,
        {"broker": A, "request_time": AT[1], "response_time": AT[2]} | orders,
        {"broker": B, "request_time": AT[8], "response_time": AT[9]} | orders,
    )  # fmt: skip
    assert learnt(metadata).ids_of == {"orders": [IdInForce("id-1")]}


CLIENTS, REPLICATION = "10.10.0.1:9092", "10.10.0.1:9999"
LISTED = {"broker": CLIENTS, "entry": "broker", "node_id": 1, "host": "10.10.0.1", "port": 9092}


def test_a_follower_shows_which_node_has_its_address() -> None:
    """The replica id of its fetches shows it, or its client id if a fetch is cut before the replica id."""
    exchanges = rows_of(
        EXCHANGES,
        {"client_address": "10.0.0.2", "fetch_replica_id": 2, "broker": A},
        {"client_address": "10.0.0.3", "client_id": "broker-3-fetcher-0", "broker": A},
        {"client_address": "10.0.0.4", "fetch_replica_id": -1, "client_id": "broker-4-fetcher-0", "broker": A},
        {"client_address": "10.0.0.4", "client_id": "broker-of-goods", "broker": A},
    )
    servers = [f"10.0.0.{n}:9092" for n in (2, 3, 4)]
    rows: list[dict[str, object]] = [{"server": server, "protocol": "kafka"} for server in servers]
    connections = rows_of(CONNECTIONS, *rows)
    assert learnt(exchanges, connections).broker_of == {servers[0]: "2", servers[1]: "3"}


def test_a_controllers_listener_is_no_broker() -> None:
    heartbeat = rows_of(EXCHANGES, {"broker": REPLICATION, "api_key": 63})
    connections = rows_of(CONNECTIONS, {"server": REPLICATION, "protocol": "kafka"})
    names = learnt(rows_of(CLUSTER_METADATA, LISTED), heartbeat, connections)
    assert (names.broker_of, names.unnamed) == ({}, {})


@pytest.mark.parametrize(
    ("fetch", "racks", "node"),
    [
        pytest.param({"reader": "follower", "api_version": 17}, False, "1", id="follower"),
        pytest.param({"api_version": 17}, False, "1", id="consumer"),
        pytest.param({"api_version": 17}, True, None, id="consumer, where brokers are in racks"),
        pytest.param({"api_version": 10}, True, "1", id="consumer before KIP-392, where brokers are in racks"),
        pytest.param({"api_version": 17, "preferred_read_replica": 2}, False, None, id="consumer that is sent away"),
        pytest.param({"reader": "follower", "error_code": 6}, False, None, id="not leader"),
        pytest.param({"reader": "follower", "current_leader_epoch": 6}, False, None, id="an epoch without Metadata"),
        pytest.param({"reader": "follower", "current_leader_epoch": -1}, False, None, id="no epoch"),
        pytest.param({"reader": "follower", "response_position": None}, False, None, id="not answered"),
    ],
)
def test_a_server_is_the_leader_whose_partitions_it_answers_for(
    fetch: dict[str, object], racks: bool, node: str | None
) -> None:
    shown = {"broker": B, "topic": "orders", "topic_id": "id-1", "partition": 0, "leader_id": 1, "leader_epoch": 5}
    broker = {"broker": B, "entry": "broker", "node_id": 1, "host": "kafka-1", "port": 9092}
    metadata = rows_of(CLUSTER_METADATA, shown, broker | ({"rack": "a"} if racks else {}))
    usual = {"broker": A, "topic_id": "id-1", "partition": 0, "error_code": 0, "response_position": 0,
             "reader": "consumer", "api_version": 17, "current_leader_epoch": 5}  # fmt: skip
    connections = rows_of(CONNECTIONS, {"server": A, "protocol": "kafka"}, {"server": "10.0.0.9:9092"})
    assert learnt(metadata, rows_of(FETCH_PARTITIONS, usual | fetch), connections).broker_of.get(A) == node


def test_a_server_that_appends_records_is_the_leader_of_that_epoch() -> None:
    """No response shows who leads `payments` when records are appended to it."""
    shown = {"broker": B, "partition": 0, "leader_epoch": 5}
    metadata = rows_of(
        CLUSTER_METADATA,
        *(shown | {"topic": "orders", "leader_id": 1, "response_time": AT[second]} for second in (1, 9)),
        shown | {"topic": "payments", "leader_id": 2, "response_time": AT[1]},
    )  # fmt: skip
    batch = {"broker": A, "source": "produce", "partition": 0, "error_code": 0, "acks": -1, "request_time": AT[5]}
    connections = rows_of(CONNECTIONS, {"server": A, "protocol": "kafka"}, {"server": "10.0.0.9:9092"})
    for topic, refused, named in (("orders", {}, {A: "1"}), ("payments", {}, {}), ("orders", {"error_code": 6}, {})):
        batches = rows_of(RECORD_BATCHES, batch | {"topic": topic} | refused)
        assert learnt(metadata, batches, connections).broker_of == named, topic


@pytest.mark.parametrize(
    ("server", "protocol", "needed"),
    [(CLIENTS, "kafka", False), (REPLICATION, "kafka", True), (REPLICATION, "tls", False)],
)
def test_leaders_are_looked_for_if_a_kafka_server_is_not_advertised(server: str, protocol: str, needed: bool) -> None:
    connections = rows_of(CONNECTIONS, {"server": server, "protocol": protocol})
    assert needs_leaders(captured_names([rows_of(CLUSTER_METADATA, LISTED), connections])) is needed
