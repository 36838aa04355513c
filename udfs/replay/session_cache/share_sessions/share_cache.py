"""A broker's cache of share sessions: which sessions are in it, and what opens, continues and ends a session.

The rules are those of org.apache.kafka.server.share.session.ShareSessionCache, and of newContext and
acknowledgeSessionUpdate of kafka.server.share.SharePartitionManager, Kafka 4.3. A session belongs to a group's member.
No session is evicted for another: a session ends when its member closes it, opens another one, or loses the connection
that opened it.
"""

from __future__ import annotations

from schemas.wire.errors import INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.share_sessions.state import GREATEST_EPOCH, INITIAL_EPOCH, ShareCache


@kernel
def next_share_epoch(epoch: int) -> int:
    """The epoch after this one (ShareRequestMetadata.nextEpoch); a final epoch stays final."""
    if epoch < 0:
        return epoch
    return 1 if epoch == GREATEST_EPOCH else epoch + 1


@kernel
def has_share_session(cache: ShareCache, lane: int, member: int) -> bool:
    """Whether the member has a session."""
    return bool(cache.sessions[member, lane].epoch != INITIAL_EPOCH)


@kernel
def remove_share_session(cache: ShareCache, lane: int, member: int) -> None:
    """Remove a member's session. The end of the connection that opened it then removes nothing."""
    session = cache.sessions[member, lane]
    opened = cache.opened[session.connection, lane]
    if opened.member != NONE and cache.settings[lane].marks_stale == 1:
        opened.is_stale = 1
    session.epoch, session.is_closing = INITIAL_EPOCH, 0
    cache.live[lane] -= 1


@kernel
def put_share_session(cache: ShareCache, lane: int, member: int, connection: int, epoch: int) -> None:
    """Put a session into the cache, whether or not there is room. epoch: of its next request."""
    session, opened = cache.sessions[member, lane], cache.opened[connection, lane]
    session.epoch, session.connection, session.is_closing = epoch, connection, 0
    opened.member, opened.is_stale = member, 0
    cache.live[lane] += 1
    cache.fullest[lane] = max(cache.fullest[lane], cache.live[lane])


@kernel
def share_session_error(cache: ShareCache, lane: int, member: int, epoch: int) -> int:
    """The error of a request in a session, or of one that closes it (epoch below 0); 0 if there is none."""
    if not has_share_session(cache, lane, member):
        return SHARE_SESSION_NOT_FOUND
    return INVALID_SHARE_SESSION_EPOCH if epoch >= 0 and cache.sessions[member, lane].epoch != epoch else 0


@kernel
def drop_opened(cache: ShareCache, lane: int, connection: int) -> bool:
    """End a connection, and with it the session that it opened, if there still is one. Returns whether there is."""
    opened = cache.opened[connection, lane]
    member, is_stale = opened.member, opened.is_stale
    opened.member = NONE
    if member == NONE or is_stale == 1 or not has_share_session(cache, lane, member):
        return False
    remove_share_session(cache, lane, member)
    return True
