"""Brokers and clients in closed loop, in every lane: what each client would have sent, and what it would have got.

The intent of each captured fetch is the same in all lanes: when, by whom, which partitions. Session and epoch are the
lane's own. A client that gets an error of its session asks again with a full fetch, in whose place the capture may have
the incremental one that a lane without that error needs: the captured fetch that got the error is asked where the lane
has an error for it as well, and left out where it has none.
"""

from __future__ import annotations

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH
from udfs.columns.arrays import Record, Records
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache_room import has_room
from udfs.replay.session_cache.session_cache import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NOWHERE,
    CacheSettings,
    close_session,
    next_epoch,
    session_error,
    slot_by_hint,
    touch,
)
from udfs.replay.session_cache.session_clients import take_response
from udfs.replay.session_cache.session_fetches import (
    BEGIN_ANEW,
    FROM_BEFORE,
    NO_SESSION,
    RENEW,
    WITHOUT_SESSION,
    WRONG_EPOCH,
    is_session_error,
    uses_topic_ids,
)
from udfs.replay.session_cache.session_grants import admit, create
from udfs.replay.session_cache.session_lanes import FULL, INCREMENTAL, SESSIONLESS, Lanes, note_request, note_response


@kernel
def prepare(lanes: Lanes, settings: CacheSettings, lane: int, fetch: Record, now_ms: int) -> None:
    """What the client does of its own accord."""
    client = lanes.clients[lane, fetch.owner]
    if fetch.act == BEGIN_ANEW:
        client.id, client.epoch = NO_SESSION, INITIAL_EPOCH
    elif fetch.act == RENEW:
        client.epoch = INITIAL_EPOCH
    elif fetch.act == WITHOUT_SESSION:
        client.epoch = FINAL_EPOCH
    elif fetch.act == FROM_BEFORE:
        admit(lanes, settings, lane, fetch, now_ms)


@kernel
def ask_full(lanes: Lanes, settings: CacheSettings, lane: int, fetch: Record) -> None:
    """A full fetch closes the session that it names."""
    client = lanes.clients[lane, fetch.owner]
    slot = slot_by_hint(lanes.cache, lane, fetch.owner, client.id)
    if slot != NOWHERE:
        close_session(lanes.cache, settings, lane, slot)
    client.answer = SESSIONLESS if client.epoch == FINAL_EPOCH else FULL
    note_request(lanes, lane, fetch, True)


@kernel
def ask_incremental(lanes: Lanes, settings: CacheSettings, lane: int, fetch: Record, now_ms: int) -> int:
    """FetchManager.newContext for a fetch in a session; returns its error, 0 for none."""
    cache, client = lanes.cache, lanes.clients[lane, fetch.owner]
    note_request(lanes, lane, fetch, False)
    slot = slot_by_hint(cache, lane, fetch.owner, client.id)
    if slot == NOWHERE:
        return FETCH_SESSION_ID_NOT_FOUND
    session = cache.sessions[lane, slot]
    error = session_error(session, client.epoch, uses_topic_ids(fetch))
    if error != 0:
        return error
    if fetch.size == 0 and fetch.is_lost == 0:
        close_session(cache, settings, lane, slot)
        client.answer = SESSIONLESS
        return 0
    touch(cache, settings, lane, slot, fetch.size, now_ms)
    session.epoch = next_epoch(session.epoch)
    client.answer = INCREMENTAL
    return 0


@kernel
def refusal(lanes: Lanes, lane: int, fetch: Record) -> int:
    """The error of a fetch that the captured broker refused; 0 where the lane has none for it."""
    client = lanes.clients[lane, fetch.owner]
    if client.epoch <= 0 or fetch.act == FROM_BEFORE:
        return 0
    slot = slot_by_hint(lanes.cache, lane, fetch.owner, client.id)
    if slot == NOWHERE:
        return FETCH_SESSION_ID_NOT_FOUND
    if fetch.act == WRONG_EPOCH:
        return INVALID_FETCH_SESSION_EPOCH
    return session_error(lanes.cache.sessions[lane, slot], client.epoch, uses_topic_ids(fetch))


@kernel
def ask_refused(lanes: Lanes, lane: int, fetch: Record) -> None:
    """A fetch that the captured broker refused, where it is refused here as well.

    Elsewhere the client's next fetch, which the capture shows whole, is what it asks for.
    """
    error = refusal(lanes, lane, fetch)
    if error != 0:
        note_request(lanes, lane, fetch, False)
        note_refusal(lanes, lane, fetch, error)


@kernel
def note_refusal(lanes: Lanes, lane: int, fetch: Record, error: int) -> None:
    """A client is told of its session that it is not as it thinks."""
    lanes.outcomes[lane].not_found += error == FETCH_SESSION_ID_NOT_FOUND
    note_response(lanes, lane, fetch, fetch.response_empty)
    take_response(lanes.clients[lane, fetch.owner], error, NO_SESSION)


@kernel
def ask(lanes: Lanes, settings: CacheSettings, lane: int, fetch: Record, now_ms: int) -> None:
    """A client sends its fetch, and a full one after an error."""
    client = lanes.clients[lane, fetch.owner]
    prepare(lanes, settings, lane, fetch, now_ms)
    client.asked = fetch.number
    if client.epoch > 0:
        error = ask_incremental(lanes, settings, lane, fetch, now_ms)
        if error == 0:
            return
        if fetch.is_throttled == 1:  # its response has no error, and no session
            client.answer = SESSIONLESS
            return
        note_refusal(lanes, lane, fetch, error)
    ask_full(lanes, settings, lane, fetch)


@kernel
def answer(lanes: Lanes, settings: CacheSettings, lane: int, fetch: Record, now_ms: int) -> None:
    """A broker builds its response, and the client takes it."""
    client = lanes.clients[lane, fetch.owner]
    if client.asked != fetch.number:
        return
    client.asked = NOWHERE
    issued = client.id
    if client.answer == SESSIONLESS:
        issued = NO_SESSION
    elif client.answer == FULL:
        issued = NO_SESSION if fetch.is_throttled == 1 else create(lanes, settings, lane, fetch, now_ms)
    body = fetch.response_incremental if client.answer == INCREMENTAL else fetch.response_full
    note_response(lanes, lane, fetch, fetch.response_empty if fetch.is_throttled == 1 else body)
    take_response(client, 0, issued)


@kernel
def play(moments: Records, first: int, end: int, fetches: Records, lanes: Lanes, settings: CacheSettings) -> int:
    """Play moments[first:end] in every lane; stops where memory runs out and returns how far it came."""
    count = len(settings.slots)
    for m in range(first, end):
        moment = moments[m]
        fetch = fetches[moment.fetch]
        if not has_room(lanes.cache) or lanes.evicted[0] + count > len(lanes.evictions):
            return m
        is_refused = is_session_error(fetch.error)
        if is_refused and moment.is_response == 1:
            continue
        for lane in range(count):
            if moment.is_response == 1:
                answer(lanes, settings, lane, fetch, moment.us // US_PER_MS)
            elif is_refused:
                ask_refused(lanes, lane, fetch)
            else:
                ask(lanes, settings, lane, fetch, moment.us // US_PER_MS)
    return end
