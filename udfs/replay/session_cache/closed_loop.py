"""Brokers and clients in closed loop, in every lane: what each client would have sent, and what it would have got.

The intent of each captured fetch is the same in all lanes: its time, its client and its partitions. Session and epoch
are the lane's own. A client whose fetch gets a session error asks again with a full fetch. So in the capture, a fetch
with such an error is followed by a full fetch. If the first fetch gets an error in a lane, too, the lane has both
fetches. If it gets none, the lane leaves it out, and sends the second one as the incremental fetch that it needs.
"""

from __future__ import annotations

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH
from schemas.wire.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION
from udfs.columns.arrays import Record, Records
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache import close_session, find_owned, next_epoch, session_error, use_session
from udfs.replay.session_cache.clients import follow_response
from udfs.replay.session_cache.grants import admit_session, create_session, outcome_in_bucket
from udfs.replay.session_cache.state import (
    BEGIN_ANEW,
    FROM_BEFORE,
    FULL,
    INCREMENTAL,
    RENEW,
    SESSIONLESS,
    WITHOUT_SESSION,
    WRONG_EPOCH,
    Lanes,
)


@kernel
def follow_act(lanes: Lanes, lane: int, fetch: Record, now_ms: int) -> None:
    """Change the client's session by the client's own act, before it sends its fetch."""
    client = lanes.cache.clients[fetch.owner, lane]
    if fetch.act == BEGIN_ANEW:
        client.id, client.epoch = NO_SESSION, INITIAL_EPOCH
    elif fetch.act == RENEW:
        client.epoch = INITIAL_EPOCH
    elif fetch.act == WITHOUT_SESSION:
        client.epoch = FINAL_EPOCH
    elif fetch.act == FROM_BEFORE:
        admit_session(lanes, lane, fetch, now_ms)


@kernel
def count_incremental(outcome: Record, fetch: Record) -> None:
    """Count an incremental request."""
    outcome.fetches += 1
    outcome.request_bytes += fetch.request_incremental


@kernel
def request_full(lanes: Lanes, lane: int, fetch: Record) -> None:
    """Handle a full fetch, which closes the session that it names."""
    client, outcome = lanes.cache.clients[fetch.owner, lane], outcome_in_bucket(lanes, lane)
    place = find_owned(lanes.cache, lane, fetch.owner, client.id)
    if place != NONE:
        close_session(lanes.cache, lane, place)
    client.answer = SESSIONLESS if client.epoch == FINAL_EPOCH else FULL
    outcome.fetches += 1
    outcome.full_fetches += 1
    outcome.request_bytes += fetch.request_full
    outcome.partitions_reread += fetch.size - fetch.listed if fetch.act != WITHOUT_SESSION else 0


@kernel
def request_incremental(lanes: Lanes, lane: int, fetch: Record, now_ms: int) -> int:
    """FetchManager.newContext for a fetch in a session; returns its error, 0 if there is none."""
    cache, client = lanes.cache, lanes.cache.clients[fetch.owner, lane]
    count_incremental(outcome_in_bucket(lanes, lane), fetch)
    place = find_owned(cache, lane, fetch.owner, client.id)
    if place == NONE:
        return FETCH_SESSION_ID_NOT_FOUND
    session = cache.sessions[lane, place]
    error = session_error(session, client.epoch, fetch)
    if error != 0:
        return error
    if fetch.size == 0 and fetch.is_lost == 0:
        close_session(cache, lane, place)
        client.answer = SESSIONLESS
        return 0
    use_session(cache, lane, session, fetch.size, now_ms)
    session.epoch = next_epoch(session.epoch)
    client.answer = INCREMENTAL
    return 0


@kernel
def send_client_fetch(lanes: Lanes, lane: int, fetch: Record, now_ms: int) -> None:
    """Let a client send its fetch and, if that gets an error, a full fetch."""
    client = lanes.cache.clients[fetch.owner, lane]
    follow_act(lanes, lane, fetch, now_ms)
    if client.epoch > 0:
        error = request_incremental(lanes, lane, fetch, now_ms)
        if error == 0:
            return
        if fetch.is_throttled == 1:  # its response has no error, and no session
            client.answer = SESSIONLESS
            return
        answer_session_error(lanes, lane, fetch, error)
    request_full(lanes, lane, fetch)


@kernel
def answer_session_error(lanes: Lanes, lane: int, fetch: Record, error: int) -> None:
    """Answer a fetch with a session error, after which the client begins anew."""
    outcome = outcome_in_bucket(lanes, lane)
    outcome.not_found += error == FETCH_SESSION_ID_NOT_FOUND
    lanes.cache.totals[lane].not_found += error == FETCH_SESSION_ID_NOT_FOUND
    outcome.response_bytes += fetch.response_empty
    follow_response(lanes.cache.clients[fetch.owner, lane], error, NO_SESSION)


@kernel
def error_of_refusal(lanes: Lanes, lane: int, fetch: Record) -> int:
    """The error of a fetch that the captured broker refused; 0 if it gets none in the lane."""
    client = lanes.cache.clients[fetch.owner, lane]
    if client.epoch <= 0 or fetch.act == FROM_BEFORE:
        return 0
    place = find_owned(lanes.cache, lane, fetch.owner, client.id)
    if place == NONE:
        return FETCH_SESSION_ID_NOT_FOUND
    if fetch.act == WRONG_EPOCH:
        return INVALID_FETCH_SESSION_EPOCH
    return session_error(lanes.cache.sessions[lane, place], client.epoch, fetch)


@kernel
def request_refused(lanes: Lanes, lane: int, fetch: Record) -> None:
    """Let a client send a fetch that the captured broker refused, if the lane refuses it, too.

    If not, the client sends nothing here: its next fetch, which the capture shows whole, replaces this one.
    """
    error = error_of_refusal(lanes, lane, fetch)
    if error != 0:
        count_incremental(outcome_in_bucket(lanes, lane), fetch)
        answer_session_error(lanes, lane, fetch, error)


@kernel
def build_response(lanes: Lanes, lane: int, fetch: Record, now_ms: int) -> None:
    """Let the broker build its response, and the client take it."""
    client, outcome = lanes.cache.clients[fetch.owner, lane], outcome_in_bucket(lanes, lane)
    issued, size = NO_SESSION, fetch.response_full
    if client.answer == INCREMENTAL:
        issued, size = client.id, fetch.response_incremental
    elif client.answer == FULL and fetch.is_throttled == 0:
        issued = create_session(lanes, lane, fetch, now_ms)
    outcome.response_bytes += fetch.response_empty if fetch.is_throttled == 1 else size
    follow_response(client, 0, issued)


@kernel
def consumers_of(lanes: Lanes, lane: int, fetch: Record) -> int:
    """How many consumers share a captured fetch in a lane; 1 for a follower."""
    return 1 if fetch.privileged == 1 else int(lanes.cache.settings[lane].consumers)


@kernel
def sends_share(lanes: Lanes, lane: int, fetch: Record, captured: Record) -> bool:
    """Whether one of several consumers sends its share of a captured fetch: it does if it has a partition to ask for,
    or if none of them has one and it has a session.
    """
    if lanes.cache.settings[lane].consumers == 1 or fetch.size > 0:
        return True
    return bool(captured.size == 0 and lanes.cache.clients[fetch.owner, lane].id != NO_SESSION)


@kernel
def play_request(lanes: Lanes, shares: Records, now_ms: int) -> None:
    """Replay a request in every lane. shares: SESSION_FETCH[shares] of it, from `shares_of_fetches`."""
    captured = shares[0]
    is_refused = captured.error != 0
    if not is_refused:
        lanes.awaited[captured.owner] = captured.number
    for lane in range(len(lanes.cache.totals)):
        first = lanes.first_share[lane]
        for share in range(first, first + consumers_of(lanes, lane, captured)):
            fetch = shares[share]
            lanes.names[fetch.owner] = fetch.name
            if is_refused:
                request_refused(lanes, lane, fetch)
            elif sends_share(lanes, lane, fetch, captured):
                send_client_fetch(lanes, lane, fetch, now_ms)


@kernel
def play_response(lanes: Lanes, shares: Records, now_ms: int) -> None:
    """Replay the response to a request in every lane, unless the client has sent another request since.

    shares: SESSION_FETCH[shares] of the fetch, from `shares_of_fetches`.
    """
    captured = shares[0]
    if lanes.awaited[captured.owner] != captured.number:
        return
    lanes.awaited[captured.owner] = NONE
    for lane in range(len(lanes.cache.totals)):
        first = lanes.first_share[lane]
        for share in range(first, first + consumers_of(lanes, lane, captured)):
            if sends_share(lanes, lane, shares[share], captured):
                build_response(lanes, lane, shares[share], now_ms)
