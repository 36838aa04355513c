"""How many slots the captured broker can have had: at least the sessions that live at once, at most those at a refusal.

A session lives from the response that opens it at least to the last fetch that found it, be it refused for its epoch or
its topic ids, and at most until it is closed, or a fetch finds it gone. A shard that refuses a session is full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND
from udfs.columns.arrays import Ints, Records
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.session_cache import shard_of
from udfs.replay.session_cache.session_fetches import NO_TIME
from udfs.replay.session_cache.session_order import OVERLAP_US, UNKNOWN_PHASE, steps_counter
from udfs.replay.shared.int_map import ABSENT, IntMap, new_map, place_of, put, roomy

SPAN = np.dtype(
    [(name, np.int64) for name in ("shard", "opened_us", "served_us", "gone_us")],
    align=True,
)


class Spans(NamedTuple):
    """The captured sessions of a broker: SPAN[room], which of them an id is, and refusals as int64[room, 2] of (shard,
    us). used: int64[2], spans and refusals.
    """

    spans: Records
    by_id: IntMap
    refusals: Ints
    used: Ints


def new_spans() -> Spans:
    """No session yet."""
    return Spans(np.zeros(64, SPAN), new_map(), np.zeros((64, 2), np.int64), np.zeros(2, np.int64))


def roomy_spans(spans: Spans, more: int) -> Spans:
    """The same with room for so many more sessions and refusals."""
    used, refused = spans.used.tolist()
    if used + more > len(spans.spans):
        spans = spans._replace(spans=np.concatenate([spans.spans[:used], np.zeros(used + 2 * more, SPAN)]))
    if refused + more > len(spans.refusals):
        room = np.zeros((refused + 2 * more, 2), np.int64)
        spans = spans._replace(refusals=np.concatenate([spans.refusals[:refused], room]))
    return spans._replace(by_id=roomy(spans.by_id, more))


@kernel
def close_span(spans: Spans, session_id: int, us: int) -> None:
    """A session is gone."""
    known = spans.by_id.values[place_of(spans.by_id, session_id)] if session_id > 0 else ABSENT
    if known != ABSENT:
        spans.spans[known].gone_us = min(spans.spans[known].gone_us, us)


def close_all(spans: Spans, us: int) -> None:
    """All sessions are gone."""
    gone_us = spans.spans["gone_us"][: spans.used[0]]
    np.minimum(gone_us, us, out=gone_us)


@kernel
def follow_spans(moments: Records, first: int, end: int, fetches: Records, spans: Spans, shards: int) -> None:
    """Note what moments[first:end] show of sessions; there is room."""
    for m in range(first, end):
        moment = moments[m]
        fetch = fetches[moment.fetch]
        if moment.is_response == 0:
            if fetch.epoch <= 0:
                close_span(spans, fetch.session_id, moment.us)
        elif fetch.response_us == NO_TIME:
            continue
        elif fetch.epoch > 0:
            serve(spans, fetch.session_id, fetch.asked_us, fetch.error, moment.us)
        elif steps_counter(fetch, moment):
            shard = moment.expected_shard if moment.is_certain == 1 else UNKNOWN_PHASE
            note_answer(spans, fetch.response_session_id, moment.us, shard, shards)


@kernel
def serve(spans: Spans, session_id: int, asked_us: int, error: int, us: int) -> None:
    """A fetch found a session, or found it gone."""
    if error == FETCH_SESSION_ID_NOT_FOUND:
        close_span(spans, session_id, us)
        return
    known = spans.by_id.values[place_of(spans.by_id, session_id)]
    if known != ABSENT:
        spans.spans[known].served_us = max(spans.spans[known].served_us, asked_us)


@kernel
def note_answer(spans: Spans, issued: int, us: int, expected_shard: int, shards: int) -> None:
    """A full fetch got a session or was refused."""
    if issued > 0:
        number = spans.used[0]
        spans.used[0] += 1
        put(spans.by_id, issued, number)
        span = spans.spans[number]
        span.shard, span.opened_us, span.served_us, span.gone_us = shard_of(issued, shards), us, us, NEVER
    elif expected_shard != UNKNOWN_PHASE:
        spans.refusals[spans.used[1], 0], spans.refusals[spans.used[1], 1] = expected_shard, us
        spans.used[1] += 1


def slots_range(spans: Spans, shards: int, unseen_until_us: int) -> tuple[int, int | None]:
    """(least, most) slots of the broker that fit; None where nothing bounds them from above.

    unseen_until_us: up to here a refusal may be for a session that the capture does not show.
    """
    held, refusals = spans.spans[: spans.used[0]], spans.refusals[: spans.used[1]]
    least, most = 0, None
    for shard in range(shards):
        of_shard = held[held["shard"] == shard]
        opened, served = np.sort(of_shard["opened_us"]), np.sort(of_shard["served_us"])
        least = max(least, int(np.max(_alive(opened, served, opened), initial=0)))
        refused = refusals[refusals[:, 0] == shard, 1]
        at = refused[refused > unseen_until_us]
        if len(at):
            fullest = int(_alive(opened, np.sort(of_shard["gone_us"]), at, OVERLAP_US).min())
            most = fullest if most is None else min(most, fullest)
    return least * shards, None if most is None else (most + 1) * shards - 1


def _alive(opened: Ints, ended: Ints, at: Ints, before_us: int = 0) -> Ints:
    """How many have been opened by these times, and not ended so long before them."""
    return np.searchsorted(opened, at, "right") - np.searchsorted(ended, at - before_us, "left")
