"""A name has the same pseudonym everywhere under one key, and never appears itself."""

from __future__ import annotations

import pyarrow as pa
import pytest

from schemas.tables.silver import CONNECTIONS, SILVER
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.pseudonyms import KNOWN_TO_ALL, Pseudonyms

ONE, OTHER = Pseudonyms(b"one secret key of ours"), Pseudonyms(b"another secret key")


def test_a_name_has_one_pseudonym_under_one_key() -> None:
    assert ONE.of("topic", "orders") == Pseudonyms(ONE.key).of("topic", "orders")
    assert ONE.of("topic", "orders") != OTHER.of("topic", "orders")
    assert ONE.of("topic", "orders") != ONE.of("topic", "payments")
    assert "orders" not in ONE.of("topic", "orders")


def test_a_topic_and_a_client_with_the_same_name_have_different_pseudonyms() -> None:
    assert ONE.of("topic", "orders").partition("-")[2] != ONE.of("client", "orders").partition("-")[2]


@pytest.mark.parametrize(("endpoint", "host"), [("10.1.2.3:9092", "10.1.2.3"), ("[2001:db8::1]:9092", "2001:db8::1")])
def test_an_endpoint_is_its_hosts_pseudonym_and_its_port(endpoint: str, host: str) -> None:
    assert ONE.of("endpoint", endpoint) == f"{ONE.of('host', host)}:9092"


@pytest.mark.parametrize("topic", sorted(KNOWN_TO_ALL))
def test_kafkas_own_topics_keep_their_names(topic: str) -> None:
    assert ONE.of("topic", topic) == topic


def test_columns_with_names_are_replaced_and_nulls_stay() -> None:
    t = CONNECTIONS
    nothing: dict[str, str | None] = dict.fromkeys(map(str, t.columns))
    row = nothing | {t.client: "10.1.2.3:40000", t.protocol: "kafka"}
    rows = pa.RecordBatch.from_pylist([row, nothing], schema=arrow_schema(t))
    first, second = ONE.applied_to(t, rows).to_pylist()
    assert first == row | {t.client: ONE.of("endpoint", "10.1.2.3:40000")}
    assert second == nothing


def test_every_column_with_names_is_declared_as_such() -> None:
    """Columns that are called like this have names that users gave."""
    names = {"topic", "host", "rack", "client", "client_id", "client_address", "server", "broker"}
    names |= {"principal", "group_id", "member_id", "fetch_rack_id"}
    for table in SILVER:
        assert {c for c in table.columns if c in names} == {c for c in table.columns if c.names}, table.name


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(ONE)
    assert "secret" not in ONE.key_id
