"""The clients, the users they are to brokers, and which clients share quotas. Only lanes with quotas need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from jobs.replays.algorithm import Source
from jobs.replays.client_processes import client_addresses
from jobs.replays.silver import Read, mapped_silver, read_small_table
from schemas.tables.silver import CONNECTIONS, EXCHANGES
from schemas.tables.values import CONSUMER
from udfs.replay.fetch_max_bytes.producer_quota.settings import ProducerLanes
from udfs.replay.fetch_max_bytes.settings import FetchLanes, Reader
from udfs.replay.fetch_max_bytes.who_has_quotas import (
    FETCH,
    PRODUCE,
    WHO,
    WHO_COLUMNS,
    Client,
    quota_groups,
    users_of_clients,
    who_rows,
)

Lanes = TypeVar("Lanes", FetchLanes, ProducerLanes)


def with_users(source: Source, lanes: FetchLanes) -> tuple[FetchLanes, Mapping[Client, str]]:
    """(The lanes, with the users of consumers if a lane has a quota of users; the groups from `quota_groups`)."""
    if not lanes.quotas:
        return lanes, {}
    users = known_users(source, FETCH)
    lanes = with_known_users(lanes, users)
    return lanes, quota_groups(users, lambda client: lanes.quotas_of(Reader(*client, CONSUMER)))


def producers_with_users(source: Source, lanes: ProducerLanes) -> tuple[ProducerLanes, Mapping[Client, str]]:
    """The same for producers."""
    users = known_users(source, PRODUCE)
    lanes = with_known_users(lanes, users)
    return lanes, quota_groups(users, lanes.quotas_of)


def known_users(source: Source, api_key: int) -> dict[Client, str | None]:
    """The clients that send requests of an API, each with its user's name, None if that is not known."""
    rows = partial(who_rows, api_key=api_key, processes=client_addresses(source))
    who = mapped_silver(source, [Read(EXCHANGES, WHO_COLUMNS, rows)], WHO).toArrow().to_pylist()
    authenticate = {row["connection_id"] for row in who if row["authenticates"]}
    return users_of_clients(who, plain_connections(source, authenticate))


def with_known_users(lanes: Lanes, users: Mapping[Client, str | None]) -> Lanes:
    """The lanes, with the users that are known if one of the lanes has a quota of users."""
    if not any(of.user is not None for of_lane in lanes.quotas for of in of_lane):
        return lanes
    return replace(lanes, users={client: user for client, user in users.items() if user is not None})


def plain_connections(source: Source, authenticate: set[int]) -> list[int]:
    """The connections to listeners without SASL: those to which a captured connection began without authenticating.

    A listener has one security protocol. Requests that packets show in clear are without TLS, so only SASL can give
    them a user. authenticate: the connections that do.
    """
    c = CONNECTIONS
    columns = (c.connection_id, c.server, c.began_before_capture, c.requests, c.sasl_token_bytes)
    rows = read_small_table(source, c, columns).to_pylist()
    plain = {
        row[c.server]
        for row in rows
        if row[c.requests] and not row[c.began_before_capture] and not row[c.sasl_token_bytes]
        and row[c.connection_id] not in authenticate
    }  # fmt: skip
    by_sasl = {row[c.server] for row in rows if row[c.connection_id] in authenticate or row[c.sasl_token_bytes]}
    return [row[c.connection_id] for row in rows if row[c.server] in plain - by_sasl - {None}]
