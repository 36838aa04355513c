"""Does the cache under the captured settings agree with the capture? Each request and response gets a verdict.

The captured requests are answered one by one. If the rules differ from the capture, the difference is counted, and the
cache then follows the capture, so that one difference does not cause others.
"""

from __future__ import annotations

from schemas.tables.session_reasons import SESSIONS
from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND
from udfs.columns.arrays import Ints, Record
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache import is_shard_full, session_error
from udfs.replay.session_cache.captured_cache import (
    close_named,
    find_named,
    go_on_in_session,
    has_partial,
    put_session,
    put_unseen,
)
from udfs.replay.session_cache.eviction import find_victim
from udfs.replay.session_cache.order import OVERLAP_US, issued_shard
from udfs.replay.session_cache.state import AFTER_LOSS, FROM_BEFORE, NO_TIME, UNEXPECTED, Cache, CapturedSessions
from udfs.replay.shared.fidelity_rows import AGREED
from udfs.replay.shared.lanes import CAPTURED

CLOCK_MS = 2
"""The most that the packets' times may differ from the broker's clock."""

METRICS = SESSIONS.metrics
"""What is compared, in the order of the verdicts' rows."""
GRANTS, SHARDS, ERRORS = map(METRICS.index, ("session_grants", "session_shards", "session_errors"))
PARTITIONS, RESPONSES, REQUESTS = map(
    METRICS.index, ("session_partitions", "incremental_responses", "session_requests")
)
VERDICTS = 1 + len(SESSIONS.words)
"""How many verdicts there are: AGREED, and one for each reason."""

SESSION_FROM_BEFORE = SESSIONS.codes[SESSIONS.session_from_before_capture]
NOT_SEEN = SESSIONS.codes[SESSIONS.session_not_seen]
SHARD_UNKNOWN = SESSIONS.codes[SESSIONS.shard_unknown]
EVICTION_TIME = SESSIONS.codes[SESSIONS.eviction_time]
CLOSE_GRANT_ORDER = SESSIONS.codes[SESSIONS.close_grant_order]
NOT_CAPTURED = SESSIONS.codes[SESSIONS.response_not_captured]
ORDER_INFERRED = SESSIONS.codes[SESSIONS.order_inferred]
GRANTED, REFUSED = SESSIONS.codes[SESSIONS.granted], SESSIONS.codes[SESSIONS.refused]
OTHER_SHARD, OTHER_ERROR = SESSIONS.codes[SESSIONS.other_shard], SESSIONS.codes[SESSIONS.other_error]
OTHER_PARTITIONS = SESSIONS.codes[SESSIONS.other_partitions]
OTHER_REQUEST = SESSIONS.codes[SESSIONS.other_request]


@kernel
def error_verdict(predicted: int, fetch: Record) -> int:
    """The verdict on the error of a fetch in a session. predicted: the error that the rules give it, or 0."""
    if predicted == fetch.error:
        return AGREED
    if fetch.act == FROM_BEFORE:
        return SESSION_FROM_BEFORE
    return NOT_CAPTURED if fetch.expected == AFTER_LOSS else OTHER_ERROR


@kernel
def judge_request(captured: CapturedSessions, fetch: Record, now_ms: int) -> None:
    """Compare the error of a request with the capture, and follow the capture."""
    cache, place = captured.cache, find_named(captured.cache, fetch)
    if fetch.epoch <= 0:
        if place != NONE:
            close_named(captured, fetch, place)
        return
    predicted = FETCH_SESSION_ID_NOT_FOUND
    if place != NONE:
        predicted = session_error(cache.sessions[CAPTURED, place], fetch.epoch, fetch)
    shown = predicted
    if fetch.response_us == NO_TIME and (fetch.act == FROM_BEFORE or fetch.expected == AFTER_LOSS):
        shown = 0  # the request shows that the earlier ones were answered
    elif fetch.response_us != NO_TIME and fetch.is_throttled == 0:  # a throttled response has no error
        captured.verdicts[fetch.name, ERRORS, error_verdict(predicted, fetch)] += 1
        shown = fetch.error
    go_on_in_session(cache, fetch, place, shown, now_ms)


@kernel
def is_session_granted(cache: Cache, shard: int, fetch: Record, now_ms: int) -> bool:
    """Whether the rules give a full fetch a session."""
    return not is_shard_full(cache, CAPTURED, shard) or find_victim(cache, CAPTURED, shard, fetch, now_ms) != NONE


@kernel
def grant_verdict(captured: CapturedSessions, shard: int, event: Record, fetch: Record, now_ms: int) -> int:
    """The verdict on whether a full fetch gets a session."""
    cache, settings, is_shown = captured.cache, captured.cache.settings[CAPTURED], fetch.response_session_id > 0
    if is_session_granted(cache, shard, fetch, now_ms) == is_shown:
        return ORDER_INFERRED if event.is_inferred == 1 else AGREED
    if event.is_certain == 0 and not is_shown:
        return NOT_CAPTURED
    if has_partial(cache, shard):
        return SESSION_FROM_BEFORE
    has_slot, since_begin_us = not is_shard_full(cache, CAPTURED, shard), event.us - captured.unseen[0].handled_us
    if has_slot and settings.slots > 0 and since_begin_us <= settings.eviction_ms * US_PER_MS:
        return NOT_SEEN
    if has_slot and event.us - captured.closed_us[shard] <= OVERLAP_US:
        return CLOSE_GRANT_ORDER
    for away_ms in (-CLOCK_MS, CLOCK_MS):
        if is_session_granted(cache, shard, fetch, now_ms + away_ms) == is_shown:
            return EVICTION_TIME
    return GRANTED if is_shown else REFUSED


@kernel
def shard_verdict(issued: int, event: Record) -> int:
    """The verdict on the shard of the id that a full response issues. issued: the shard."""
    if event.expected_shard == NONE:
        return SHARD_UNKNOWN
    if issued == event.expected_shard:
        return ORDER_INFERRED if event.is_inferred == 1 else AGREED
    return OTHER_SHARD if event.is_certain == 1 else NOT_CAPTURED


@kernel
def judge_grant(captured: CapturedSessions, event: Record, fetch: Record, now_ms: int) -> None:
    """Compare the response to a full fetch with the capture, and follow the capture."""
    settings, verdicts = captured.cache.settings[CAPTURED], captured.verdicts[fetch.name]
    issued = issued_shard(fetch, settings.shards)
    if issued != NONE:
        verdicts[SHARDS, shard_verdict(issued, event)] += 1
    shard = event.expected_shard if issued == NONE else issued
    if shard == NONE and settings.slots == 0:  # without slots, it does not matter which shard is next
        shard = 0
    if shard == NONE:
        verdicts[GRANTS, SHARD_UNKNOWN] += 1
        return
    verdict = grant_verdict(captured, shard, event, fetch, now_ms)
    verdicts[GRANTS, verdict] += 1
    if issued != NONE:
        put_session(captured.cache, fetch.response_session_id, fetch, now_ms)
    elif verdict == NOT_SEEN:
        put_unseen(captured, shard, fetch.size)


@kernel
def request_verdict(fetch: Record) -> int:
    """The verdict on the session, epoch and partitions of a request."""
    if fetch.expected == AFTER_LOSS:
        return NOT_CAPTURED
    if fetch.is_known == 0 and fetch.epoch > 0:
        return SESSION_FROM_BEFORE
    return OTHER_REQUEST if fetch.expected == UNEXPECTED or fetch.mislisted > 0 else AGREED


@kernel
def response_verdict(fetch: Record) -> int:
    """The verdict on the partitions of an incremental response.

    If a session goes on from an earlier capture set, its partitions are known, but not what the broker had sent of
    them, so the first response may leave some out. Nor is it known after a response that was not captured.
    """
    if fetch.misreturned == 0:
        return AGREED
    if fetch.act == FROM_BEFORE:
        return SESSION_FROM_BEFORE
    return NOT_CAPTURED if fetch.is_lost == 1 else OTHER_PARTITIONS


@kernel
def judge_contents(verdicts: Ints, fetch: Record) -> None:
    """Compare the partitions of a request and its response. verdicts: int64[metrics, verdicts], the client's."""
    verdicts[REQUESTS, request_verdict(fetch)] += 1
    if fetch.response_us == NO_TIME or fetch.error != 0 or fetch.is_throttled == 1 or fetch.epoch < 0:
        return
    if fetch.is_known == 0:
        verdicts[PARTITIONS, SESSION_FROM_BEFORE if fetch.is_lost == 1 else OTHER_PARTITIONS] += 1
        return
    verdicts[PARTITIONS, OTHER_PARTITIONS if fetch.strayed > 0 else AGREED] += 1
    if fetch.epoch > 0:
        verdicts[RESPONSES, response_verdict(fetch)] += 1
