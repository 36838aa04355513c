"""Who asks, and why: each captured fetch as something that a client did, whatever session it had at that time.

The rules of a client are those of org.apache.kafka.clients.FetchSessionHandler (kafka-clients 4.3), which
kafka-python and aiokafka follow too. What they do not explain was the client's own doing, and a lane repeats it: it
began anew, closed its session, or fetched without one (librdkafka always does).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND, FETCH_SESSION_TOPIC_ID_ERROR
from udfs.columns.arrays import Ints, Record, Records
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.session_cache import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from udfs.replay.session_cache.session_fetches import (
    AFTER_LOSS,
    AS_EXPECTED,
    BEGIN_ANEW,
    BY_RULES,
    FROM_BEFORE,
    NO_SESSION,
    NO_TIME,
    RENEW,
    UNEXPECTED,
    WITHOUT_SESSION,
    WRONG_EPOCH,
)
from udfs.replay.shared.int_map import ABSENT, IntMap, new_map, place_of, put, roomy

CLIENT = np.dtype(
    [
        ("id", np.int64),  # session id of the next request
        ("epoch", np.int64),
        ("connection", np.int64),
        ("answered_us", np.int64),  # last response in the connection, or NO_TIME
        ("is_certain", np.int64),  # the last response was captured
        ("is_lost", np.int64),  # its session was opened, or lost track of, outside the capture
    ],
    align=True,
)


class Clients(NamedTuple):
    """A broker's clients: CLIENT[room], and which of them a connection or a session belongs to.

    known: int64[1], how many clients there are.
    """

    state: Records
    known: Ints
    of_connection: IntMap
    of_session: IntMap


@kernel
def take_response(client: Record, error: int, response_session_id: int) -> None:
    """FetchSessionHandler.handleResponse for a response whose partitions are right, and for one with an error."""
    if error == FETCH_SESSION_ID_NOT_FOUND:
        client.id, client.epoch = NO_SESSION, INITIAL_EPOCH
    elif error != 0:
        client.epoch = INITIAL_EPOCH  # close the session and try a new one
    elif response_session_id == NO_SESSION:
        client.id, client.epoch = NO_SESSION, INITIAL_EPOCH
    elif client.epoch <= 0:
        client.id, client.epoch = response_session_id, next_epoch(INITIAL_EPOCH)
    else:
        client.epoch = next_epoch(client.epoch)


@kernel
def new_client(clients: Clients) -> int:
    """A client of which nothing is known."""
    owner = clients.known[0]
    clients.known[0] += 1
    client = clients.state[owner]
    client.id, client.epoch, client.is_certain, client.is_lost = NO_SESSION, INITIAL_EPOCH, 0, 0
    client.answered_us = NO_TIME
    return owner


@kernel
def owner_of(clients: Clients, connection: int, session_id: int) -> int:
    """The client behind a connection; a new one that goes on with a session is the session's."""
    by_connection = clients.of_connection.values[place_of(clients.of_connection, connection)]
    by_session = ABSENT
    if session_id != NO_SESSION:
        by_session = clients.of_session.values[place_of(clients.of_session, session_id)]
    if by_session != ABSENT and clients.state[by_session].id == session_id:
        owner = by_session
    elif by_connection != ABSENT:
        owner = by_connection
    else:
        owner = new_client(clients)
    if owner != by_connection:
        put(clients.of_connection, connection, owner)
    return owner


@kernel
def skips(client: Record, fetch: Record) -> bool:
    """Did the broker take a later epoch than the session's? Then the fetches between were not captured.

    FetchManager.newContext takes the epoch before it finds that of topic ids wrong. Where the response was not captured
    it is taken for so: a client counts no further than it was answered.
    """
    is_taken = fetch.error in (0, FETCH_SESSION_TOPIC_ID_ERROR) and fetch.is_throttled == 0
    return bool(is_taken and client.id == fetch.session_id and 0 < client.epoch < fetch.epoch)


@kernel
def is_expected(client: Record, fetch: Record) -> int:
    """Is the request's session and epoch what the rules say?"""
    if fetch.epoch == FINAL_EPOCH or (client.id == fetch.session_id and client.epoch == fetch.epoch):
        return AS_EXPECTED
    if skips(client, fetch):
        return AFTER_LOSS
    return UNEXPECTED if client.is_certain == 1 and client.connection == fetch.connection else AFTER_LOSS


@kernel
def act_of(client: Record, fetch: Record) -> int:
    """What the client does, next to what its rules would have it do."""
    if fetch.epoch == FINAL_EPOCH:
        return WITHOUT_SESSION
    if fetch.epoch > 0:
        if client.id != fetch.session_id:
            return FROM_BEFORE
        is_refused = fetch.error != 0 and is_expected(client, fetch) == UNEXPECTED
        return WRONG_EPOCH if is_refused else BY_RULES
    if client.epoch == INITIAL_EPOCH and client.id == fetch.session_id:
        return BY_RULES
    return BEGIN_ANEW if fetch.session_id == NO_SESSION else RENEW


@kernel
def note_kind(client: Record, fetch: Record) -> None:
    """Is the client a follower, and is its session followed since it was opened?"""
    fetch.name = 2 * fetch.name + fetch.privileged
    if fetch.epoch <= 0:
        client.is_lost = 0
    elif (
        fetch.act == FROM_BEFORE or client.is_certain == 0 or client.connection != fetch.connection
        or skips(client, fetch)
    ):  # fmt: skip
        client.is_lost = 1
    fetch.is_lost = client.is_lost
    if fetch.is_lost == 1 and fetch.has_partitions == 0:
        # Which partitions the session has no message has told yet; a broker answers in the session all the same.
        fetch.is_known, fetch.response_session_id = 0, fetch.session_id


@kernel
def tell_clients(fetches: Records, first: int, clients: Clients) -> int:
    """Fill owner, act, expected and asked_us of fetches from `first` on, in the order of their requests; stops where
    memory runs out and returns how far it came.
    """
    for f in range(first, len(fetches)):
        if not has_room(clients):
            return f
        fetch = fetches[f]
        owner = owner_of(clients, fetch.connection, fetch.session_id)
        client = clients.state[owner]
        fetch.owner, fetch.act, fetch.expected = owner, act_of(client, fetch), is_expected(client, fetch)
        note_kind(client, fetch)
        waits = client.connection == fetch.connection
        fetch.asked_us = max(fetch.request_us, client.answered_us) if waits else fetch.request_us
        client.answered_us = fetch.response_us
        client.id, client.epoch, client.connection = fetch.session_id, fetch.epoch, fetch.connection
        client.is_certain = 1 if fetch.response_us != NO_TIME else 0
        if client.is_certain == 1:
            take_response(client, fetch.error, fetch.response_session_id)
        elif fetch.epoch > 0:
            client.epoch = next_epoch(fetch.epoch)
        if client.id != NO_SESSION:
            put(clients.of_session, client.id, owner)
    return len(fetches)


@kernel
def has_room(clients: Clients) -> bool:
    """Is there memory for one more client, connection and session?"""
    return bool(
        clients.known[0] < len(clients.state)
        and 2 * clients.of_connection.used[0] < len(clients.of_connection.keys)
        and 2 * clients.of_session.used[0] < len(clients.of_session.keys)
    )


def larger_clients(clients: Clients) -> Clients:
    """The same with room for twice as many."""
    state = np.concatenate([clients.state, np.zeros(len(clients.state), CLIENT)])
    maps = (roomy(of, len(of.keys)) for of in (clients.of_connection, clients.of_session))
    return Clients(state, clients.known, *maps)


def new_clients() -> Clients:
    """No client yet."""
    return Clients(np.zeros(16, CLIENT), np.zeros(1, np.int64), new_map(), new_map())
