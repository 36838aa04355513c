"""Which users clients are, as far as a capture shows it, and which clients share quotas."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.silver import EXCHANGES
from schemas.tables.values import CONSUMER
from schemas.wire.apis import API_KEYS
from tests.packed import unpack
from tests.unit.replay.fetch_max_bytes.captured_reader import batch_rows, catch_up, lanes_of, reads_of
from udfs.replay.fetch_max_bytes.events import with_groups
from udfs.replay.fetch_max_bytes.producer_quota.settings import ProducerLanes
from udfs.replay.fetch_max_bytes.quotas import EACH, QuotaOf
from udfs.replay.fetch_max_bytes.replay import replay_fetches
from udfs.replay.fetch_max_bytes.settings import FETCH_LIMITS, FetchLanes, Reader, as_captured_clients
from udfs.replay.fetch_max_bytes.who_has_quotas import quota_groups, users_of_clients, who_rows
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.replay.shared.process_addresses import ONE_ADDRESS_EACH, ProcessAddresses
from udfs.replay.shared.silver_columns import ByConnection

FETCH, SASL = API_KEYS["FETCH"], API_KEYS["SASL_AUTHENTICATE"]
HERE, THERE = "10.0.0.1", "10.0.0.2"
Request = tuple[int, str | None, str, int, str | None]


def who(
    requests: list[Request], rows: int = 100, processes: ProcessAddresses = ONE_ADDRESS_EACH
) -> list[dict[str, object]]:  # fmt: skip
    """Rows of WHO. requests: connection, client.id, address, API and principal. rows: of each batch."""
    x = EXCHANGES
    names = (x.connection_id, x.client_id, x.client_address, x.api_key, x.principal)
    kinds = (pa.int64(), pa.string(), pa.string(), pa.int16(), pa.string())
    arrays = [pa.array(of, kind) for of, kind in zip(zip(*requests, strict=True), kinds, strict=True)]
    columns = [of.dictionary_encode() if pa.types.is_string(of.type) else of for of in arrays]
    batch = pa.RecordBatch.from_arrays(columns, names=[*map(str, names)])
    parts = [batch.slice(first, rows) for first in range(0, len(requests), rows)]
    return [row for part in who_rows(parts, FETCH, processes) for row in part.to_pylist()]


@pytest.mark.parametrize("rows", [1, 7, 100])
def test_a_request_log_shows_users_and_a_listener_without_sasl_has_one(rows: int) -> None:
    shown = who(
        [
            (1, "app", HERE, FETCH, "User:ann"),
            (1, "app", HERE, FETCH, None),
            (2, "job", HERE, SASL, None),
            (2, "job", HERE, FETCH, None),
            (3, None, THERE, FETCH, None),
            (4, "admin", THERE, 3, "User:root"),
        ],
        rows,
    )
    assert {row["connection_id"] for row in shown if row["authenticates"]} == {2}
    users = users_of_clients(shown, [3])
    assert users == {("app", HERE): "ann", ("job", HERE): None, ("", THERE): "ANONYMOUS"}


def test_a_client_of_several_users_has_none() -> None:
    shown = who([(1, "app", HERE, FETCH, "User:ann"), (2, "app", HERE, FETCH, "User:bob")])
    assert users_of_clients(shown, []) == {("app", HERE): None}


NO_NUMBERS = ByConnection(np.zeros(0, np.int64), np.zeros(0, np.int64))
PROCESSES = ProcessAddresses(
    ByConnection(np.array([1, 2]), np.array([0, 1])), (f"{HERE}:40001", f"{HERE}:40002"), NO_NUMBERS
)
"""Those with connections 1 and 2, which share a client.id and an address."""


def test_processes_with_one_client_id_and_address_are_clients_of_their_own() -> None:
    shown = who([(number, "app", HERE, FETCH, "User:ann") for number in (1, 2, 3)], processes=PROCESSES)
    assert users_of_clients(shown, []) == dict.fromkeys(
        [("app", f"{HERE}:40001"), ("app", f"{HERE}:40002"), ("app", HERE)], "ann"
    )


@pytest.mark.parametrize("quota", [QuotaOf(None, EACH), QuotaOf(EACH, EACH), QuotaOf(EACH, None)])
def test_processes_with_one_client_id_and_address_share_a_quota_even_if_their_user_is_not_known(quota: QuotaOf) -> None:
    """The broker counts their bytes together. Those of a client at another address may be another user's."""
    limits, clients = np.zeros(1, FETCH_LIMITS), as_captured_clients(1)
    lanes = replace(FetchLanes(("lane",), limits, limits, clients, clients, np.ones(1)), quotas=({quota: 1},))
    of = [("app", f"{HERE}:40001"), ("app", f"{HERE}:40002"), ("app", HERE)]
    groups = quota_groups([*of, ("job", THERE)], lambda client: lanes.quotas_of(Reader(*client, CONSUMER)))
    assert groups == dict.fromkeys(of, f"app at {HERE}")
    producers = ProducerLanes(("lane",), ({quota: 1},), np.ones(1, np.int64), np.ones(1, np.int64), 1)
    assert quota_groups([*of, ("job", THERE)], producers.quotas_of) == groups


CLIENTS = {("app", HERE): "ann", ("app", THERE): "bob", ("job", HERE): "ann", ("lone", HERE): "cat"}


def grouped(*quotas: dict[QuotaOf, int]) -> list[set[tuple[str, str]]]:
    """The groups of clients that share quotas. quotas: those of each lane."""
    limits, clients = np.zeros(len(quotas), FETCH_LIMITS), as_captured_clients(len(quotas))
    names = tuple(f"lane {lane}" for lane in range(len(quotas)))
    unlimited = FetchLanes(names, limits, limits, clients, clients, np.ones(len(quotas)))
    lanes = replace(unlimited, quotas=quotas, users=CLIENTS)
    groups = quota_groups(CLIENTS, lambda client: lanes.quotas_of(Reader(*client, CONSUMER)))
    return [{client for client, of in groups.items() if of == name} for name in sorted(set(groups.values()))]


def test_clients_that_share_a_quota_in_any_lane_are_replayed_together() -> None:
    of_users, of_clients, of_both = ({of: 1} for of in (QuotaOf(EACH, None), QuotaOf(None, EACH), QuotaOf(EACH, EACH)))
    assert grouped({}, of_users) == [{("app", HERE), ("job", HERE)}]
    assert grouped({}, of_clients) == [{("app", HERE), ("app", THERE)}]
    assert grouped({}, of_users, of_clients) == [{("app", HERE), ("app", THERE), ("job", HERE)}]
    assert grouped({}, of_both) == []
    assert grouped({}, {QuotaOf("bob", None): 1}) == []


def of_two_addresses(groups: dict[tuple[str, str], str], most: int) -> dict[str, list[dict[str, Any]]]:
    """The gold rows of the same catch-up by a client at two addresses, without a quota and with one for its client.id.

    most: rows of a batch.
    """
    parts = [
        reads_of(batch_rows() + [row | {"client_address": address, "connection_id": number} for row in catch_up()])
        for number, address in ((5, HERE), (6, THERE))
    ]
    lanes = lanes_of(AS_CAPTURED, AS_CAPTURED)
    lanes.consumer["quota_windows"], lanes.consumer["quota_window_ms"] = 11, 1000
    lanes = replace(lanes, quotas=({}, {QuotaOf(None, "app"): 100}))
    batches = [batch for part in parts for batch in part.to_batches(max_chunksize=most)]
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for packed in replay_fetches(with_groups(batches, groups, joins_fetchers=False), lanes, "run"):
        for batch in unpack([packed]):
            rows[packed["table"][0].as_py()] += batch.to_pylist()
    return rows


def test_a_client_at_two_addresses_waits_longer_for_a_quota_that_both_share() -> None:
    shared = dict.fromkeys([("app", HERE), ("app", THERE)], "app at both")
    apart, together = (of_two_addresses(groups, 10_000) for groups in ({}, shared))
    waits = [
        {
            (row["client_address"], row["scenario"]): row["throttle_time_ms"]
            for row in found["fetch_consumers"]
            if row["mode"] == "closed"
        }
        for found in (apart, together)
    ]
    assert waits[0][HERE, "lane 1"] == waits[0][THERE, "lane 1"] > 0
    first, last = sorted((waits[1][HERE, "lane 1"], waits[1][THERE, "lane 1"]))
    assert first > waits[0][HERE, "lane 1"]
    assert last == pytest.approx(2 * waits[0][HERE, "lane 1"], rel=0.05), "both together read at the rate of one alone"
    assert [waits[1][address, "lane 0"] for address in (HERE, THERE)] == [0, 0]
    for table in together.keys() - {"fetch_timeline", "fetch_memory"}:  # buckets are those of the longest lane
        of_lane_0 = [
            sorted(repr(row) for row in found[table] if row.get("scenario", "lane 0") == "lane 0")
            for found in (apart, together)
        ]
        assert of_lane_0[0] == of_lane_0[1], table


@pytest.mark.parametrize("most", [1, 7])
def test_rows_are_the_same_however_the_reads_of_a_group_are_split_into_batches(most: int) -> None:
    shared = dict.fromkeys([("app", HERE), ("app", THERE)], "app at both")
    assert of_two_addresses(shared, most) == of_two_addresses(shared, 10_000)
