"""A connection's requests show its client software by the name that they give and by the versions that they use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.silver import EXCHANGES
from tests.gate_rows import Row
from tests.silver_rows import row_of, silver_rows
from udfs.replay.shared.client_software import (
    API_VERSIONS,
    JAVA,
    PRODUCE,
    SOFTWARE,
    SOFTWARE_COLUMNS,
    Software,
    java_clients,
    librdkafka_clients,
    release_code_of_text,
    software_by_connection,
    software_rows,
)

HEARTBEAT = 12


def software(rows: list[Row], batch_rows: int = 10_000) -> dict[int, Software]:
    batches = list(software_rows(silver_rows(EXCHANGES, SOFTWARE_COLUMNS, rows, batch_rows)))
    return software_by_connection(pa.Table.from_batches(batches, SOFTWARE))


def java(rows: list[Row]) -> dict[int, bool]:
    """Whether the client may be Kafka's own, by connection, for connections whose requests show that."""
    clients = java_clients(software(rows))
    return dict(zip(clients.connection_id.tolist(), (clients.number == 1).tolist(), strict=True))


def request(connection: int, api_key: int, version: int | None, name: str | None = None) -> Row:
    return row_of(
        EXCHANGES, connection_id=connection, api_key=api_key, api_version=version, client_software_name=name
    )  # fmt: skip


def test_a_producer_is_a_java_client_by_its_name_or_if_it_behaves_like_one() -> None:
    """Clients before Kafka 2.4 give no name. The fourth client gives none and produces as later ones do."""
    asks = {1: 3, 2: 3, 3: 2, 4: 2}
    names = {1: JAVA, 2: "librdkafka", 3: None, 4: None}
    versions = {1: 12, 2: 10, 3: 7, 4: 8}
    rows = [request(connection, API_VERSIONS, asks[connection], name) for connection, name in names.items()]
    rows += [request(connection, PRODUCE, versions[connection], name) for connection, name in names.items()]
    assert java(rows) == {1: True, 2: False, 3: True, 4: False}


@pytest.mark.parametrize(
    ("asks", "produces", "is_nameless"),
    [
        (0, 2, False),
        (0, 7, True),
        (1, 5, False),
        (1, 7, True),
        (2, 7, False),
        (2, 8, True),
        (3, 8, False),
        (None, 8, False),
        (0, None, False),
    ],
)
def test_a_client_that_produces_as_a_later_release_than_it_asks_for_versions_is_nameless(
    asks: int | None, produces: int | None, is_nameless: bool
) -> None:
    rows = [request(1, key, of) for key, of in ((API_VERSIONS, asks), (PRODUCE, produces)) if of is not None]
    rows.append(request(1, HEARTBEAT, 4))
    assert software(rows)[1].is_nameless == is_nameless


def test_the_newest_version_that_a_client_uses_counts() -> None:
    rows = [request(1, API_VERSIONS, version) for version in (0, 3)] + [request(1, PRODUCE, 8)]
    assert not software(rows)[1].is_nameless
    rows = [request(1, PRODUCE, version) for version in (7, 8, 3)] + [request(1, API_VERSIONS, 0)]
    assert software(rows)[1].is_nameless


def test_without_either_request_a_connection_does_not_show_whether_its_client_is_java() -> None:
    assert java([request(1, HEARTBEAT, 4, "librdkafka"), row_of(EXCHANGES, connection_id=2)]) == {}


@pytest.mark.parametrize(("text", "code"), [("1.5", 1005), ("2.16.1", 2016), ("2", 0), ("", 0), ("two.one", 0)])
def test_later_releases_have_greater_numbers(text: str, code: int) -> None:
    assert release_code_of_text(text) == code


def test_of_several_names_and_versions_the_greatest_counts() -> None:
    of = [("a", "3"), ("b", "1"), ("a", None), (None, "9")]
    rows = [
        row_of(EXCHANGES, connection_id=1, client_software_name=name, client_software_version=version)
        for name, version in of
    ]
    assert (software(rows)[1].name, software(rows)[1].version) == ("b", "3")


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_software_does_not_depend_on_how_exchanges_are_cut(batch_rows: int) -> None:
    draw = np.random.default_rng(5)

    def one_of(values: list[Any]) -> Any:
        return values[int(draw.integers(len(values)))]

    rows = [
        row_of(
            EXCHANGES,
            connection_id=int(draw.integers(3)) - 1,
            api_key=one_of([PRODUCE, API_VERSIONS, HEARTBEAT, None]),
            api_version=one_of([0, 3, 8, None]),
            client_software_name=one_of([JAVA, "librdkafka", "", None]),
            client_software_version=one_of(["4.3.1", "2.1", None]),
        )
        for _ in range(100)
    ]
    assert software(rows, batch_rows) == software(rows)
    assert sorted(software(rows)) == [-1, 0, 1]


@pytest.mark.parametrize(
    ("name", "version", "release"),
    [
        ("librdkafka", "1.4.2", 1004), ("confluent-kafka-python", "2.16.1-rdkafka-2.15.0", 2015),
        ("confluent-kafka-go", "v2.3.0-librdkafka-v2.3.0", 2003), ("librdkafka", None, 0),
        ("librdkafka", "unknown", 0), (JAVA, "4.3.1", None), (None, None, None),
    ],
)  # fmt: skip
def test_a_client_that_uses_librdkafka_shows_its_release(
    name: str | None, version: str | None, release: int | None
) -> None:
    shown = request(1, API_VERSIONS, 3, name) | {"client_software_version": version}
    clients = librdkafka_clients(software([shown]))
    assert clients.number.tolist() == ([] if release is None else [release])
