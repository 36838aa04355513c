"""The order in which a broker did things: requests and responses by their times, and where responses overlap, by ids.

A counter picks the shard of each full response when it is built, whether or not a session comes of it
(org.apache.kafka.server.FetchSession.FetchSessionCache.getNextCacheShard, Kafka 4.3); its first packet comes a little
later. Where the packets of two full responses are close and their order contradicts the shards of the ids that they
issue, the responses were built in the other order.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints, Record, Records
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.session_cache import INITIAL_EPOCH, NOWHERE, shard_of
from udfs.replay.session_cache.session_fetches import NO_TIME, UNTOLD_EPOCH

OVERLAP_US = 100_000
"""Most time between the packets of two responses that may have been built in the other order.

Brokers that had just started, on a busy machine, were seen to need 73 ms.
"""
UNKNOWN_PHASE = -1

MOMENT = np.dtype(
    [
        ("us", np.int64),
        ("fetch", np.int64),
        ("is_response", np.int64),
        ("is_inferred", np.int64),  # its place is told by ids, not by packets
        ("expected_shard", np.int64),  # of a full response by the counter, or UNKNOWN_PHASE
        ("is_certain", np.int64),  # no full response since the last id is missing from the capture, or may be
    ],
    align=True,
)


def moments_of(fetches: Records) -> Records:
    """MOMENT[2 * fetches]: the request of each fetch and its response, as the fetches come; `in_order` sorts them.

    The broker answers a fetch whose response was not captured too, at the latest when its wait is over: that is taken.
    """
    moments = np.zeros(2 * len(fetches), MOMENT)
    note_moments(fetches, moments)
    return moments


@kernel
def note_moments(fetches: Records, moments: Records) -> None:
    """Write the moments of each fetch, its response's behind its request's."""
    for f in range(len(fetches)):
        fetch, asked, answered = fetches[f], moments[2 * f], moments[2 * f + 1]
        asked.us, answered.us = fetch.asked_us, max(fetch.response_us, fetch.asked_us)
        if fetch.response_us == NO_TIME:
            answered.us = fetch.asked_us + fetch.max_wait_us
        asked.fetch = answered.fetch = f
        asked.expected_shard = answered.expected_shard = UNKNOWN_PHASE
        answered.is_response = 1


def of_whole_requests(moments: Records, fetches: Records) -> Records:
    """The moments without those of cut requests, which have their place among the responses and tell nothing more."""
    is_cut = fetches["is_cut"][moments["fetch"]] == 1
    return moments.compress(~is_cut) if is_cut.any() else moments


def in_order(moments: Records, fetches: Records) -> Records:
    """Moments in the order of their times, those of one time in that of their fetches' numbers."""
    order = np.lexsort((moments["is_response"], fetches["number"][moments["fetch"]], moments["us"]))
    return moments.take(order)


@kernel
def steps_counter(fetch: Record, moment: Record) -> bool:
    """Is this the response to a full fetch that a broker placed?"""
    return moment.is_response == 1 and fetch.epoch == INITIAL_EPOCH and fetch.error == 0 and fetch.is_throttled == 0


@kernel
def issued_shard(fetch: Record, shards: int) -> int:
    """The shard of the id that a response issues, or NOWHERE where it issues none."""
    return shard_of(fetch.response_session_id, shards) if fetch.response_session_id > 0 else NOWHERE


@kernel
def could_come_before(moments: Records, fetches: Records, later: int, at: int) -> bool:
    """Can the full response moments[later] have been built before that of moments[at]?"""
    fetch = fetches[moments[later].fetch]
    is_shown = steps_counter(fetch, moments[later]) and fetch.response_us != NO_TIME
    return is_shown and fetch.asked_us < moments[at].us


@kernel
def first_built(moments: Records, fetches: Records, at: int, expected: int, shards: int) -> int:
    """Which full response of those close to moments[at] was built first, where `expected` is the shard it went to."""
    issued = issued_shard(fetches[moments[at].fetch], shards)
    if issued == expected:
        return at
    needed = NOWHERE if issued == NOWHERE else (issued - expected) % shards  # so many came before this one
    ahead, refused, first_refused = 1, 0, NOWHERE
    for later in range(at + 1, len(moments)):
        if moments[later].us - moments[at].us > OVERLAP_US:
            break
        if not could_come_before(moments, fetches, later, at):
            continue
        shard = issued_shard(fetches[moments[later].fetch], shards)
        if shard == expected and ahead % shards != 0:
            return later
        if shard == NOWHERE:
            refused += 1
            first_refused = later if first_refused == NOWHERE else first_refused
        ahead += 1
    return first_refused if 0 < needed <= refused else at


@kernel
def move_before(moments: Records, held: Records, later: int, at: int) -> None:
    """Put moments[later] before moments[at], in whose time it then is."""
    held[0] = moments[later]
    for i in range(later, at, -1):
        moments[i] = moments[i - 1]
    moments[at] = held[0]
    moments[at].us = moments[at + 1].us
    moments[at].is_inferred = 1


@kernel
def order_responses(moments: Records, fetches: Records, end: int, phase: Ints, shards: int, held: Records) -> None:
    """Put full responses among moments[:end] in the order of the counter, and note the shard it has for each.

    Moments up to OVERLAP_US behind are there too. phase: int64[2], the shard of the next full response, or
    UNKNOWN_PHASE, and whether that is certain. held: MOMENT[1] to work in. An id that no order explains sets the
    counter; what it was expected to be stays with the moment.
    """
    at = 0
    while at < end:
        fetch = fetches[moments[at].fetch]
        if fetch.epoch == UNTOLD_EPOCH:
            phase[1] = 0  # it may have been a full fetch
        elif steps_counter(fetch, moments[at]):
            is_shown = fetch.response_us != NO_TIME
            if phase[0] != UNKNOWN_PHASE and is_shown:
                first = first_built(moments, fetches, at, phase[0], shards)
                if first != at:
                    move_before(moments, held, first, at)
                fetch = fetches[moments[at].fetch]
            moments[at].expected_shard, moments[at].is_certain = phase[0], phase[1]
            issued = issued_shard(fetch, shards)
            if issued != NOWHERE:
                phase[0], phase[1] = issued, 1
            elif not is_shown:
                phase[1] = 0
            if phase[0] != UNKNOWN_PHASE:
                phase[0] = (phase[0] + 1) % shards
        at += 1


def first_shard(moments: Records, fetches: Records, shards: int) -> int:
    """The shard of the first full response: that by which most ids that these moments issue come in their turn, put in
    order; UNKNOWN_PHASE where they issue none.
    """
    fits = [in_turn(moments.copy(), fetches, first, shards) for first in range(shards)]
    return int(np.argmax(fits)) if any(fits) else UNKNOWN_PHASE


def begins_again(moments: Records, fetches: Records, expected: int, shards: int) -> bool:
    """Do more ids of these moments come in their turn when shard 0 is the first than when the expected one is?"""
    again, on = (in_turn(moments.copy(), fetches, first, shards) for first in (0, expected))
    return again > on


def in_turn(moments: Records, fetches: Records, first: int, shards: int) -> int:
    """How many ids are of the shard whose turn it is, if it begins with shard `first`; the moments are put in order."""
    order_responses(moments, fetches, len(moments), np.array([first, 1]), shards, np.zeros(1, MOMENT))
    return issued_in_turn(moments, fetches, shards)


@kernel
def issued_in_turn(moments: Records, fetches: Records, shards: int) -> int:
    """How many ids are of the shard that is expected of their moment."""
    count = 0
    for m in range(len(moments)):
        fetch = fetches[moments[m].fetch]
        if steps_counter(fetch, moments[m]):
            issued = issued_shard(fetch, shards)
            count += 1 if issued != NOWHERE and issued == moments[m].expected_shard else 0
    return count
