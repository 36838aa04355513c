"""The events of a broker, one after the other: each is compared with the capture, and replayed in every lane."""

from __future__ import annotations

from typing import NamedTuple

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND
from schemas.wire.fetch_sessions import NO_SESSION
from udfs.columns.arrays import Record, Records
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.closed_loop import play_request, play_response
from udfs.replay.session_cache.fidelity import judge_contents, judge_grant, judge_request
from udfs.replay.session_cache.memory import has_headroom
from udfs.replay.session_cache.order import is_placed
from udfs.replay.session_cache.slots import note_gone, note_served, note_session_granted
from udfs.replay.session_cache.state import NO_TIME, Buckets, Cache, Captured, Lanes
from udfs.replay.shared.lanes import CAPTURED

BUCKET_US = 10_000_000
"""The length of a bucket of time: the results of lanes are summed up over ten seconds."""


class Played(NamedTuple):
    """What is replayed: fetches, SESSION_FETCH[n]; each consumer's share of them, SESSION_FETCH[n, shares], from
    `shares_of_fetches`; and the events of these fetches, EVENT[m].
    """

    fetches: Records
    shares: Records
    events: Records


@kernel
def has_room_for_event(cache: Cache, lanes: Lanes, clients: int) -> bool:
    """Whether there is memory for the next event. cache: the captured broker's. clients: how many clients may send one
    captured fetch in a lane.
    """
    has_evictions = lanes.evicted[0] + clients * len(lanes.cache.totals) <= len(lanes.evictions)
    return has_evictions and has_headroom(cache, 1) and has_headroom(lanes.cache, clients)


@kernel
def is_in_bucket(buckets: Buckets, number: int) -> bool:
    """Whether the bucket of time with this number is the current one."""
    last = buckets.used[0] - 1
    return last >= 0 and buckets.captured[last].number == number


@kernel
def begin_bucket(lanes: Lanes, number: int) -> None:
    """Go on to the bucket of time with this number; there is room for it."""
    cache, buckets = lanes.cache, lanes.buckets
    last = buckets.used[0]
    buckets.used[0] += 1
    buckets.captured[last].number = number
    for lane in range(len(cache.totals)):
        for shard in range(cache.settings[lane].shards):
            buckets.occupied[last, lane, shard] = cache.live[lane, shard]


@kernel
def end_bucket(lanes: Lanes) -> None:
    """Note the sessions that the lanes hold at the end of the current bucket of time."""
    cache, last = lanes.cache, lanes.buckets.used[0] - 1
    if last < 0:
        return
    for lane in range(len(cache.totals)):
        outcome = lanes.buckets.outcomes[last, lane]
        outcome.live_sessions = cache.live[lane].sum()
        outcome.follower_sessions = cache.totals[lane].followers
        outcome.cached_partitions = cache.totals[lane].partitions


@kernel
def on_request(captured: Captured, lanes: Lanes, fetch: Record, shares: Records, us: int) -> None:
    """Let the broker handle a request: count it, compare it with the capture, and replay it in every lane.

    shares: SESSION_FETCH[shares] of it, from `shares_of_fetches`.
    """
    bucket = lanes.buckets.captured[lanes.buckets.used[0] - 1]
    bucket.fetches += 1
    bucket.request_bytes += max(fetch.request_bytes, 0)
    bucket.unknown_fetches += fetch.is_known == 0
    if fetch.epoch <= 0:
        note_gone(captured.spans, fetch.session_id, us)
    judge_request(captured, fetch, us // US_PER_MS)
    judge_contents(captured.verdicts[fetch.name], fetch)
    play_request(lanes, shares, us // US_PER_MS)


@kernel
def on_response(captured: Captured, lanes: Lanes, event: Record, fetch: Record, shares: Records) -> None:
    """Let the broker answer: count the response, compare it with the capture, and replay it in every lane.

    shares: SESSION_FETCH[shares] of the fetch, from `shares_of_fetches`.
    """
    bucket = lanes.buckets.captured[lanes.buckets.used[0] - 1]
    bucket.response_bytes += max(fetch.response_bytes, 0)
    bucket.not_found += fetch.error == FETCH_SESSION_ID_NOT_FOUND
    if fetch.response_us != NO_TIME:
        if fetch.epoch > 0:
            note_served(captured.spans, fetch, event.us)
        elif is_placed(fetch):
            bucket.created += fetch.response_session_id > NO_SESSION
            bucket.refused += fetch.response_session_id <= NO_SESSION
            note_session_granted(captured.spans, event, fetch, captured.cache.settings[CAPTURED].shards)
            judge_grant(captured, event, fetch, event.us // US_PER_MS)
    if fetch.error == 0:
        play_response(lanes, shares, event.us // US_PER_MS)


@kernel
def dispatch_event(captured: Captured, lanes: Lanes, played: Played, event: Record) -> None:
    """Let the broker handle a request, or answer it. Of a fetch that was cut off, only the answer's time is known."""
    fetch, shares = played.fetches[event.fetch], played.shares[event.fetch]
    if event.is_response == 1:
        fetch.is_answered = 1
        if fetch.is_cut == 0:
            on_response(captured, lanes, event, fetch, shares)
    else:
        fetch.is_handled = 1
        if fetch.is_cut == 0:
            on_request(captured, lanes, fetch, shares, event.us)


@kernel
def play_from(played: Played, first: int, captured: Captured, lanes: Lanes) -> int:
    """Replay events from `first` on. Returns the index of the first one that is not replayed, where memory ran out."""
    events, clients, done = played.events, played.shares.shape[1], first
    while done < len(events) and has_room_for_event(captured.cache, lanes, clients):
        number = events[done].us // BUCKET_US
        if not is_in_bucket(lanes.buckets, number):
            if done > first:
                end_bucket(lanes)
            begin_bucket(lanes, number)
        dispatch_event(captured, lanes, played, events[done])
        done += 1
    end_bucket(lanes)
    return done
