"""Does the cache of share sessions under the captured settings agree with the capture? Each request gets a verdict.

If the rules differ from the capture, the difference is counted, and the cache then follows the capture.
"""

from __future__ import annotations

from schemas.tables.session_reasons import SHARES
from schemas.wire.errors import (
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
    UNSUPPORTED_VERSION,
)
from udfs.columns.arrays import Record
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.order import OVERLAP_US
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
    BY_RULES,
    CLOSE,
    EPOCH_UNKNOWN,
    FINAL_EPOCH,
    FROM_BEFORE,
    INITIAL_EPOCH,
    NO_ANSWER,
    WRONG_EPOCH,
    CapturedShareSessions,
)
from udfs.replay.shared.fidelity_rows import AGREED
from udfs.replay.shared.lanes import CAPTURED

SHARE_METRICS = SHARES.metrics
"""What is compared, in the order of the verdicts' rows."""
GRANTS, ERRORS, REQUESTS = map(SHARE_METRICS.index, ("share_grants", "share_errors", "share_requests"))
SHARE_VERDICTS = 1 + len(SHARES.words)
"""How many verdicts there are: AGREED, and one for each reason."""
SESSION_FROM_BEFORE = SHARES.codes[SHARES.share_session_from_before]
CLOSE_ORDER = SHARES.codes[SHARES.share_close_order]
END_NOT_CAPTURED = SHARES.codes[SHARES.connection_end_not_captured]
NOT_CAPTURED = SHARES.codes[SHARES.share_response_not_captured]
GRANTED, REFUSED = SHARES.codes[SHARES.share_granted], SHARES.codes[SHARES.share_refused]
OTHER_ERROR, OTHER_EPOCH = SHARES.codes[SHARES.other_share_error], SHARES.codes[SHARES.other_share_epoch]


@kernel
def fails_before_session(error: int) -> bool:
    """Whether the error comes from checks that a broker makes before it looks at the session (KafkaApis, Kafka 4.3)."""
    return error in (UNSUPPORTED_VERSION, INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED)


@kernel
def is_session_error(error: int) -> bool:
    """Whether a member begins anew after this error (ShareSessionHandler.handleResponse)."""
    return error in (SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED)


@kernel
def act_of_member(captured: CapturedShareSessions, event: Record) -> int:
    """Why the member sends this epoch."""
    expected = captured.members[event.member].expected
    if event.epoch < 0:
        return CLOSE
    if event.epoch == INITIAL_EPOCH:
        is_reconnected = event.connection != captured.members[event.member].connection
        return BEGIN_ANEW if expected != INITIAL_EPOCH or is_reconnected else BY_RULES
    if expected == EPOCH_UNKNOWN:
        return FROM_BEFORE
    is_lost = captured.members[event.member].is_certain == 0
    return BY_RULES if event.epoch == expected or is_lost else WRONG_EPOCH


@kernel
def epoch_verdict(captured: CapturedShareSessions, event: Record, act: int) -> int:
    """The verdict on the epoch of a request."""
    if act == FROM_BEFORE:
        return SESSION_FROM_BEFORE
    if act == BY_RULES and event.epoch != captured.members[event.member].expected:
        return NOT_CAPTURED
    return OTHER_EPOCH if act == WRONG_EPOCH else AGREED


@kernel
def closes_soon(captured: CapturedShareSessions, us: int) -> bool:
    """Whether a session is about to end: its close is requested, or the packets show the end of its connection soon."""
    if captured.shown[0].closing > 0:
        return True
    for member in range(len(captured.members)):
        ends_soon = captured.members[member].ended_us - us <= OVERLAP_US
        if ends_soon and has_share_session(captured.cache, CAPTURED, member):
            return True
    return False


@kernel
def share_grant_verdict(captured: CapturedShareSessions, event: Record, is_granted: bool, is_shown: bool) -> int:
    """The verdict on whether a member gets a session. is_granted: by the rules. is_shown: in the capture."""
    if is_granted == is_shown:
        return AGREED
    if is_shown:
        return CLOSE_ORDER if closes_soon(captured, event.us) else GRANTED
    if captured.shown[0].unseen > 0:
        return SESSION_FROM_BEFORE
    if event.us - captured.shown[0].closed_us <= OVERLAP_US:
        return CLOSE_ORDER
    return END_NOT_CAPTURED if event.is_logged == 1 else REFUSED


@kernel
def put_shown(captured: CapturedShareSessions, event: Record, epoch: int) -> None:
    """Put the session that the capture shows into the cache."""
    put_share_session(captured.cache, CAPTURED, event.member, event.connection, epoch)
    captured.members[event.member].ended_us = event.ended_us
    note_connection_seen(captured, event.connection)


@kernel
def note_most_sessions(captured: CapturedShareSessions, us: int) -> None:
    """Note how many sessions the capture shows now, unless one of them may already be gone."""
    shown = captured.shown[0]
    if captured.cache.live[CAPTURED] > shown.at_least and not closes_soon(captured, us):
        shown.at_least = captured.cache.live[CAPTURED]


@kernel
def remove_shown(captured: CapturedShareSessions, member: int) -> None:
    """Remove a captured session."""
    captured.shown[0].closing -= captured.cache.sessions[member, CAPTURED].is_closing
    remove_share_session(captured.cache, CAPTURED, member)


@kernel
def note_connection_seen(captured: CapturedShareSessions, connection: int) -> None:
    """Note that a connection from before the capture has shown its session, or has ended."""
    captured.shown[0].unseen -= captured.unseen[connection]
    captured.unseen[connection] = 0


@kernel
def judge_opening(captured: CapturedShareSessions, event: Record) -> None:
    """Compare the answer to a request for a session with the capture, and follow the capture."""
    cache, shown = captured.cache, captured.shown[0]
    if has_share_session(cache, CAPTURED, event.member):
        remove_shown(captured, event.member)
    is_granted = cache.live[CAPTURED] < cache.settings[CAPTURED].limit
    if event.error == NO_ANSWER:
        if is_granted:
            put_shown(captured, event, next_share_epoch(INITIAL_EPOCH))
        return
    is_shown = event.error != SHARE_SESSION_LIMIT_REACHED
    verdict = share_grant_verdict(captured, event, is_granted, is_shown)
    captured.verdicts[event.member, GRANTS, verdict] += 1
    note_connection_seen(captured, event.connection)
    if is_shown:
        put_shown(captured, event, next_share_epoch(INITIAL_EPOCH))
        note_most_sessions(captured, event.us)
    elif shown.unseen == 0 and event.us - shown.closed_us > OVERLAP_US:
        shown.at_most = min(shown.at_most, cache.live[CAPTURED])


@kernel
def share_error_verdict(captured: CapturedShareSessions, event: Record, predicted: int, act: int) -> int:
    """The verdict on the error of a request in a session, or of one that closes it."""
    shown = event.error if is_session_error(event.error) else 0
    member = captured.members[event.member]
    if act == FROM_BEFORE:
        return SESSION_FROM_BEFORE
    if predicted == shown:
        return AGREED
    if member.expected == EPOCH_UNKNOWN:
        return SESSION_FROM_BEFORE
    if member.is_certain == 0:
        return NOT_CAPTURED
    return CLOSE_ORDER if event.us - captured.shown[0].closed_us <= OVERLAP_US else OTHER_ERROR


@kernel
def judge_going_on(captured: CapturedShareSessions, event: Record, act: int) -> None:
    """Compare the error of a request in a session, or of one that closes it, and follow the capture."""
    cache = captured.cache
    if act == FROM_BEFORE and event.error != SHARE_SESSION_NOT_FOUND:
        put_shown(captured, event, event.epoch)
        note_most_sessions(captured, event.us)
    predicted = share_session_error(cache, CAPTURED, event.member, event.epoch)
    if event.error != NO_ANSWER:
        captured.verdicts[event.member, ERRORS, share_error_verdict(captured, event, predicted, act)] += 1
        predicted = event.error if is_session_error(event.error) else 0
    session = cache.sessions[event.member, CAPTURED]
    if predicted == SHARE_SESSION_NOT_FOUND and has_share_session(cache, CAPTURED, event.member):
        remove_shown(captured, event.member)
    if predicted != 0:
        return
    if event.epoch == FINAL_EPOCH:
        close_shown(captured, event)
    elif has_share_session(cache, CAPTURED, event.member):
        session.epoch = next_share_epoch(event.epoch)
    else:
        put_shown(captured, event, next_share_epoch(event.epoch))


@kernel
def close_shown(captured: CapturedShareSessions, event: Record) -> None:
    """Close the captured session with the response, or at once if no response is captured."""
    cache, shown = captured.cache, captured.shown[0]
    if not has_share_session(cache, CAPTURED, event.member):
        return
    if event.error != NO_ANSWER:
        shown.closing += 1 - cache.sessions[event.member, CAPTURED].is_closing
        cache.sessions[event.member, CAPTURED].is_closing = 1
        return
    remove_shown(captured, event.member)
    shown.closed_us = event.us


@kernel
def judge_share_request(captured: CapturedShareSessions, bucket: int, event: Record) -> int:
    """Count a request, and compare it and its answer with the rules; returns why it was sent."""
    act, member, counts = act_of_member(captured, event), captured.members[event.member], captured.counts[bucket]
    opens = event.epoch == INITIAL_EPOCH and event.is_acknowledge == 0
    counts.requests += 1
    counts.refused += event.error == SHARE_SESSION_LIMIT_REACHED
    counts.not_found += event.error == SHARE_SESSION_NOT_FOUND and event.epoch != FINAL_EPOCH
    counts.wrong_epoch += event.error == INVALID_SHARE_SESSION_EPOCH
    captured.verdicts[event.member, REQUESTS, epoch_verdict(captured, event, act)] += 1
    if not fails_before_session(event.error):
        if opens:
            judge_opening(captured, event)
            counts.created += event.error not in (NO_ANSWER, SHARE_SESSION_LIMIT_REACHED)
        elif event.epoch != INITIAL_EPOCH:
            judge_going_on(captured, event, act)
    member.client, member.connection = event.client, event.connection
    member.expected = INITIAL_EPOCH if is_session_error(event.error) else next_share_epoch(event.epoch)
    member.is_certain = event.error != NO_ANSWER
    return act


@kernel
def note_release(captured: CapturedShareSessions, event: Record) -> None:
    """Remove the captured session whose close is answered."""
    if captured.cache.sessions[event.member, CAPTURED].is_closing == 1:
        remove_shown(captured, event.member)
        captured.shown[0].closed_us = event.us


@kernel
def note_end(captured: CapturedShareSessions, event: Record) -> None:
    """End a captured connection."""
    was_unseen, shown = captured.unseen[event.connection] == 1, captured.shown[0]
    opened = captured.cache.opened[event.connection, CAPTURED]
    was_closing = opened.member >= 0 and captured.cache.sessions[opened.member, CAPTURED].is_closing == 1
    note_connection_seen(captured, event.connection)
    if drop_opened(captured.cache, CAPTURED, event.connection):
        shown.closing -= was_closing
        shown.closed_us = event.us
    elif was_unseen:
        shown.closed_us = event.us
