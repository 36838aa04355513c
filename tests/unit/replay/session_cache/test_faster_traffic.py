"""`traffic.speed`: how many slots are needed if clients come and go faster."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS
from tests.unit.replay.session_cache.captures import Fetch, captured
from tests.unit.replay.session_cache.event_rows import Gold, gold_rows
from udfs.replay.session_cache.settings import EVICTION_MS, SLOTS, SessionLanes, session_lanes
from udfs.replay.shared.lanes import TRAFFIC_SPEED, LaneSettings

STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.booleans(), st.sampled_from([1, 50, 70_000, 130_000])), min_size=1, max_size=30
)
"""Client, whether a follower sends the fetch, and how long after the one before (ms)."""


def at_speeds(*speeds: float, slots: int) -> SessionLanes:
    """A lane for each of these speeds, in which one cache has all slots."""
    in_force = {SLOTS: slots, EVICTION_MS: 120_000, "broker.NumFetchSessionCacheShards": 1}
    changed = tuple({TRAFFIC_SPEED: speed} for speed in speeds)
    return session_lanes(LaneSettings(tuple(f"speed-{speed:g}" for speed in speeds), changed, in_force))


def sums_and_slots(gold: Gold, lane: str) -> dict[str, int]:
    """What happens to sessions in a lane in all, and how many slots it needs."""
    c, s = SESSION_CACHE, SESSION_SLOTS
    rows = [row for row in gold[c.name] if row["scenario"] == lane]
    counted = {name: sum(row[name] for row in rows) for name in (c.fetches, c.created, c.refused, c.evicted)}
    (needed,) = (row for row in gold[s.name] if row["scenario"] == lane)
    return counted | {name: needed[name] for name in (s.most_sessions, s.zero_harm_slots, s.enough_slots)}


@given(steps=STEPS, slots=st.sampled_from([1, 3, 8]))
def test_traffic_at_twice_the_speed_is_a_capture_in_which_all_happens_in_half_the_time(
    steps: Sequence[tuple[int, bool, int]], slots: int
) -> None:
    ms, fetches, faster = 0, list[Fetch](), list[Fetch]()
    for client, privileged, after in steps:
        ms += after
        name = f"{'f' if privileged else 'c'}{client}"
        fetches.append(Fetch(2 * ms, name, 4, privileged))
        faster.append(Fetch(ms, name, 4, privileged))
    at_twice = gold_rows([captured(*fetches)], at_speeds(1.0, 2.0, slots=slots))
    in_half = gold_rows([captured(*faster)], at_speeds(1.0, slots=slots))
    assert sums_and_slots(at_twice, "speed-2") == sums_and_slots(in_half, "speed-1")


def test_sessions_of_clients_that_are_gone_take_more_slots_if_clients_come_and_go_faster() -> None:
    """A client comes every 50 s, fetches once and is gone. Its session may be evicted once it was idle for 120 s."""
    gold = gold_rows([captured(*(Fetch(50_000 * n, f"c{n}", 4) for n in range(12)))], at_speeds(1.0, 2.0, slots=100))
    slots = [sums_and_slots(gold, f"speed-{speed}")[SESSION_SLOTS.enough_slots] for speed in (1, 2)]
    assert slots == [3, 5]


def test_evictions_per_second_are_by_the_brokers_clock() -> None:
    fetches = captured(Fetch(0, "gone", 4), Fetch(300_000, "new", 4))
    gold = gold_rows([fetches], at_speeds(1.0, 2.0, slots=1))
    assert {row["scenario"]: row["evictions"] for row in gold[SESSION_EVICTIONS.name]} == {"speed-1": 1, "speed-2": 1}
    rates = {row["scenario"]: row[SESSION_CACHE.evictions_per_s] for row in gold[SESSION_CACHE.name] if row["evicted"]}
    assert rates["speed-2"] == pytest.approx(2 * rates["speed-1"])
