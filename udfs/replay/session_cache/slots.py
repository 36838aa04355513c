"""How many slots the captured broker can have had: at least the sessions alive at once, at most those at a refusal.

A session is alive from the response that opens it. It is alive at least until the last fetch that found it, even if
that was refused for its epoch or its topic ids. It is alive at most until it is closed, or a fetch finds it gone. A
shard that refuses a session is full.
"""

from __future__ import annotations

import numpy as np

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND
from schemas.wire.fetch_sessions import NO_SESSION
from udfs.columns.arrays import Ints, Record
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.cache import shard_of
from udfs.replay.session_cache.order import OVERLAP_US
from udfs.replay.session_cache.state import REFUSAL, SESSION_SPAN, SessionSpans
from udfs.replay.shared.int_map import ABSENT, new_map, place_of_key, put_key, with_room_for


def new_spans() -> SessionSpans:
    """Spans without a session or a refusal."""
    return SessionSpans(np.zeros(0, SESSION_SPAN), new_map(), np.zeros(0, REFUSAL), np.zeros(2, np.int64))


def with_spans(spans: SessionSpans, more: int) -> SessionSpans:
    """The spans, with room for `more` further sessions and as many refusals."""
    used, refused = spans.used.tolist()
    if used + more > len(spans.spans):
        spans = spans._replace(spans=np.concatenate([spans.spans[:used], np.zeros(used + 2 * more, SESSION_SPAN)]))
    if refused + more > len(spans.refusals):
        room = np.zeros(refused + 2 * more, REFUSAL)
        spans = spans._replace(refusals=np.concatenate([spans.refusals[:refused], room]))
    return spans._replace(by_id=with_room_for(spans.by_id, more))


@kernel
def note_gone(spans: SessionSpans, session_id: int, us: int) -> None:
    """Note that a session is gone, if its begin was captured."""
    known = spans.by_id.values[place_of_key(spans.by_id, session_id)] if session_id > NO_SESSION else ABSENT
    if known != ABSENT:
        spans.spans[known].gone_us = min(spans.spans[known].gone_us, us)


def note_all_gone(spans: SessionSpans, us: int) -> None:
    """Note that all sessions are gone."""
    gone_us = spans.spans["gone_us"][: spans.used[0]]
    np.minimum(gone_us, us, out=gone_us)


@kernel
def note_served(spans: SessionSpans, fetch: Record, us: int) -> None:
    """Note that a fetch found its session, or found it gone."""
    if fetch.error == FETCH_SESSION_ID_NOT_FOUND:
        note_gone(spans, fetch.session_id, us)
        return
    known = spans.by_id.values[place_of_key(spans.by_id, fetch.session_id)]
    if known != ABSENT:
        spans.spans[known].served_us = max(spans.spans[known].served_us, fetch.handled_us)


@kernel
def note_session_granted(spans: SessionSpans, event: Record, fetch: Record, shards: int) -> None:
    """Note that a full fetch got a session, or was refused one. The caller has made room."""
    if fetch.response_session_id > NO_SESSION:
        number = spans.used[0]
        spans.used[0] += 1
        put_key(spans.by_id, fetch.response_session_id, number)
        span = spans.spans[number]
        span.shard, span.gone_us = shard_of(fetch.response_session_id, shards), NEVER
        span.opened_us = span.served_us = event.us
    elif event.is_certain == 1 and event.expected_shard != NONE:
        refusal = spans.refusals[spans.used[1]]
        spans.used[1] += 1
        refusal.shard, refusal.us = event.expected_shard, event.us


def slots_range(spans: SessionSpans, shards: int, unseen_until_us: int) -> tuple[int, int | None]:
    """(the fewest slots of the broker that the capture allows; the most, None if there is no upper bound).

    unseen_until_us: until then, a refusal may be caused by a session that the capture does not show.
    """
    sessions, refusals = spans.spans[: spans.used[0]], spans.refusals[: spans.used[1]]
    least, most = 0, None
    for shard in range(shards):
        in_shard = sessions[sessions["shard"] == shard]
        opened, served = np.sort(in_shard["opened_us"]), np.sort(in_shard["served_us"])
        least = max(least, int(np.max(_count_alive(opened, served, opened), initial=0)))
        refused_us = refusals["us"][refusals["shard"] == shard]
        refused_us = refused_us[refused_us > unseen_until_us]
        if len(refused_us):
            fullest = int(_count_alive(opened, np.sort(in_shard["gone_us"]), refused_us, OVERLAP_US).min())
            most = fullest if most is None else min(most, fullest)
    return least * shards, None if most is None else (most + 1) * shards - 1


def _count_alive(opened: Ints, ended: Ints, times: Ints, before_us: int = 0) -> Ints:
    """How many sessions are alive at each of these times: int64[times].

    opened, ended: int64[sessions] each, sorted, us. before_us: a session still counts if it ended at most this long
    before a time.
    """
    return np.searchsorted(opened, times, "right") - np.searchsorted(ended, times - before_us, "left")
