"""Brokers and clients in closed loop, in every lane: what each client would have sent, and what it would have got.

All lanes share the intent of a captured fetch: its time, its client and its partitions. Session and epoch are the
lane's own. After a session error, a client asks again with a full fetch. So in the capture, two fetches stand for one
intent: the refused one and the full one. A lane that refuses the first fetch, too, has both. Any other lane leaves the
first one out, and sends the second one as an incremental fetch.
"""

from __future__ import annotations

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH
from schemas.wire.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION
from udfs.columns.arrays import Record, Records
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache import find_owned, next_epoch, remove_session, session_error, touch_session
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
    BrokerSim,
)


@kernel
def follow_act(sim: BrokerSim, lane: int, fetch: Record, now_ms: int) -> None:
    """Apply the client's own act to its session, before the client sends its fetch."""
    client = sim.cache.clients[fetch.owner, lane]
    if fetch.act == BEGIN_ANEW:
        client.id, client.epoch = NO_SESSION, INITIAL_EPOCH
    elif fetch.act == RENEW:
        client.epoch = INITIAL_EPOCH
    elif fetch.act == WITHOUT_SESSION:
        client.epoch = FINAL_EPOCH
    elif fetch.act == FROM_BEFORE:
        admit_session(sim, lane, fetch, now_ms)


@kernel
def count_incremental(outcome: Record, fetch: Record) -> None:
    """Count an incremental request."""
    outcome.fetches += 1
    outcome.request_bytes += fetch.request_incremental


@kernel
def request_full(sim: BrokerSim, lane: int, fetch: Record) -> None:
    """Handle a full fetch, which closes the session that it names."""
    client, outcome = sim.cache.clients[fetch.owner, lane], outcome_in_bucket(sim, lane)
    place = find_owned(sim.cache, lane, fetch.owner, client.id)
    if place != NONE:
        remove_session(sim.cache, lane, place)
    client.answer = SESSIONLESS if client.epoch == FINAL_EPOCH else FULL
    outcome.fetches += 1
    outcome.full_fetches += 1
    outcome.request_bytes += fetch.request_full
    outcome.partitions_reread += fetch.size - fetch.listed if fetch.act != WITHOUT_SESSION else 0


@kernel
def request_incremental(sim: BrokerSim, lane: int, fetch: Record, now_ms: int) -> int:
    """FetchManager.newContext for a fetch in a session; returns its error, 0 if there is none."""
    cache, client = sim.cache, sim.cache.clients[fetch.owner, lane]
    count_incremental(outcome_in_bucket(sim, lane), fetch)
    place = find_owned(cache, lane, fetch.owner, client.id)
    if place == NONE:
        return FETCH_SESSION_ID_NOT_FOUND
    session = cache.sessions[lane, place]
    error = session_error(session, client.epoch, fetch)
    if error != 0:
        return error
    if fetch.size == 0 and fetch.is_lost == 0:
        remove_session(cache, lane, place)
        client.answer = SESSIONLESS
        return 0
    touch_session(cache, lane, session, fetch.size, now_ms)
    session.epoch = next_epoch(session.epoch)
    client.answer = INCREMENTAL
    return 0


@kernel
def send_client_fetch(sim: BrokerSim, lane: int, fetch: Record, now_ms: int) -> None:
    """Let a client send its fetch and, if that gets an error, a full fetch."""
    client = sim.cache.clients[fetch.owner, lane]
    follow_act(sim, lane, fetch, now_ms)
    if client.epoch > 0:
        error = request_incremental(sim, lane, fetch, now_ms)
        if error == 0:
            return
        if fetch.is_throttled == 1:  # its response has no error, and no session
            client.answer = SESSIONLESS
            return
        answer_session_error(sim, lane, fetch, error)
    request_full(sim, lane, fetch)


@kernel
def answer_session_error(sim: BrokerSim, lane: int, fetch: Record, error: int) -> None:
    """Answer a fetch with a session error, after which the client begins anew."""
    outcome = outcome_in_bucket(sim, lane)
    outcome.not_found += error == FETCH_SESSION_ID_NOT_FOUND
    sim.cache.totals[lane].not_found += error == FETCH_SESSION_ID_NOT_FOUND
    outcome.response_bytes += fetch.response_empty
    follow_response(sim.cache.clients[fetch.owner, lane], error, NO_SESSION)


@kernel
def error_of_refusal(sim: BrokerSim, lane: int, fetch: Record) -> int:
    """The error of a fetch that the captured broker refused; 0 if it gets none in the lane."""
    client = sim.cache.clients[fetch.owner, lane]
    if client.epoch <= 0 or fetch.act == FROM_BEFORE:
        return 0
    place = find_owned(sim.cache, lane, fetch.owner, client.id)
    if place == NONE:
        return FETCH_SESSION_ID_NOT_FOUND
    if fetch.act == WRONG_EPOCH:
        return INVALID_FETCH_SESSION_EPOCH
    return session_error(sim.cache.sessions[lane, place], client.epoch, fetch)


@kernel
def request_refused(sim: BrokerSim, lane: int, fetch: Record) -> None:
    """Let a client send a fetch that the captured broker refused, if the lane refuses it, too.

    If it does not, the client sends nothing now: its next fetch, which the capture shows whole, stands for both.
    """
    error = error_of_refusal(sim, lane, fetch)
    if error != 0:
        count_incremental(outcome_in_bucket(sim, lane), fetch)
        answer_session_error(sim, lane, fetch, error)


@kernel
def build_response(sim: BrokerSim, lane: int, fetch: Record, now_ms: int) -> None:
    """Let the broker build its response, and the client take it."""
    client, outcome = sim.cache.clients[fetch.owner, lane], outcome_in_bucket(sim, lane)
    issued, size = NO_SESSION, fetch.response_full
    if client.answer == INCREMENTAL:
        issued, size = client.id, fetch.response_incremental
    elif client.answer == FULL and fetch.is_throttled == 0:
        issued = create_session(sim, lane, fetch, now_ms)
    outcome.response_bytes += fetch.response_empty if fetch.is_throttled == 1 else size
    follow_response(client, 0, issued)


@kernel
def consumers_of(sim: BrokerSim, lane: int, fetch: Record) -> int:
    """How many consumers share a captured fetch in a lane; 1 for a follower."""
    return 1 if fetch.privileged == 1 else int(sim.cache.settings[lane].consumers)


@kernel
def sends_share(sim: BrokerSim, lane: int, fetch: Record, captured: Record) -> bool:
    """Whether one of several consumers sends its share of a captured fetch: it does if it has a partition to ask for,
    or if none of them has one and it has a session.
    """
    if sim.cache.settings[lane].consumers == 1 or fetch.size > 0:
        return True
    return bool(captured.size == 0 and sim.cache.clients[fetch.owner, lane].id != NO_SESSION)


@kernel
def replay_request(sim: BrokerSim, shares: Records, now_ms: int) -> None:
    """Replay a request in every lane. shares: SESSION_FETCH[shares] of it, from `shares_of_fetches`."""
    captured = shares[0]
    is_refused = captured.error != 0
    if not is_refused:
        sim.awaited[captured.owner] = captured.number
    for lane in range(len(sim.cache.totals)):
        first = sim.first_share[lane]
        for share in range(first, first + consumers_of(sim, lane, captured)):
            fetch = shares[share]
            sim.names[fetch.owner] = fetch.name
            if is_refused:
                request_refused(sim, lane, fetch)
            elif sends_share(sim, lane, fetch, captured):
                send_client_fetch(sim, lane, fetch, now_ms)


@kernel
def replay_response(sim: BrokerSim, shares: Records, now_ms: int) -> None:
    """Replay the response to a request in every lane, unless the client has sent another request since.

    shares: SESSION_FETCH[shares] of the fetch, from `shares_of_fetches`.
    """
    captured = shares[0]
    if sim.awaited[captured.owner] != captured.number:
        return
    sim.awaited[captured.owner] = NONE
    for lane in range(len(sim.cache.totals)):
        first = sim.first_share[lane]
        for share in range(first, first + consumers_of(sim, lane, captured)):
            if sends_share(sim, lane, shares[share], captured):
                build_response(sim, lane, shares[share], now_ms)
