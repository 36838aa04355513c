"""Brokers and members in closed loop, in every lane: what each member would have sent, and what it would have got.

In every lane, a member sends its requests at the captured times. The epoch of a request is the lane's own, by the rules
of org.apache.kafka.clients.consumer.internals.ShareSessionHandler (Kafka 4.3). A member that is refused a session, or
whose session is gone, asks for a session again with its next request.
"""

from __future__ import annotations

from schemas.wire.errors import INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND
from udfs.columns.arrays import Record
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.share_sessions.share_cache import (
    drop_opened,
    has_share_session,
    next_share_epoch,
    put_share_session,
    remove_share_session,
    share_session_error,
)
from udfs.replay.session_cache.share_sessions.state import (
    BEGIN_ANEW,
    CLOSE,
    FINAL_EPOCH,
    FROM_BEFORE,
    INITIAL_EPOCH,
    NO_ANSWER,
    WRONG_EPOCH,
    ShareSim,
)


@kernel
def replay_share_request(sim: ShareSim, bucket: int, event: Record, act: int, is_refused_before: bool) -> None:
    """Replay a request in every lane. is_refused_before: it failed before the broker looked at the session."""
    for lane in range(len(sim.cache.settings)):
        member, outcome = sim.members[event.member, lane], sim.outcomes[bucket, lane]
        follow_own_act(sim, lane, event, act)
        is_first = member.epoch == INITIAL_EPOCH and act != WRONG_EPOCH
        if event.is_acknowledge == 1 and is_first:
            continue  # ShareSessionHandler.newShareAcknowledgeBuilder: it cannot begin a session
        outcome.requests += 1
        member.requests += 1
        if is_refused_before:
            member.epoch = next_share_epoch(member.epoch)
        elif is_first:
            open_share_session(sim, lane, bucket, event)
        else:
            go_on_in_lane(sim, lane, bucket, event, act)
        if member.waits_since_us != NONE:
            member.waited_us += event.us - max(member.last_us, member.waits_since_us)
        member.last_us = event.us


@kernel
def follow_own_act(sim: ShareSim, lane: int, event: Record, act: int) -> None:
    """Apply a member's own act to its session, before the member sends its request."""
    member, cache = sim.members[event.member, lane], sim.cache
    if act == BEGIN_ANEW:
        member.epoch = INITIAL_EPOCH
    elif act == CLOSE:
        member.epoch = FINAL_EPOCH
    elif act == FROM_BEFORE:
        member.epoch = event.epoch
        if cache.live[lane] < cache.settings[lane].limit:
            put_share_session(cache, lane, event.member, event.connection, event.epoch)


@kernel
def open_share_session(sim: ShareSim, lane: int, bucket: int, event: Record) -> None:
    """Let the broker handle a request for a session, which replaces the member's last session, or needs room."""
    cache, member, outcome = sim.cache, sim.members[event.member, lane], sim.outcomes[bucket, lane]
    if has_share_session(cache, lane, event.member):
        remove_share_session(cache, lane, event.member)
    if cache.live[lane] < cache.settings[lane].limit:
        put_share_session(cache, lane, event.member, event.connection, next_share_epoch(INITIAL_EPOCH))
        outcome.created += 1
        member.created += 1
        member.epoch = next_share_epoch(INITIAL_EPOCH)
        if member.waits_since_us != NONE:
            member.waited_us += event.us - max(member.last_us, member.waits_since_us)
            member.waits_since_us = NONE
        return
    outcome.refused += 1
    member.refused += 1
    if member.waits_since_us == NONE:
        member.waits_since_us = event.us


@kernel
def go_on_in_lane(sim: ShareSim, lane: int, bucket: int, event: Record, act: int) -> None:
    """Let the broker handle a request in a session, or one that closes it."""
    cache, member, outcome = sim.cache, sim.members[event.member, lane], sim.outcomes[bucket, lane]
    session = cache.sessions[event.member, lane]
    epoch = next_share_epoch(session.epoch) if act == WRONG_EPOCH else member.epoch
    error = share_session_error(cache, lane, event.member, epoch)
    if error != 0:
        outcome.not_found += error == SHARE_SESSION_NOT_FOUND and epoch != FINAL_EPOCH
        outcome.wrong_epoch += error == INVALID_SHARE_SESSION_EPOCH
        member.epoch = INITIAL_EPOCH
    elif epoch != FINAL_EPOCH:
        session.epoch = member.epoch = next_share_epoch(session.epoch)
    elif event.error != NO_ANSWER:
        session.is_closing = 1
    else:  # no response will show when the session ends
        remove_share_session(cache, lane, event.member)
        outcome.closed += 1


@kernel
def release_closed(sim: ShareSim, bucket: int, event: Record) -> None:
    """In every lane, remove the session of a member whose request to close it is answered."""
    for lane in range(len(sim.cache.settings)):
        if sim.cache.sessions[event.member, lane].is_closing == 1:
            remove_share_session(sim.cache, lane, event.member)
            sim.outcomes[bucket, lane].closed += 1


@kernel
def end_connection(sim: ShareSim, bucket: int, event: Record) -> None:
    """End a connection in every lane."""
    for lane in range(len(sim.cache.settings)):
        sim.outcomes[bucket, lane].dropped += drop_opened(sim.cache, lane, event.connection)
