"""Does the cache under the captured settings do what the capture shows? One verdict a request and a response.

The captured requests are answered one by one. Where the model differs from the capture, that is counted, and the
model goes on from what the capture shows, so that one fault is not counted again with everything that follows from it.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND
from udfs.columns.arrays import Ints, Record, Records
from udfs.columns.time_units import US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache_room import has_room
from udfs.replay.session_cache.session_cache import (
    GREATEST_ID,
    NOWHERE,
    Cache,
    CacheSettings,
    close_session,
    next_epoch,
    open_session,
    session_error,
    shard_base,
    shard_of,
    slot_by_hint,
    slot_of,
    touch,
)
from udfs.replay.session_cache.session_eviction import is_older, victim
from udfs.replay.session_cache.session_fetches import (
    AFTER_LOSS,
    FROM_BEFORE,
    NO_TIME,
    UNEXPECTED,
    is_session_error,
    uses_topic_ids,
)
from udfs.replay.session_cache.session_order import OVERLAP_US, UNKNOWN_PHASE, issued_shard, steps_counter
from udfs.replay.session_cache.session_verdicts import AGREED, CODES, METRICS, Metric, Reason

CLOCK_MS = 2
"""How far the packets' times may be from the broker's clock."""

_GRANTS, _SHARDS, _ERRORS = METRICS[Metric.GRANTS], METRICS[Metric.SHARDS], METRICS[Metric.ERRORS]
_PARTITIONS, _RESPONSES, _REQUESTS = METRICS[Metric.PARTITIONS], METRICS[Metric.RESPONSES], METRICS[Metric.REQUESTS]
_FROM_BEFORE, _UNSEEN, _PHASE = CODES[Reason.FROM_BEFORE], CODES[Reason.UNSEEN], CODES[Reason.PHASE_UNKNOWN]
_CLOCK, _AFTER_LOSS, _INFERRED = CODES[Reason.CLOCK], CODES[Reason.AFTER_LOSS], CODES[Reason.ORDER_INFERRED]
_GRANTED, _REFUSED, _OTHER_SHARD = CODES[Reason.GRANTED], CODES[Reason.REFUSED], CODES[Reason.OTHER_SHARD]
_OTHER_ERROR, _OTHER_PARTITIONS = CODES[Reason.OTHER_ERROR], CODES[Reason.OTHER_PARTITIONS]
_OTHER_REQUEST, _CLOSE_ORDER = CODES[Reason.OTHER_REQUEST], CODES[Reason.CLOSE_ORDER]


class Judged(NamedTuple):
    """The captured broker.

    verdicts: int64[names, metrics, CODE_COUNT]. start: int64[1], time of the first request in us. unseen: int64[1],
    the client that stands for those whose sessions the capture does not show. closed_us: int64[MOST_SHARDS], when a
    session of the shard was closed last.
    """

    cache: Cache
    verdicts: Ints
    start: Ints
    unseen: Ints
    closed_us: Ints


@kernel
def find(judged: Judged, settings: CacheSettings, owner: int, session_id: int) -> int:
    """The slot of a session that a client names."""
    slot = slot_by_hint(judged.cache, 0, owner, session_id)
    return slot if slot != NOWHERE else slot_of(judged.cache, settings, 0, session_id)


@kernel
def put_session(
    judged: Judged, settings: CacheSettings, shard: int, session_id: int, fetch: Record, now_ms: int
) -> int:
    """Open the session that the capture shows, in place of the model's victim or, where it has none, of the oldest."""
    cache = judged.cache
    if cache.live[0, shard] >= max(settings.slots[0], 1):
        slot = victim(cache, settings, 0, shard, fetch.privileged, fetch.size, now_ms)
        if slot == NOWHERE:
            slot = base = shard_base(cache, settings, 0, shard)
            for other in range(base, base + cache.live[0, shard]):
                slot = other if is_older(cache.sessions[0, other], cache.sessions[0, slot]) else slot
        close_session(cache, settings, 0, slot)
    return open_session(
        cache, settings, 0, shard, session_id, fetch.owner, fetch.privileged, fetch.size, uses_topic_ids(fetch), now_ms
    )


@kernel
def error_verdict(predicted: int, fetch: Record) -> int:
    """The verdict on the error of a fetch in a session."""
    if predicted == fetch.error or (predicted == 0 and not is_session_error(fetch.error)):
        return AGREED
    if fetch.act == FROM_BEFORE:
        return _FROM_BEFORE
    return _AFTER_LOSS if fetch.expected == AFTER_LOSS else _OTHER_ERROR


@kernel
def judge_request(judged: Judged, settings: CacheSettings, fetch: Record, now_ms: int) -> None:
    """A request as captured."""
    cache = judged.cache
    slot = find(judged, settings, fetch.owner, fetch.session_id)
    if fetch.epoch <= 0:
        if slot != NOWHERE:
            judged.closed_us[shard_of(fetch.session_id, settings.shards[0])] = fetch.asked_us
            close_session(cache, settings, 0, slot)
        return
    predicted = FETCH_SESSION_ID_NOT_FOUND
    if slot != NOWHERE:
        predicted = session_error(cache.sessions[0, slot], fetch.epoch, uses_topic_ids(fetch))
    shown = predicted
    if fetch.response_us == NO_TIME and (fetch.act == FROM_BEFORE or fetch.expected == AFTER_LOSS):
        shown = 0  # the request tells that those before it were answered
    elif fetch.response_us != NO_TIME and fetch.is_throttled == 0:  # a throttled response has no error
        judged.verdicts[fetch.name, _ERRORS, error_verdict(predicted, fetch)] += 1
        shown = fetch.error if is_session_error(fetch.error) else 0
    follow_request(judged, settings, fetch, slot, predicted, shown, now_ms)


@kernel
def follow_request(
    judged: Judged, settings: CacheSettings, fetch: Record, slot: int, predicted: int, shown: int, now_ms: int
) -> None:
    """Go on from the error that the capture shows for a fetch in a session."""
    cache = judged.cache
    if shown != 0:
        if shown == FETCH_SESSION_ID_NOT_FOUND and slot != NOWHERE:
            close_session(cache, settings, 0, slot)
        return
    if predicted == FETCH_SESSION_ID_NOT_FOUND:
        shard = shard_of(fetch.session_id, settings.shards[0])
        slot = put_session(judged, settings, shard, fetch.session_id, fetch, now_ms)
        cache.sessions[0, slot].is_partial = 1
    session = cache.sessions[0, slot]
    if fetch.size == 0 and fetch.is_lost == 0:
        close_session(cache, settings, 0, slot)
        return
    session.epoch, session.uses_topic_ids = next_epoch(fetch.epoch), uses_topic_ids(fetch)
    touch(cache, settings, 0, slot, fetch.size, now_ms)


@kernel
def grants(judged: Judged, settings: CacheSettings, shard: int, fetch: Record, now_ms: int) -> bool:
    """Does the model give a full fetch a session?"""
    if judged.cache.live[0, shard] < settings.slots[0]:
        return True
    return victim(judged.cache, settings, 0, shard, fetch.privileged, fetch.size, now_ms) != NOWHERE


@kernel
def has_partial(judged: Judged, settings: CacheSettings, shard: int) -> bool:
    """Is a session in the shard that was opened before the capture began?"""
    base = shard_base(judged.cache, settings, 0, shard)
    for slot in range(base, base + judged.cache.live[0, shard]):
        if judged.cache.sessions[0, slot].is_partial == 1:
            return True
    return False


@kernel
def grant_verdict(
    judged: Judged, settings: CacheSettings, shard: int, moment: Record, fetch: Record, now_ms: int
) -> int:
    """The verdict on whether a full fetch gets a session."""
    shown = fetch.response_session_id > 0
    if grants(judged, settings, shard, fetch, now_ms) == shown:
        return _INFERRED if moment.is_inferred == 1 else AGREED
    if moment.is_certain == 0 and not shown:
        return _AFTER_LOSS
    if has_partial(judged, settings, shard):
        return _FROM_BEFORE
    has_slot = judged.cache.live[0, shard] < settings.slots[0]
    if has_slot and settings.slots[0] > 0 and moment.us - judged.start[0] <= settings.eviction_ms[0] * US_PER_MS:
        return _UNSEEN
    if has_slot and moment.us - judged.closed_us[shard] <= OVERLAP_US:
        return _CLOSE_ORDER
    for away in (-CLOCK_MS, CLOCK_MS):
        if grants(judged, settings, shard, fetch, now_ms + away) == shown:
            return _CLOCK
    return _GRANTED if shown else _REFUSED


@kernel
def shard_verdict(issued: int, moment: Record) -> int:
    """The verdict on the shard of an id."""
    if moment.expected_shard == UNKNOWN_PHASE:
        return _PHASE
    if issued == moment.expected_shard:
        return _INFERRED if moment.is_inferred == 1 else AGREED
    return _OTHER_SHARD if moment.is_certain == 1 else _AFTER_LOSS


@kernel
def judge_grant(judged: Judged, settings: CacheSettings, moment: Record, fetch: Record, now_ms: int) -> None:
    """The response to a full fetch."""
    issued = issued_shard(fetch, settings.shards[0])
    if issued != NOWHERE:
        judged.verdicts[fetch.name, _SHARDS, shard_verdict(issued, moment)] += 1
    shard = moment.expected_shard if issued == NOWHERE else issued
    if shard == UNKNOWN_PHASE and settings.slots[0] == 0:  # whose turn it is makes no difference
        shard = 0
    if shard == UNKNOWN_PHASE:
        judged.verdicts[fetch.name, _GRANTS, _PHASE] += 1
        return
    verdict = grant_verdict(judged, settings, shard, moment, fetch, now_ms)
    judged.verdicts[fetch.name, _GRANTS, verdict] += 1
    if issued != NOWHERE:
        put_session(judged, settings, shard, fetch.response_session_id, fetch, now_ms)
    elif verdict == _UNSEEN:
        note_unseen(judged, settings, shard, fetch)


@kernel
def note_unseen(judged: Judged, settings: CacheSettings, shard: int, fetch: Record) -> None:
    """A refusal where the model has room shows a session that is idle since before the capture began."""
    cache, id_range = judged.cache, GREATEST_ID // settings.shards[0]
    session_id = (shard + 1) * id_range - 1 - cache.live[0, shard]
    slot = open_session(
        cache, settings, 0, shard, session_id, judged.unseen[0], 1, fetch.size, 1, judged.start[0] // US_PER_MS
    )
    cache.sessions[0, slot].is_partial = 1
    cache.hints[0, judged.unseen[0]] = NOWHERE


@kernel
def judge_contents(judged: Judged, fetch: Record) -> None:
    """The partitions of a request and its response."""
    verdicts = judged.verdicts[fetch.name]
    requested = _OTHER_REQUEST if fetch.expected == UNEXPECTED or fetch.mislisted > 0 else AGREED
    if fetch.expected == AFTER_LOSS:
        requested = _AFTER_LOSS
    elif fetch.is_known == 0 and fetch.epoch > 0:
        requested = _FROM_BEFORE
    verdicts[_REQUESTS, requested] += 1
    if fetch.response_us == NO_TIME or fetch.error != 0 or fetch.is_throttled == 1 or fetch.epoch < 0:
        return
    if fetch.is_known == 0:
        verdicts[_PARTITIONS, _FROM_BEFORE if fetch.is_lost == 1 else _OTHER_PARTITIONS] += 1
        return
    verdicts[_PARTITIONS, _OTHER_PARTITIONS if fetch.strayed > 0 else AGREED] += 1
    if fetch.epoch > 0:
        verdicts[_RESPONSES, _OTHER_PARTITIONS if fetch.misreturned > 0 else AGREED] += 1


@kernel
def judge(moments: Records, first: int, end: int, fetches: Records, judged: Judged, settings: CacheSettings) -> int:
    """Judge moments[first:end]; stops where memory runs out and returns how far it came."""
    for m in range(first, end):
        if not has_room(judged.cache):
            return m
        moment = moments[m]
        fetch = fetches[moment.fetch]
        now_ms = moment.us // US_PER_MS
        if moment.is_response == 0:
            judge_request(judged, settings, fetch, now_ms)
            judge_contents(judged, fetch)
        elif fetch.response_us != NO_TIME and steps_counter(fetch, moment):
            judge_grant(judged, settings, moment, fetch, now_ms)
    return end
