"""The pass over brokers: each captured fetch as an intent, played in every lane, and the captured lane judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa

from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.table import Table
from udfs.columns.arrays import Records, read_only
from udfs.facts.arrow_tables import packed_together
from udfs.replay.session_cache.broker import (
    BrokerReplay,
    begin_window,
    complete_buckets,
    count_evictions,
    lengthened,
    make_headroom,
    make_room_to_play,
    new_broker,
)
from udfs.replay.session_cache.clients import larger_clients, note_clients
from udfs.replay.session_cache.contents.measure import measure_all
from udfs.replay.session_cache.contents.state import with_entries, with_stretches
from udfs.replay.session_cache.dispatch import BUCKET_US, play
from udfs.replay.session_cache.events import Keys, Part, joined_records, parts_of
from udfs.replay.session_cache.memory import empty
from udfs.replay.session_cache.order import (
    begins_again,
    events_of,
    first_shard,
    full_responses,
    order_responses,
    turn_of,
)
from udfs.replay.session_cache.rows import BrokerResult, all_rows, cache_rows, result_of
from udfs.replay.session_cache.settings import SessionLanes
from udfs.replay.session_cache.slots import close_all
from udfs.replay.session_cache.state import INITIAL_EPOCH, NONE

BROKERS_AT_ONCE, BUCKETS_AT_ONCE = 100, 100
"""Results of so many brokers, and so many buckets of one, are held until they are made rows."""
TURN_SHOWN_WITHIN_US = (10_000_000, 60_000_000)
"""The ids of the first 10 s show whose turn it is, else those of the first 60."""


def replay_sessions(
    batches: Iterable[pa.RecordBatch], lanes: SessionLanes, run_id: str, seed: str
) -> Iterator[pa.RecordBatch]:
    """Packed rows of gold tables from rows of SESSION_EVENTS, sorted by broker, request time, fetch and position."""
    yield from packed_together(rows_of_brokers(batches, lanes, run_id, seed))


def rows_of_brokers(
    batches: Iterable[pa.RecordBatch], lanes: SessionLanes, run_id: str, seed: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of one broker after the other, some brokers at a time."""
    keys, results = Keys(), list[BrokerResult]()
    for broker, parts in groupby(parts_of(batches, keys), key=lambda part: int(part.fetches["broker"][0])):
        replay = new_broker(list(keys.brokers)[broker], lanes, seed)
        for part in parts:
            take(replay, part)
            if replay.lanes.buckets.used[0] > BUCKETS_AT_ONCE:
                buckets = complete_buckets(replay)
                if replay.counts:
                    yield SESSION_CACHE, cache_rows([(replay.name, buckets)], lanes, run_id)
        if replay.begin_us == NONE:
            continue
        go_on(replay, None)
        if not replay.counts:
            begin_window(replay)
        results.append(result_of(replay, keys, lanes.settings))
        if len(results) >= BROKERS_AT_ONCE:
            yield from all_rows(results, lanes, run_id)
            results.clear()
    if results:
        yield from all_rows(results, lanes, run_id)


def take(replay: BrokerReplay, part: Part) -> None:
    """Take whole fetches of the broker with all their partitions, and play all whose time has come."""
    fetches = in_time(replay, part.fetches)
    if not len(fetches):
        return
    begin_life(replay, int(fetches["life"][0]), int(fetches["request_us"][0]))
    fetches["number"] = replay.fetches + np.arange(len(fetches))
    replay.fetches += len(fetches)
    number_names(replay, fetches)
    read(replay, fetches, read_only(part.rows))
    replay.waiting = joined_records([replay.waiting, fetches])
    go_on(replay, int(fetches["request_us"][-1]))


def in_time(replay: BrokerReplay, fetches: Records) -> Records:
    """Those that the window needs. What comes a little behind it shows in which order the last of it came, and whose
    turn it was first; not in other connections, where all had ended.
    """
    goes_on = replay.begin_us != NONE and replay.life == fetches["life"][0]
    if not goes_on and fetches["request_us"][0] >= replay.window.end:
        return fetches[:0]
    return fetches[: np.searchsorted(fetches["request_us"], replay.window.end + TURN_SHOWN_WITHIN_US[-1])]


def begin_life(replay: BrokerReplay, life: int, us: int) -> None:
    """Go over to fetches in other connections, where all had ended: what of the others is open stays so."""
    if replay.begin_us == NONE:
        replay.captured.unseen["handled_us"] = us
    elif life == replay.life:
        return
    go_on(replay, None)
    replay.life, replay.begin_us, replay.has_begun = life, us, False


def number_names(replay: BrokerReplay, fetches: Records) -> None:
    """Number the clients' ids and addresses among the broker's: a follower's are odd, a consumer's even."""
    replay.name_of = lengthened(replay.name_of, int(fetches["client"].max()) + 1, NONE)
    numbers = replay.name_of[fetches["client"]]
    if (numbers == NONE).any():
        new = np.unique(fetches["client"][numbers == NONE])
        replay.name_of[new] = len(replay.names) + np.arange(len(new))
        replay.names += new.tolist()
        numbers = replay.name_of[fetches["client"]]
    fetches["name"] = 2 * numbers + fetches["privileged"]


def read(replay: BrokerReplay, fetches: Records, rows: Records) -> None:
    """Say of each fetch whose it is, why it was sent, and what is in it."""
    done = 0
    while (done := note_clients(fetches, done, rows, replay.clients)) < len(fetches):
        replay.clients = larger_clients(replay.clients)
    replay.contents = with_stretches(replay.contents, len(replay.clients.state))
    done = 0
    while (done := measure_all(fetches, done, rows, replay.contents)) < len(fetches):
        replay.contents = with_entries(replay.contents)


def go_on(replay: BrokerReplay, before_us: int | None) -> None:
    """Play the events before this time, or all of them; none behind the window."""
    if not replay.has_begun and not begins(replay, before_us):
        return
    fetches, events = replay.waiting, events_of(replay.waiting)
    end_us = replay.window.end if before_us is None else min(before_us, replay.window.end)
    end = int(np.searchsorted(events["us"], end_us))
    order_responses(fetches, events, end, replay.turns, replay.shards)
    before = 0 if replay.counts else int(np.searchsorted(events["us"][:end], replay.window.begin))
    if before:
        play_events(replay, events[:before])
    if before < end and not replay.counts:
        begin_window(replay)
    play_events(replay, events[before:end])
    replay.waiting = fetches.compress(fetches["is_answered"] == 0)
    if before_us is None and end and (events["us"][end:] < end_us).any():  # a later response was put before them
        go_on(replay, None)


def begins(replay: BrokerReplay, before_us: int | None) -> bool:
    """Find whose turn it is, at first and where all connections had ended; False where later fetches may show it."""
    if before_us is not None and before_us < replay.begin_us + TURN_SHOWN_WITHIN_US[0]:
        return False
    expected, shown, is_restarted = int(replay.turns["shard"][0]), NONE, False
    fetches, responses = full_responses(replay.waiting)
    for within_us in TURN_SHOWN_WITHIN_US:
        until_us = replay.begin_us + within_us
        if before_us is not None and before_us < until_us:
            return False
        first = responses[: np.searchsorted(responses["us"], until_us)]
        shown = first_shard(fetches, first, replay.shards)
        is_restarted = expected != NONE and begins_again(fetches, first, expected, replay.shards)
        if shown != NONE:
            break
    replay.has_begun = True
    if is_restarted:
        restart(replay)
    elif expected == NONE:
        replay.turns["shard"] = shown
        replay.lanes.cache.totals["placed"] = max(shown, 0)
    return True


def restart(replay: BrokerReplay) -> None:
    """The broker was started anew: it has no session, and its counter begins again."""
    replay.turns = turn_of(0)
    for cache in (replay.lanes.cache, replay.captured.cache):
        empty(cache)
    close_all(replay.captured.spans, replay.begin_us)


def play_events(replay: BrokerReplay, events: Records) -> None:
    """Play these events."""
    fetches = replay.waiting
    buckets = len(np.unique(events["us"] // BUCKET_US))
    make_room_to_play(replay, buckets, int((fetches["epoch"] == INITIAL_EPOCH).sum()))
    done = 0
    while (done := play(fetches, events, done, replay.captured, replay.lanes)) < len(events):
        make_headroom(replay)
    count_evictions(replay)
