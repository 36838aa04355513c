"""The order in which a broker worked: requests and responses by their times, and overlapping full responses by ids.

When a broker builds a full response, a counter picks its shard, whether or not the response opens a session
(org.apache.kafka.server.FetchSession.FetchSessionCache.getNextCacheShard, Kafka 4.3). Its first packet comes a little
later. If the packets of two full responses are close together, and their order contradicts the shards of the issued
ids, the responses were built in the other order.

Times are us since 1970. The events and responses that a function takes belong to the fetches that it takes.
"""

from __future__ import annotations

import numpy as np

from schemas.wire.fetch_sessions import INITIAL_EPOCH, NO_SESSION
from udfs.columns.arrays import Ints, Record, Records
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache import shard_of
from udfs.replay.session_cache.state import EPOCH_UNKNOWN, EVENT, NO_TIME

OVERLAP_US = 100_000
"""The most time between the packets of two responses that may have been built in the other order.

Brokers that had just started on a busy machine needed up to 73 ms.
"""

TURN = np.dtype([("shard", np.int64), ("is_certain", np.int64)])
"""The state of the counter. shard: the shard of the next full response, NONE if it is not known. is_certain: 1 if the
capture has all full responses since the last id for sure."""


def events_to_replay(fetches: Records) -> Records:
    """The events of these fetches that have not been replayed yet: EVENT[n], in time order. Of events at the same time,
    those of the earlier fetch come first, and its request before its response. fetches: SESSION_FETCH[fetches].
    """
    requests = np.flatnonzero(fetches["is_handled"] == 0)
    requests = requests[np.argsort(fetches["handled_us"][requests], kind="stable")]
    responses = np.argsort(fetches["answered_us"], kind="stable")
    events = np.zeros(len(requests) + len(responses), EVENT)
    merge_events(fetches, requests, responses, events)
    return events


@kernel
def merge_events(fetches: Records, requests: Ints, responses: Ints, events: Records) -> None:
    """Merge requests and responses into `events`, EVENT[requests + responses], in time order.

    requests, responses: int64[n], int64[m], indices in `fetches`, sorted by time.
    """
    request = response = 0
    for place in range(len(events)):
        event = events[place]
        event.expected_shard = NONE
        if request < len(requests) and is_request_first(fetches, requests[request], responses[response]):
            event.fetch = requests[request]
            event.us = fetches[event.fetch].handled_us
            request += 1
        else:
            event.fetch, event.is_response = responses[response], 1
            event.us = fetches[event.fetch].answered_us
            response += 1


@kernel
def is_request_first(fetches: Records, request: int, response: int) -> bool:
    """Whether the request of one fetch comes before the response of another, or of the same fetch.

    fetches: SESSION_FETCH[n].
    """
    handled_us, answered_us = fetches[request].handled_us, fetches[response].answered_us
    return bool(handled_us < answered_us or (handled_us == answered_us and request <= response))


@kernel
def is_placed(fetch: Record) -> bool:
    """Whether the counter picks a shard for the response: it answers a full fetch, and is neither an error nor
    throttled.
    """
    return bool(fetch.epoch == INITIAL_EPOCH and fetch.error == 0 and fetch.is_throttled == 0)


@kernel
def issued_shard(fetch: Record, shards: int) -> int:
    """The shard of the id that a response issues, or NONE if it issues none."""
    return shard_of(fetch.response_session_id, shards) if fetch.response_session_id > NO_SESSION else NONE


@kernel
def could_come_before(fetches: Records, events: Records, later: int, early: int) -> bool:
    """Whether the full response events[later] can have been built before events[early].

    fetches: SESSION_FETCH[n]. events: EVENT[m].
    """
    fetch = fetches[events[later].fetch]
    is_shown = events[later].is_response == 1 and is_placed(fetch) and fetch.response_us != NO_TIME
    return is_shown and fetch.handled_us < events[early].us


@kernel
def first_built(fetches: Records, events: Records, early: int, expected: int, shards: int) -> int:
    """The index of the full response that was built first among events[early] and the responses close behind it.

    expected: the shard whose turn it is. If events[early] issues an id of that shard, it was first. Otherwise the next
    response that issues such an id was first. If there is none, but enough responses without an id (refused sessions)
    follow to fill the turns before events[early], the first of these was first. fetches: SESSION_FETCH[n]. events:
    EVENT[m].
    """
    issued = issued_shard(fetches[events[early].fetch], shards)
    if issued == expected:
        return early
    needed = NONE if issued == NONE else (issued - expected) % shards  # turns before the one of events[early]
    ahead, refused, first_refused = 1, 0, NONE
    for later in range(early + 1, len(events)):
        if events[later].us - events[early].us > OVERLAP_US:
            break
        if not could_come_before(fetches, events, later, early):
            continue
        shard = issued_shard(fetches[events[later].fetch], shards)
        if shard == expected and ahead % shards != 0:
            return later
        if shard == NONE:
            refused += 1
            first_refused = later if first_refused == NONE else first_refused
        ahead += 1
    return first_refused if 0 < needed <= refused else early


@kernel
def move_before(events: Records, later: int, early: int) -> None:
    """Put the full response events[later] before events[early], and give it the time of events[early]."""
    fetch = events[later].fetch
    for place in range(later, early, -1):
        events[place] = events[place - 1]
    events[early].fetch, events[early].is_inferred = fetch, 1


@kernel
def place_response(turn: Record, event: Record, fetch: Record, shards: int) -> None:
    """Note with a full response the shard that was expected, and move the counter on.

    If no order explains the issued id, the id sets the counter; the event keeps the expected shard.
    """
    event.expected_shard, event.is_certain = turn.shard, turn.is_certain
    issued = issued_shard(fetch, shards)
    if issued != NONE:
        turn.shard, turn.is_certain = issued, 1
    elif fetch.response_us == NO_TIME:
        turn.is_certain = 0
    if turn.shard != NONE:
        turn.shard = (turn.shard + 1) % shards


@kernel
def order_responses(fetches: Records, events: Records, end: int, turns: Records, shards: int) -> None:
    """Put the full responses among events[:end] into the order of the counter, and note the expected shard of each.

    fetches: SESSION_FETCH[n]. events: EVENT[m], including those up to OVERLAP_US after the end. turns: TURN[1], the
    counter.
    """
    turn = turns[0]
    for place in range(end):
        fetch = fetches[events[place].fetch]
        if fetch.epoch == EPOCH_UNKNOWN:
            turn.is_certain = 0  # it may have been a full fetch
        elif events[place].is_response == 1 and is_placed(fetch):
            if turn.shard != NONE and fetch.response_us != NO_TIME:
                first = first_built(fetches, events, place, turn.shard, shards)
                if first != place:
                    move_before(events, first, place)
            place_response(turn, events[place], fetches[events[place].fetch], shards)


def full_responses(fetches: Records) -> tuple[Records, Records]:
    """(The fetches for whose responses the counter picks a shard, SESSION_FETCH[m]; the events of these responses,
    EVENT[m]).

    fetches: SESSION_FETCH[n].
    """
    is_placed_too = (fetches["epoch"] == INITIAL_EPOCH) & (fetches["error"] == 0) & (fetches["is_throttled"] == 0)
    placed = fetches.compress(is_placed_too)
    events = events_to_replay(placed)
    return placed, events.compress(events["is_response"] == 1)


def first_shard(fetches: Records, responses: Records, shards: int) -> int:
    """The shard that the counter picked for the first of these full responses, or NONE if no shard explains any id.

    Each shard is tried. The result is the shard with which the most issued ids belong to the expected shard. fetches:
    SESSION_FETCH[n]. responses: EVENT[m].
    """
    fits = [order_by_turn(fetches, responses.copy(), first, shards) for first in range(shards)]
    return int(np.argmax(fits)) if any(fits) else NONE


def begins_again(fetches: Records, responses: Records, expected: int, shards: int) -> bool:
    """Whether more ids of these full responses belong to the expected shard if the counter begins at shard 0 than if it
    begins at `expected`.

    fetches: SESSION_FETCH[n]. responses: EVENT[m].
    """
    if_restarted, if_continued = (order_by_turn(fetches, responses.copy(), first, shards) for first in (0, expected))
    return if_restarted > if_continued


def order_by_turn(fetches: Records, responses: Records, first: int, shards: int) -> int:
    """Put the responses in order as if the counter began at `first`. Returns how many ids belong to the expected shard.

    fetches: SESSION_FETCH[n]. responses: EVENT[m].
    """
    order_responses(fetches, responses, len(responses), turn_of(first), shards)
    return issued_in_turn(fetches, responses, shards)


def turn_of(shard: int) -> Records:
    """A counter, TURN[1], at this shard."""
    turns = np.zeros(1, TURN)
    turns["shard"], turns["is_certain"] = shard, 1
    return turns


@kernel
def issued_in_turn(fetches: Records, responses: Records, shards: int) -> int:
    """How many of these full responses issue an id of the expected shard.

    fetches: SESSION_FETCH[n]. responses: EVENT[m].
    """
    count = 0
    for place in range(len(responses)):
        issued = issued_shard(fetches[responses[place].fetch], shards)
        count += issued != NONE and issued == responses[place].expected_shard
    return count
