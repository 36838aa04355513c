"""The events of a broker, one after the other: each is compared with the capture, and replayed in every lane."""

from __future__ import annotations

from typing import NamedTuple

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND
from schemas.wire.fetch_sessions import NO_SESSION
from udfs.columns.arrays import Record, Records
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.closed_loop import replay_request, replay_response
from udfs.replay.session_cache.fidelity import judge_contents, judge_grant, judge_request
from udfs.replay.session_cache.memory import has_headroom
from udfs.replay.session_cache.order import is_placed
from udfs.replay.session_cache.slots import note_gone, note_served, note_session_granted
from udfs.replay.session_cache.state import NO_TIME, BrokerSim, Buckets, Cache, CapturedSessions
from udfs.replay.shared.lanes import CAPTURED

BUCKET_US = 10_000_000
"""The length of a bucket of time: the results of lanes are summed up over ten seconds."""


class ReplayedFetches(NamedTuple):
    """What is replayed: fetches, SESSION_FETCH[n]; each consumer's share of them, SESSION_FETCH[n, shares], from
    `shares_of_fetches`; and the events of these fetches, EVENT[m].
    """

    fetches: Records
    shares: Records
    events: Records


@kernel
def has_room_for_event(cache: Cache, sim: BrokerSim, clients: int) -> bool:
    """Whether there is memory for the next event. cache: the captured broker's. clients: how many clients may send one
    captured fetch in a lane.
    """
    has_evictions = sim.evicted[0] + clients * len(sim.cache.totals) <= len(sim.evictions)
    return has_evictions and has_headroom(cache, 1) and has_headroom(sim.cache, clients)


@kernel
def is_in_bucket(buckets: Buckets, number: int) -> bool:
    """Whether the bucket of time with this number is the current one."""
    last = buckets.used[0] - 1
    return last >= 0 and buckets.captured[last].number == number


@kernel
def begin_bucket(sim: BrokerSim, number: int) -> None:
    """Go on to the bucket of time with this number; there is room for it."""
    cache, buckets = sim.cache, sim.buckets
    last = buckets.used[0]
    buckets.used[0] += 1
    buckets.captured[last].number = number
    for lane in range(len(cache.totals)):
        for shard in range(cache.settings[lane].shards):
            buckets.occupied[last, lane, shard] = cache.live[lane, shard]


@kernel
def end_bucket(sim: BrokerSim) -> None:
    """Note the sessions that the lanes hold at the end of the current bucket of time."""
    cache, last = sim.cache, sim.buckets.used[0] - 1
    if last < 0:
        return
    for lane in range(len(cache.totals)):
        outcome = sim.buckets.outcomes[last, lane]
        outcome.live_sessions = cache.live[lane].sum()
        outcome.follower_sessions = cache.totals[lane].followers
        outcome.cached_partitions = cache.totals[lane].partitions


@kernel
def on_request(captured: CapturedSessions, sim: BrokerSim, fetch: Record, shares: Records, us: int) -> None:
    """Let the broker handle a request: count it, compare it with the capture, and replay it in every lane.

    shares: SESSION_FETCH[shares] of it, from `shares_of_fetches`.
    """
    bucket = sim.buckets.captured[sim.buckets.used[0] - 1]
    bucket.fetches += 1
    bucket.request_bytes += max(fetch.request_bytes, 0)
    bucket.unknown_fetches += fetch.is_known == 0
    if fetch.epoch <= 0:
        note_gone(captured.spans, fetch.session_id, us)
    judge_request(captured, fetch, us // US_PER_MS)
    judge_contents(captured.verdicts[fetch.name], fetch)
    replay_request(sim, shares, us // US_PER_MS)


@kernel
def on_response(captured: CapturedSessions, sim: BrokerSim, event: Record, fetch: Record, shares: Records) -> None:
    """Let the broker answer: count the response, compare it with the capture, and replay it in every lane.

    shares: SESSION_FETCH[shares] of the fetch, from `shares_of_fetches`.
    """
    bucket = sim.buckets.captured[sim.buckets.used[0] - 1]
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
        replay_response(sim, shares, event.us // US_PER_MS)


@kernel
def dispatch_event(captured: CapturedSessions, sim: BrokerSim, replayed: ReplayedFetches, event: Record) -> None:
    """Let the broker handle a request, or answer it. Of a fetch that was cut off, only the answer's time is known."""
    fetch, shares = replayed.fetches[event.fetch], replayed.shares[event.fetch]
    if event.is_response == 1:
        fetch.is_answered = 1
        if fetch.is_cut == 0:
            on_response(captured, sim, event, fetch, shares)
    else:
        fetch.is_handled = 1
        if fetch.is_cut == 0:
            on_request(captured, sim, fetch, shares, event.us)


@kernel
def replay_from(replayed: ReplayedFetches, first: int, captured: CapturedSessions, sim: BrokerSim) -> int:
    """Replay events from `first` on. Returns the index of the first one that is not replayed, where memory ran out."""
    events, clients, done = replayed.events, replayed.shares.shape[1], first
    while done < len(events) and has_room_for_event(captured.cache, sim, clients):
        number = events[done].us // BUCKET_US
        if not is_in_bucket(sim.buckets, number):
            if done > first:
                end_bucket(sim)
            begin_bucket(sim, number)
        dispatch_event(captured, sim, replayed, events[done])
        done += 1
    end_bucket(sim)
    return done
