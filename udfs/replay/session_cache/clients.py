"""Which client sends a fetch, and why: each captured fetch as an act of a client, independent of its captured session.

The rules of a client are those of org.apache.kafka.clients.FetchSessionHandler (kafka-clients 4.3), which kafka-python
and aiokafka follow, too. If these rules do not explain a fetch, it was the client's own act: the client began anew,
closed its session, or fetched without a session (librdkafka always does). A lane repeats such an act.
"""

from __future__ import annotations

import numpy as np

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND, FETCH_SESSION_TOPIC_ID_ERROR
from schemas.wire.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION
from udfs.columns.arrays import Record, Records
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache import next_epoch
from udfs.replay.session_cache.state import (
    AFTER_LOSS,
    AS_EXPECTED,
    BEGIN_ANEW,
    BY_RULES,
    FROM_BEFORE,
    NO_TIME,
    RENEW,
    SESSION_CLIENT,
    UNEXPECTED,
    WITHOUT_SESSION,
    WRONG_EPOCH,
    Clients,
)
from udfs.replay.shared.int_map import ABSENT, new_map, place_of_key, put_key, with_room_for


@kernel
def follow_response(client: Record, error: int, response_session_id: int) -> None:
    """Update the client's session from a response, as FetchSessionHandler.handleResponse does.

    A response without error is taken to have the right partitions, as all captured ones have. client: a row of
    SESSION_CLIENT or of LANE_CLIENT.
    """
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
    """Add a client about which nothing is known. Returns its number."""
    owner = clients.known[0]
    clients.known[0] += 1
    client = clients.state[owner]
    client.id, client.epoch, client.is_certain, client.is_lost = NO_SESSION, INITIAL_EPOCH, 0, 0
    client.answered_us = NO_TIME
    return owner


@kernel
def owner_of(clients: Clients, connection: int, session_id: int) -> int:
    """The number of a connection's client. If the connection goes on with a session, it is the session's client."""
    connected, in_session = clients.by_connection.values[place_of_key(clients.by_connection, connection)], ABSENT
    if session_id != NO_SESSION:
        in_session = clients.by_session.values[place_of_key(clients.by_session, session_id)]
    if in_session != ABSENT and clients.state[in_session].id == session_id:
        owner = in_session
    elif connected != ABSENT:
        owner = connected
    else:
        owner = new_client(clients)
    if owner != connected:
        put_key(clients.by_connection, connection, owner)
    return owner


@kernel
def skips_epochs(client: Record, fetch: Record) -> bool:
    """Whether the broker accepted a later epoch than the session's. The fetches between were then not captured.

    FetchManager.newContext accepts an epoch before it finds that the use of topic ids is wrong. If the response was not
    captured, the epoch counts as accepted: a client counts only as far as it was answered.
    """
    is_taken = fetch.error in (0, FETCH_SESSION_TOPIC_ID_ERROR) and fetch.is_throttled == 0
    return bool(is_taken and client.id == fetch.session_id and 0 < client.epoch < fetch.epoch)


@kernel
def how_expected(client: Record, fetch: Record) -> int:
    """Whether the client's rules give the request's session and epoch: AS_EXPECTED, AFTER_LOSS or UNEXPECTED."""
    if fetch.epoch == FINAL_EPOCH or (client.id == fetch.session_id and client.epoch == fetch.epoch):
        return AS_EXPECTED
    if skips_epochs(client, fetch):
        return AFTER_LOSS
    return UNEXPECTED if client.is_certain == 1 and client.connection == fetch.connection else AFTER_LOSS


@kernel
def act_of(client: Record, fetch: Record) -> int:
    """What the client does, compared with its rules: an act, such as BY_RULES. `fetch.expected` is already set."""
    if fetch.epoch == FINAL_EPOCH:
        return WITHOUT_SESSION
    if fetch.epoch > 0:
        if client.id != fetch.session_id:
            return FROM_BEFORE
        return WRONG_EPOCH if fetch.error != 0 and fetch.expected == UNEXPECTED else BY_RULES
    if client.epoch == INITIAL_EPOCH and client.id == fetch.session_id:
        return BY_RULES
    return BEGIN_ANEW if fetch.session_id == NO_SESSION else RENEW


@kernel
def note_loss(client: Record, fetch: Record) -> None:
    """Note with a fetch whether the capture shows its whole session, from the fetch that opened it on.

    is_lost is 1 from the first fetch that is missing in the capture until the client opens a new session.
    """
    if fetch.epoch <= 0:
        client.is_lost = 0
    elif (
        fetch.act == FROM_BEFORE or client.is_certain == 0 or client.connection != fetch.connection
        or skips_epochs(client, fetch)
    ):  # fmt: skip
        client.is_lost = 1
    fetch.is_lost = client.is_lost
    if fetch.is_lost == 1 and fetch.first == fetch.end:
        # No message has shown yet which partitions the session has, but the broker answers in the session.
        fetch.is_known, fetch.response_session_id = 0, fetch.session_id


@kernel
def note_session(fetch: Record, rows: Records) -> int:
    """Note what the rows of its partitions, LISTED_PARTITION[n], say about a fetch. Returns its max_wait_ms."""
    if fetch.first == fetch.end:
        fetch.is_known = 1
        return 0
    partition = rows[fetch.first]
    fetch.is_known, fetch.response_session_id = partition.session_known, partition.response_session_id
    return int(partition.max_wait_ms)


@kernel
def note_times(fetch: Record, handled_us: int, max_wait_ms: int) -> None:
    """Note when the broker handles the request, and when it answers (us).

    If the response was not captured, the broker is taken to have answered when max_wait_ms had passed.
    """
    fetch.handled_us, fetch.answered_us = handled_us, max(fetch.response_us, handled_us)
    if fetch.response_us == NO_TIME:
        fetch.answered_us = handled_us + max_wait_ms * US_PER_MS


@kernel
def go_on_from(client: Record, fetch: Record) -> None:
    """Update the client from a fetch that it sent and, if captured, from the response."""
    client.id, client.epoch, client.connection = fetch.session_id, fetch.epoch, fetch.connection
    client.answered_us = fetch.response_us
    client.is_certain = 1 if fetch.response_us != NO_TIME else 0
    if client.is_certain == 1:
        follow_response(client, fetch.error, fetch.response_session_id)
    elif fetch.epoch > 0:
        client.epoch = next_epoch(fetch.epoch)


@kernel
def note_client(clients: Clients, fetch: Record) -> Record:
    """Note with a fetch which client sent it and why. Returns the client, in its state before this fetch."""
    fetch.owner = owner_of(clients, fetch.connection, fetch.session_id)
    client = clients.state[fetch.owner]
    fetch.expected = how_expected(client, fetch)
    fetch.act = act_of(client, fetch)
    note_loss(client, fetch)
    return client


@kernel
def note_clients(fetches: Records, first: int, rows: Records, clients: Clients) -> int:
    """Note, for fetches from `first` on, which client sent them and why, and when the broker worked on them.

    Returns the index of the first fetch that is not noted: where memory ran out, or the number of fetches.

    fetches: SESSION_FETCH[n], in the order of their requests. rows: LISTED_PARTITION[m].
    """
    for place in range(first, len(fetches)):
        if not has_room_for_client(clients):
            return place
        fetch = fetches[place]
        max_wait_ms = note_session(fetch, rows)
        if fetch.is_cut == 1:
            note_times(fetch, fetch.request_us, max_wait_ms)
            continue
        client = note_client(clients, fetch)
        waits = client.connection == fetch.connection
        note_times(fetch, max(fetch.request_us, client.answered_us) if waits else fetch.request_us, max_wait_ms)
        go_on_from(client, fetch)
        if client.id != NO_SESSION:
            put_key(clients.by_session, client.id, fetch.owner)
    return len(fetches)


@kernel
def has_room_for_client(clients: Clients) -> bool:
    """Whether there is memory for one more client, connection and session."""
    return bool(
        clients.known[0] < len(clients.state)
        and 2 * clients.by_connection.used[0] < len(clients.by_connection.keys)
        and 2 * clients.by_session.used[0] < len(clients.by_session.keys)
    )


def larger_clients(clients: Clients) -> Clients:
    """The clients, with room for twice as many."""
    state = np.concatenate([clients.state, np.zeros(len(clients.state), SESSION_CLIENT)])
    by_connection, by_session = (
        with_room_for(known, len(known.keys)) for known in (clients.by_connection, clients.by_session)
    )
    return Clients(state, clients.known, by_connection, by_session)


def new_clients() -> Clients:
    """Clients of which only UNSEEN, number 0, is known."""
    return Clients(np.zeros(16, SESSION_CLIENT), np.ones(1, np.int64), new_map(), new_map())
