"""`traffic.consumers`: how many slots are needed if several consumers share the partitions that one fetches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_SLOTS
from tests.unit.replay.session_cache.captures import Fetch, captured, evictions, lanes
from tests.unit.replay.session_cache.event_rows import Gold, gold_rows
from udfs.columns.records import new_records
from udfs.replay.session_cache.more_consumers import first_shares, shares_of_fetches
from udfs.replay.session_cache.settings import CURRENT, SessionLanes, cache_settings, session_lanes
from udfs.replay.session_cache.state import SESSION_FETCH
from udfs.replay.shared.lanes import LaneSettings

COUNTED = (
    "fetches", "full_fetches", "created", "refused", "evicted", "not_found", "partitions_reread", "live_sessions",
    "follower_sessions", "cached_partitions",
)  # fmt: skip
FETCHES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 9), st.booleans(), st.sampled_from([1, 50, 90_000])),
    min_size=1,
    max_size=30,
)
"""Client, partitions, whether a follower sends it, and how long after the one before (ms)."""


def with_consumers(*consumers: int, slots: int = 3, shards: int = 1) -> SessionLanes:
    """A lane for each of these numbers of consumers."""
    settings = cache_settings([slots] * len(consumers), shards, 120_000, CURRENT)
    settings["consumers"] = consumers
    return SessionLanes(tuple(f"lane-{i}" for i in range(len(consumers))), settings)


def of_lane(gold: Gold, lane: str) -> list[list[int]]:
    """The results of a lane by bucket of time, then the slots that it needs."""
    buckets = [[row[name] for name in COUNTED] for row in gold[SESSION_CACHE.name] if row["scenario"] == lane]
    s = SESSION_SLOTS
    return buckets + [
        [row[s.most_sessions], row[s.zero_harm_slots], row[s.enough_slots]]
        for row in gold[s.name]
        if row["scenario"] == lane
    ]


def dealt(fetch: Fetch, consumers: int) -> list[Fetch]:
    """The fetches of several consumers that share the partitions of this one. A follower's fetch stays as it is."""
    if fetch.privileged:
        return [fetch]
    sizes = [(fetch.size + consumers - 1 - share) // consumers for share in range(consumers)]
    return [fetch._replace(client=f"{fetch.client}{share}", size=size) for share, size in enumerate(sizes) if size]


@given(steps=FETCHES, consumers=st.integers(1, 3), slots=st.sampled_from([1, 3, 8]))
def test_a_lane_with_more_consumers_equals_a_capture_with_as_many(
    steps: Sequence[tuple[int, int, bool, int]], consumers: int, slots: int
) -> None:
    """Each client sends full fetches of the same partitions, as all clients do whose sessions are refused."""
    sizes, ms, fetches = dict[str, int](), 0, list[Fetch]()
    for client, size, privileged, after in steps:
        ms += after
        name = f"{'f' if privileged else 'c'}{client}-"
        fetches.append(Fetch(ms, name, sizes.setdefault(name, size), privileged))
    grown = gold_rows([captured(*fetches)], with_consumers(1, consumers, slots=slots))
    alone = gold_rows([captured(*(of for fetch in fetches for of in dealt(fetch, consumers)))], lanes(slots))
    assert of_lane(grown, "lane-1") == of_lane(alone, "lane")
    assert of_lane(grown, "lane-0") == of_lane(gold_rows([captured(*fetches)], lanes(slots)), "lane")


def test_each_further_consumer_needs_a_slot_and_followers_need_no_more() -> None:
    clients = [Fetch(n, f"c{n}", 6) for n in range(5)] + [Fetch(9, "follower", 6, True)]
    gold = gold_rows([captured(*clients)], with_consumers(1, 2, 4, slots=100))
    assert [row[SESSION_SLOTS.zero_harm_slots] for row in gold[SESSION_SLOTS.name]] == [6, 11, 21]
    cached = [row[SESSION_CACHE.cached_partitions] for row in gold[SESSION_CACHE.name]]
    assert cached == [36, 36, 36]


def test_members_without_a_partition_need_no_session() -> None:
    gold = gold_rows([captured(Fetch(0, "c", 2))], with_consumers(1, 5, slots=100))
    assert [row[SESSION_SLOTS.zero_harm_slots] for row in gold[SESSION_SLOTS.name]] == [1, 2]


def test_each_consumer_keeps_its_partitions_and_fetches_when_one_of_them_is_wanted() -> None:
    """The second fetch wants only the first partition. The consumer of the second one waits, and keeps its session."""
    wanted = [
        Fetch(100 * i, "c", size, session_id=7 if i else 0, epoch=i, granted=7) for i, size in enumerate((2, 1, 2))
    ]
    gold = gold_rows([captured(*wanted)], with_consumers(1, 2, slots=100))
    rows = {row["scenario"]: row for row in gold[SESSION_CACHE.name]}
    names = (SESSION_CACHE.fetches, SESSION_CACHE.created, SESSION_CACHE.live_sessions)
    assert [[rows[f"lane-{lane}"][name] for name in names] for lane in range(2)] == [[3, 1, 1], [5, 2, 2]]


def test_evictions_have_the_names_of_the_captured_clients() -> None:
    fetches = [Fetch(0, "idle", 4), Fetch(200_000, "busy", 4)]
    assert evictions(gold_rows([captured(*fetches)], with_consumers(2, slots=2))) == [("busy", "idle")] * 2


def test_a_consumers_fetch_is_divided_and_a_followers_is_not() -> None:
    fetches = new_records(
        SESSION_FETCH, 2, owner=[3, 4], privileged=[0, 1], size=[5, 5], listed=[1, 1], returned=[2, 2],
        request_empty=100, request_full=600, request_incremental=200, response_empty=50, response_full=1050,
        response_incremental=250,
    )  # fmt: skip
    settings = cache_settings([8, 8, 8], 1, 0, CURRENT)
    settings["consumers"] = [1, 2, 1]
    shares = shares_of_fetches(fetches, np.array([[5, 3, 2], [5, 3, 2]]), np.array([1, 2]))
    assert shares.shape == (2, 3)
    assert first_shares(settings).tolist() == [0, 1, 0]
    names = ("owner", "size", "listed", "returned", "request_full", "request_incremental", "response_full")
    whole = [[6, 5, 1, 2, 600, 200, 1050], [8, 5, 1, 2, 600, 200, 1050]]
    assert [[int(shares[i, 0][name]) for name in names] for i in range(2)] == whole
    assert [int(shares[0, 1][name]) for name in names] == [6, 3, 1, 1, 400, 160, 650]
    assert [int(shares[0, 2][name]) for name in names] == [7, 2, 0, 1, 300, 140, 450]
    assert [int(shares[1, 1][name]) for name in names] == whole[1]


@pytest.mark.parametrize(("lane", "consumers"), [({}, 1), ({"traffic.consumers": 3}, 3)])
def test_a_lane_has_as_many_consumers_as_it_says(lane: dict[str, int], consumers: int) -> None:
    in_force = {"broker.max.incremental.fetch.session.cache.slots": 8, "traffic.consumers": 1}
    settings = session_lanes(LaneSettings(("captured", "lane"), ({}, lane), in_force)).settings
    assert np.asarray(settings["consumers"]).tolist() == [1, consumers]
