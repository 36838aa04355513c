"""Who consumers are to brokers, as far as a capture shows it, and which of them share quotas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.silver import EXCHANGES
from schemas.wire.apis import API_KEYS
from udfs.replay.fetch_max_bytes.quotas import EACH, QuotaOf
from udfs.replay.fetch_max_bytes.settings import FETCH_LIMITS, FetchLanes, as_captured_clients
from udfs.replay.fetch_max_bytes.who_fetches import quota_groups, users_of_clients, who_rows

FETCH, SASL = API_KEYS["FETCH"], API_KEYS["SASL_AUTHENTICATE"]
HERE, THERE = "10.0.0.1", "10.0.0.2"
Request = tuple[int, str | None, str, int, str | None]


def who(requests: list[Request], rows: int = 100) -> list[dict[str, object]]:
    """Rows of WHO. requests: connection, client.id, address, API and principal. rows: of each batch."""
    x = EXCHANGES
    names = (x.connection_id, x.client_id, x.client_address, x.api_key, x.principal)
    kinds = (pa.int64(), pa.string(), pa.string(), pa.int16(), pa.string())
    arrays = [pa.array(of, kind) for of, kind in zip(zip(*requests, strict=True), kinds, strict=True)]
    columns = [of.dictionary_encode() if pa.types.is_string(of.type) else of for of in arrays]
    batch = pa.RecordBatch.from_arrays(columns, names=[*map(str, names)])
    parts = [batch.slice(first, rows) for first in range(0, len(requests), rows)]
    return [row for part in who_rows(parts) for row in part.to_pylist()]


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


CLIENTS = {("app", HERE): "ann", ("app", THERE): "bob", ("job", HERE): "ann", ("lone", HERE): "cat"}


def grouped(*quotas: dict[QuotaOf, int]) -> list[set[tuple[str, str]]]:
    """The groups of clients that share quotas. quotas: of each lane."""
    limits, clients = np.zeros(len(quotas), FETCH_LIMITS), as_captured_clients(len(quotas))
    names = tuple(f"lane {lane}" for lane in range(len(quotas)))
    lanes = FetchLanes(names, limits, limits, clients, clients, np.ones(len(quotas)))
    groups = quota_groups(CLIENTS, replace(lanes, quotas=quotas, users=CLIENTS))
    return [{client for client, of in groups.items() if of == name} for name in sorted(set(groups.values()))]


def test_clients_are_replayed_together_that_share_a_quota_in_any_lane() -> None:
    of_users, of_clients, of_both = ({of: 1} for of in (QuotaOf(EACH, None), QuotaOf(None, EACH), QuotaOf(EACH, EACH)))
    assert grouped({}, of_users) == [{("app", HERE), ("job", HERE)}]
    assert grouped({}, of_clients) == [{("app", HERE), ("app", THERE)}]
    assert grouped({}, of_users, of_clients) == [{("app", HERE), ("app", THERE), ("job", HERE)}]
    assert grouped({}, of_both) == []
    assert grouped({}, {QuotaOf("bob", None): 1}) == []
