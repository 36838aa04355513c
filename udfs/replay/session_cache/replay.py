"""The pass over brokers: it replays each captured fetch, as an intent, in every lane, and judges the captured lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa

from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.table import Table
from schemas.wire.fetch_sessions import INITIAL_EPOCH
from udfs.columns.arrays import Records, read_only
from udfs.columns.records import join_records
from udfs.columns.sentinels import NONE
from udfs.facts.arrow_tables import pack_tables
from udfs.replay.session_cache.broker import (
    BrokerReplay,
    begin_window,
    complete_buckets,
    count_evictions,
    lengthen_array,
    make_headroom,
    make_room_to_replay,
    new_broker,
)
from udfs.replay.session_cache.clients import larger_clients, note_clients
from udfs.replay.session_cache.contents.measure import measure_all
from udfs.replay.session_cache.contents.state import with_entries, with_stretches
from udfs.replay.session_cache.dispatch import BUCKET_US, ReplayedFetches, replay_from
from udfs.replay.session_cache.events import Keys, ListedFetches, parts_by_life
from udfs.replay.session_cache.memory import empty_cache
from udfs.replay.session_cache.more_consumers import shares_of_fetches
from udfs.replay.session_cache.order import (
    begins_again,
    events_to_replay,
    first_shard,
    full_responses,
    order_responses,
    turn_of,
)
from udfs.replay.session_cache.rows import BrokerResult, all_rows, cache_rows, result_of
from udfs.replay.session_cache.settings import SessionLanes
from udfs.replay.session_cache.slots import note_all_gone
from udfs.replay.session_cache.state import SESSION_FETCH

BROKERS_AT_ONCE, BUCKETS_AT_ONCE = 100, 100
"""How many brokers' results, and how many buckets of a broker, are held before they become rows."""
TURN_SHOWN_WITHIN_US = (10_000_000, 60_000_000)
"""How long ids are looked at to find the first shard: the ids of the first 10 s or, if they do not show it, of 60 s."""


def replay_sessions(
    batches: Iterable[pa.RecordBatch], lanes: SessionLanes, run_id: str, seed: str
) -> Iterator[pa.RecordBatch]:
    """Packed rows of gold tables from rows of SESSION_EVENTS, sorted by broker, request time, fetch and position."""
    yield from pack_tables(rows_of_brokers(batches, lanes, run_id, seed))


def rows_of_brokers(
    batches: Iterable[pa.RecordBatch], lanes: SessionLanes, run_id: str, seed: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of one broker after the other, some brokers at a time."""
    keys, results = Keys(), list[BrokerResult]()
    for number, parts in groupby(parts_by_life(batches, keys), key=lambda part: int(part.fetches["broker"][0])):
        name = list(keys.brokers)[number]
        own = lanes.of_broker(name)
        broker = new_broker(name, own, seed)
        for part in parts:
            take_fetches(broker, part)
            if broker.sim.buckets.used[0] > BUCKETS_AT_ONCE:
                buckets = complete_buckets(broker)
                if broker.in_window:
                    yield SESSION_CACHE, cache_rows([(broker.name, buckets)], lanes, run_id)
        if broker.begin_us == NONE:
            continue
        replay_until(broker, None)
        if not broker.in_window:
            begin_window(broker)
        results.append(result_of(broker, keys, own.settings))
        if len(results) >= BROKERS_AT_ONCE:
            yield from all_rows(results, lanes, run_id)
            results.clear()
    if results:
        yield from all_rows(results, lanes, run_id)


def take_fetches(broker: BrokerReplay, part: ListedFetches) -> None:
    """Take whole fetches of the broker with all their partitions, and replay the events before the last fetch.

    Events at its time or later are kept back: the next part may have others that come before them.
    """
    fetches = needed_fetches(broker, part.fetches)
    if not len(fetches):
        return
    begin_life(broker, int(fetches["life"][0]), int(fetches["request_us"][0]))
    fetches["number"] = broker.fetches + np.arange(len(fetches))
    broker.fetches += len(fetches)
    number_names(broker, fetches)
    note_intents(broker, fetches, read_only(part.rows))
    broker.sizes = np.concatenate([broker.sizes, broker.dealt.sizes(fetches, part.rows)])
    broker.unfinished = join_records(SESSION_FETCH, [broker.unfinished, fetches])
    replay_until(broker, int(fetches["request_us"][-1]))


def needed_fetches(broker: BrokerReplay, fetches: Records) -> Records:
    """The fetches that the window needs: those in it, and those that come a little after it.

    The later ones show in which order the last responses in the window were built, and which shard came first. fetches:
    SESSION_FETCH[n], at least one, of one life of the broker, in the order of request_us.
    """
    goes_on = broker.begin_us != NONE and broker.life == fetches["life"][0]
    if not goes_on and fetches["request_us"][0] >= broker.window.end:
        return fetches[:0]
    return fetches[: np.searchsorted(fetches["request_us"], broker.window.end + TURN_SHOWN_WITHIN_US[-1])]


def begin_life(broker: BrokerReplay, life: int, begin_us: int) -> None:
    """Begin another life of the broker if all its connections have ended. Their unanswered fetches stay unanswered.

    life: the number of the life to which the next fetches belong. begin_us: when the first of them came.
    """
    if broker.begin_us == NONE:
        broker.captured.unseen["handled_us"] = begin_us
    elif life == broker.life:
        return
    replay_until(broker, None)
    broker.life, broker.begin_us, broker.knows_turn = life, begin_us, False


def number_names(broker: BrokerReplay, fetches: Records) -> None:
    """Number the clients' names, each an id and an address: a follower's number is odd, a consumer's even.

    fetches: SESSION_FETCH[n], whose `name` is written.
    """
    broker.name_of = lengthen_array(broker.name_of, int(fetches["client"].max()) + 1, NONE)
    numbers = broker.name_of[fetches["client"]]
    if (numbers == NONE).any():
        new = np.unique(fetches["client"][numbers == NONE])
        broker.name_of[new] = len(broker.names) + np.arange(len(new))
        broker.names += new.tolist()
        numbers = broker.name_of[fetches["client"]]
    fetches["name"] = 2 * numbers + fetches["privileged"]


def note_intents(broker: BrokerReplay, fetches: Records, rows: Records) -> None:
    """Note with each fetch its client, why it was sent, and its contents.

    fetches: SESSION_FETCH[n]. rows: LISTED_PARTITION[m].
    """
    done = 0
    while (done := note_clients(fetches, done, rows, broker.clients)) < len(fetches):
        broker.clients = larger_clients(broker.clients)
    broker.contents = with_stretches(broker.contents, len(broker.clients.state))
    done = 0
    while (done := measure_all(fetches, done, rows, broker.contents)) < len(fetches):
        broker.contents = with_entries(broker.contents)


def replay_until(broker: BrokerReplay, before_us: int | None) -> None:
    """Replay the events before this time, or all of them if it is None; none after the window."""
    if not broker.knows_turn and not finds_first_turn(broker, before_us):
        return
    fetches, events = broker.unfinished, events_to_replay(broker.unfinished)
    end_us = broker.window.end if before_us is None else min(before_us, broker.window.end)
    end = int(np.searchsorted(events["us"], end_us))
    order_responses(fetches, events, end, broker.turns, broker.shards)
    window_begin = 0 if broker.in_window else int(np.searchsorted(events["us"][:end], broker.window.begin))
    if window_begin:
        replay_events(broker, events[:window_begin])
    if window_begin < end and not broker.in_window:
        begin_window(broker)
    replay_events(broker, events[window_begin:end])
    is_left = fetches["is_answered"] == 0
    broker.unfinished, broker.sizes = fetches.compress(is_left), broker.sizes.compress(is_left, axis=0)
    # If later responses were put before some of these events, as many of these events are left for the next time.
    if before_us is None and end and (events["us"][end:] < end_us).any():
        replay_until(broker, None)


def finds_first_turn(broker: BrokerReplay, before_us: int | None) -> bool:
    """Find the shard of the first full response in the broker's current life. Returns False if later fetches are needed
    for that.

    If the ids fit a counter that begins again better than a counter that goes on, the broker was restarted. before_us:
    all fetches before this time have come; None if all fetches of the capture have come.
    """
    if before_us is not None and before_us < broker.begin_us + TURN_SHOWN_WITHIN_US[0]:
        return False
    expected, shown, is_restarted = int(broker.turns["shard"][0]), NONE, False
    fetches, responses = full_responses(broker.unfinished)
    for within_us in TURN_SHOWN_WITHIN_US:
        until_us = broker.begin_us + within_us
        if before_us is not None and before_us < until_us:
            return False
        early = responses[: np.searchsorted(responses["us"], until_us)]
        shown = first_shard(fetches, early, broker.shards)
        is_restarted = expected != NONE and begins_again(fetches, early, expected, broker.shards)
        if shown != NONE:
            break
    broker.knows_turn = True
    if is_restarted:
        restart_broker(broker)
    elif expected == NONE:
        broker.turns["shard"] = shown
        broker.sim.cache.totals["placed"] = max(shown, 0)
    return True


def restart_broker(broker: BrokerReplay) -> None:
    """Start the broker anew: without sessions, and with its counter at the first shard."""
    broker.turns = turn_of(0)
    for cache in (broker.sim.cache, broker.captured.cache):
        empty_cache(cache)
    note_all_gone(broker.captured.spans, broker.begin_us)


def replay_events(broker: BrokerReplay, events: Records) -> None:
    """Replay these events, EVENT[n], of unfinished fetches in every lane, with as much memory as they need."""
    fetches = broker.unfinished
    buckets = len(np.unique(events["us"] // BUCKET_US))
    make_room_to_replay(broker, buckets, int((fetches["epoch"] == INITIAL_EPOCH).sum()))
    replayed, done = ReplayedFetches(fetches, shares_of_fetches(fetches, broker.sizes, broker.dealt.counts), events), 0
    while (done := replay_from(replayed, done, broker.captured, broker.sim)) < len(events):
        make_headroom(broker, replayed.shares.shape[1])
    count_evictions(broker)
