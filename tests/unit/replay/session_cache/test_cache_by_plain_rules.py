"""A cache with shards, places and growing memory has the sessions that a plain dict has, and evicts the same ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.columns.arrays import Record
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.replay.session_cache import memory
from udfs.replay.session_cache.cache import (
    find_by_id,
    find_owned,
    has_free_slot,
    is_shard_full,
    next_epoch,
    next_shard,
    open_session,
    random_id,
    remove_idle,
    remove_session,
    shard_of,
    touch_session,
)
from udfs.replay.session_cache.eviction import find_victim
from udfs.replay.session_cache.settings import CURRENT, KIP_TEXT, OLDEST_CREATED, cache_settings
from udfs.replay.session_cache.state import GREATEST_ID, SESSION_FETCH, Cache

EVICTION_MS, SLOTS, CLIENTS = 100, 3, 4
SHARDS = (1, 3)
"""Of each lane. A shard has three slots."""


@dataclass
class Session:
    """A session by plain rules."""

    owner: int
    size: int
    privileged: int
    created_ms: int
    used_ms: int
    by_privileged: bool = False
    by_all: bool = False

    def use(self, size: int, now_ms: int, rules: int) -> None:
        if rules != OLDEST_CREATED:
            self.used_ms = now_ms
        self.size, is_aged = size, self.used_ms - self.created_ms > EVICTION_MS
        self.by_privileged, self.by_all = is_aged or not self.privileged, is_aged


Plain = dict[int, Session]
"""The sessions of a lane, by id."""


def plain_victim(sessions: Plain, size: int, privileged: int, now_ms: int, rules: int) -> int:
    """The id of the session that a shard with these sessions evicts for a fetch, or NONE."""

    def yields(session: Session) -> bool:
        is_aged = rules != KIP_TEXT or now_ms - session.created_ms > EVICTION_MS
        if session.privileged == privileged or (rules == KIP_TEXT and privileged < session.privileged):
            return is_aged and size > session.size
        return privileged > session.privileged

    oldest = min(sessions, key=lambda of: (sessions[of].used_ms, of))
    if now_ms - sessions[oldest].used_ms > EVICTION_MS:
        return oldest
    if rules == KIP_TEXT:
        may_go = {of: session for of, session in sessions.items() if yields(session)}
    else:
        may_go = {of: each for of, each in sessions.items() if (each.by_privileged if privileged else each.by_all)}
    smallest = min(may_go, key=lambda of: (may_go[of].privileged, may_go[of].size, of), default=NONE)
    return smallest if smallest != NONE and yields(sessions[smallest]) else NONE


def assert_alike(cache: Cache, lane: int, plain: Plain, opened: dict[int, int]) -> None:
    """opened: the id of the session that each client opened last."""
    totals, shards = cache.totals[lane], SHARDS[lane]
    of_shards = [[of for of in plain if of // (GREATEST_ID // shards) == shard] for shard in range(shards)]
    assert cache.live[lane, :shards].tolist() == list(map(len, of_shards))
    assert totals["partitions"] == sum(session.size for session in plain.values())
    assert totals["followers"] == sum(session.privileged for session in plain.values())
    assert [is_shard_full(cache, lane, shard) for shard in range(shards)] == [len(own) >= SLOTS for own in of_shards]
    assert has_free_slot(cache, lane) == any(len(own) < SLOTS for own in of_shards)
    places = {of: find_by_id(cache, lane, of) for of in plain}
    assert len({*places.values()} - {NONE}) == len(plain)
    for of, session in plain.items():
        found = cache.sessions[lane, places[of]]
        names = ("owner", "size", "privileged", "created_ms", "last_used_ms", "by_privileged", "by_all")
        assert [found[name] for name in names] == list(vars(session).values())
    for owner, of in opened.items():
        assert find_owned(cache, lane, owner, of) == places.get(of, NONE)
    assert find_by_id(cache, lane, 0) == find_by_id(cache, lane, GREATEST_ID) == NONE


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["full", "full", "full", "use", "close", "idle"]), st.integers(0, 9),
        st.integers(0, CLIENTS - 1), st.integers(1, 3), st.integers(0, 1), st.sampled_from([0, 1, 50, 100, 101]),
    ),
    max_size=25,
)  # fmt: skip
"""(what happens, to which session, by which client, its partitions, whether it is a follower, after how many ms)."""


class Beside:
    """A cache of two lanes, and the plain sessions of each."""

    def __init__(self, rules: int) -> None:
        settings = cache_settings(np.array(SHARDS) * SLOTS, SHARDS, EVICTION_MS, rules)
        self.cache = memory.with_clients(memory.new_cache(settings, 5), CLIENTS)
        self.plains: tuple[Plain, ...] = ({}, {})
        self.opened: tuple[dict[int, int], ...] = ({}, {})
        self.rules, self.turns, self.now_ms = rules, 0, 1000

    def full(self, owner: int, size: int, privileged: int) -> None:
        """A full fetch gets a session if the shard whose turn it is has room, or a session that yields its place."""
        self.turns += 1
        fetch = new_records(SESSION_FETCH, 1, owner=owner, size=size, privileged=privileged)[0]
        self.cache = memory.with_headroom(self.cache, 1)
        for lane, plain in enumerate(self.plains):
            shard = next_shard(self.cache, lane)
            assert shard == (self.turns - 1) % SHARDS[lane]
            if self.makes_room(lane, shard, fetch, size, privileged):
                new = random_id(self.cache, lane, shard)
                place = open_session(self.cache, lane, new, fetch, self.now_ms)
                assert find_owned(self.cache, lane, owner, new) == place
                self.opened[lane][owner] = new
                plain[new] = Session(owner, 0, privileged, self.now_ms, self.now_ms)
                plain[new].use(size, self.now_ms, self.rules)

    def makes_room(self, lane: int, shard: int, fetch: Record, size: int, privileged: int) -> bool:
        plain = self.plains[lane]
        own = {of: each for of, each in plain.items() if of // (GREATEST_ID // SHARDS[lane]) == shard}
        if len(own) < SLOTS:
            return True
        victim = plain_victim(own, size, privileged, self.now_ms, self.rules)
        place = find_victim(self.cache, lane, shard, fetch, self.now_ms)
        assert (NONE if place == NONE else self.cache.sessions[lane, place]["id"]) == victim
        if victim != NONE:
            remove_session(self.cache, lane, place)
            del plain[victim]
        return victim != NONE

    def idle(self) -> None:
        """Sessions that are idle for long enough go."""
        for lane, plain in enumerate(self.plains):
            for shard in range(SHARDS[lane]):
                remove_idle(self.cache, lane, shard, self.now_ms)
            for of in [of for of, each in plain.items() if self.now_ms - each.used_ms > EVICTION_MS]:
                del plain[of]

    def use_or_close(self, which: int, size: int, *, closes: bool) -> None:
        """One session of each lane is used or closed, if there is any."""
        for lane, plain in enumerate(self.plains):
            for of in [*plain][which % max(len(plain), 1) :][:1]:
                place = find_by_id(self.cache, lane, of)
                if closes:
                    remove_session(self.cache, lane, place)
                    del plain[of]
                else:
                    touch_session(self.cache, lane, self.cache.sessions[lane, place], size, self.now_ms)
                    plain[of].use(size, self.now_ms, self.rules)


@pytest.mark.parametrize("rules", [CURRENT, OLDEST_CREATED, KIP_TEXT])
def test_a_cache_has_the_sessions_of_a_plain_dict(rules: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "FIRST_PLACES", max(SHARDS))

    @given(STEPS)
    def check(steps: list[tuple[str, int, int, int, int, int]]) -> None:
        beside = Beside(rules)
        for what, which, owner, size, privileged, after_ms in steps:
            beside.now_ms += after_ms
            if what == "full":
                beside.full(owner, size, privileged)
            elif what == "idle":
                beside.idle()
            else:
                beside.use_or_close(which, size, closes=what == "close")
        for lane, (plain, opened) in enumerate(zip(beside.plains, beside.opened, strict=True)):
            assert_alike(beside.cache, lane, plain, opened)

    check()


@pytest.mark.parametrize("shards", [1, 3, 8])
def test_ids_are_drawn_from_the_range_of_their_shard(shards: int) -> None:
    cache = memory.new_cache(cache_settings(shards, shards, EVICTION_MS, CURRENT), 1)
    width = GREATEST_ID // shards
    for shard in range(shards):
        drawn = [random_id(cache, 0, shard) for _ in range(50)]
        assert {shard_of(of, shards) for of in drawn} == {shard}
        assert all(shard * width <= of < (shard + 1) * width for of in drawn)
        assert len({*drawn}) == 50
        assert max(drawn) - min(drawn) > width // 2, "they are spread over all of it"


def test_the_ids_of_a_seed_are_the_same_in_every_run_and_release() -> None:
    cache = memory.new_cache(cache_settings(8, 8, EVICTION_MS, CURRENT), 0)
    assert [random_id(cache, 0, shard) for shard in (0, 0, 7)] == [57779839, 207366185, 2043138310]


def test_an_id_belongs_to_the_nearest_shard_and_epochs_begin_again_with_one() -> None:
    width = GREATEST_ID // 8
    ids = (0, 1, width - 1, width, 8 * width - 1, 8 * width, GREATEST_ID, -5)
    assert [shard_of(of, 8) for of in ids] == [0, 0, 0, 1, 7, 7, 7, 0]
    assert [next_epoch(epoch) for epoch in (-1, 0, 1, GREATEST_ID - 1, GREATEST_ID)] == [-1, 1, 2, GREATEST_ID, 1]


def test_memory_is_made_for_more_sessions_before_a_shard_is_out_of_places() -> None:
    cache = memory.new_cache(cache_settings([100, 100], [1, 8], EVICTION_MS, CURRENT), 1)
    assert cache.totals["room"].tolist() == [64, 8]
    assert (memory.has_headroom(cache, 8), memory.has_headroom(cache, 9)) == (True, False)
    assert memory.with_headroom(cache, 8) is cache
    larger = memory.with_headroom(cache, 17)
    assert (larger.totals["room"].tolist(), larger.sessions.shape) == ([256, 32], (2, 256))
    assert memory.with_clients(memory.with_clients(cache, 3), 6).clients.shape == (6, 2)
    assert memory.with_clients(memory.with_clients(cache, 3), 7).clients.shape == (14, 2)


def test_an_empty_cache_begins_with_the_first_shard() -> None:
    cache = memory.with_clients(memory.new_cache(cache_settings(8, 8, EVICTION_MS, CURRENT), 1), 1)
    (fetch,) = new_records(SESSION_FETCH, 1, size=5, privileged=1)
    of = random_id(cache, 0, next_shard(cache, 0))
    open_session(cache, 0, of, fetch, 1000)
    memory.note_fullest(cache)
    assert (cache.totals["fullest"].tolist(), cache.headroom.tolist()) == ([1], [7])
    memory.empty_cache(cache)
    assert (find_by_id(cache, 0, of), find_owned(cache, 0, 0, of), next_shard(cache, 0)) == (NONE, NONE, 0)
    assert cache.totals[["partitions", "followers", "fullest"]].tolist() == [(0, 0, 1)]
    assert not cache.live.any()
