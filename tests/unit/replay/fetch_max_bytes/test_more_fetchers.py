"""In lanes with `num.replica.fetchers`, the partitions of a follower are dealt among this number of fetchers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.replay.fetch_max_bytes.closed_units import MS, Client, Part, Times, rules_of, unit_of
from udfs.columns.arrays import Ints, Records
from udfs.columns.records import join_records, new_records
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.joined_units import (
    groups_that_meet,
    joined_curve,
    joined_unit,
    stops_of_all,
    units_in_one,
)
from udfs.replay.fetch_max_bytes.closed_loop.more_fetchers import common_time
from udfs.replay.fetch_max_bytes.closed_loop.outcomes import new_outcome
from udfs.replay.fetch_max_bytes.closed_loop.replay import replay_by_clients_clock
from udfs.replay.fetch_max_bytes.closed_loop.state import NODE, POINT, READING_CHANGE, STOP, ReaderLanes
from udfs.replay.fetch_max_bytes.closed_loop.timeline import BUCKETS
from udfs.replay.fetch_max_bytes.closed_loop.together import ReaderInLanes
from udfs.replay.fetch_max_bytes.settings import REPLICA_FETCHER, fetch_lanes
from udfs.replay.shared.lanes import AS_CAPTURED, LaneSettings

ONE = Client(max_bytes=300, profile=REPLICA_FETCHER)
PACE = Times(byte=2.0)
PARTS = st.lists(
    st.builds(
        Part,
        sizes=st.lists(st.just(100), min_size=1, max_size=8),
        max_bytes=st.just(200),
        node=st.just(0),
        leaves=st.sampled_from([NEVER, 20 * MS]),
    ),
    min_size=1,
    max_size=5,
)
"""Backlogs of some partitions of one leader, some of which are given up before they are read."""


def follower(
    of_fetchers: Sequence[Sequence[Part]], clients: Sequence[Client], dealt: Sequence[Sequence[int]] | None = None
) -> list[ReaderLanes]:
    """The outcomes of a follower's captured fetchers in every lane. dealt: the hash of each partition; by default
    captured fetcher i of n has i, i + n, i + 2n ...
    """
    units = [unit_of(parts, [1], 1, PACE) for parts in of_fetchers]
    for i, unit in enumerate(units):
        unit.partitions["dealt"] = dealt[i] if dealt else i + len(units) * np.arange(len(unit.partitions))
    rules = [rules_of(clients, len(unit.nodes), False) for unit in units]
    numbers = [len(parts) for parts in of_fetchers]
    stays, buckets = common_time(rules, units, numbers, BUCKETS)
    readers = [
        ReaderInLanes(unit, of, new_outcome(unit, count, len(clients), buckets=buckets, stays=stays))
        for unit, of, count in zip(units, rules, numbers, strict=True)
    ]
    replay_by_clients_clock(readers)
    return [reader.outcome for reader in readers]


def of_partition(out: ReaderLanes, number: int, lane: int) -> list[int]:
    """What a follower is given of a partition, how long it waits for it, and when it has read the backlog."""
    sums = out.sums.partitions[number, lane]
    names = ("requests", "available", "returned", "empty", "longest_requests", "longest_us")
    return [*(int(sums[name]) for name in names), int(out.catch_up_us[number, lane])]


@given(parts=PARTS, fetchers=st.integers(1, 4))
def test_each_fetcher_reads_its_partitions_as_if_it_were_alone(parts: Sequence[Part], fetchers: int) -> None:
    """The requests, lags and responses of all fetchers are added up."""
    (together,) = follower([parts], [ONE, replace(ONE, readers=fetchers)])
    alone = [follower([of], [ONE])[0] for of in (parts[n::fetchers] for n in range(fetchers)) if of]
    for number in range(len(parts)):
        fetcher, place = number % fetchers, number // fetchers
        assert of_partition(together, number, 1) == of_partition(alone[fetcher], place, 0)
    for name in ("requests", "end_lag"):
        assert together.lanes[name][1] == sum(out.lanes[name][0] for out in alone)
    assert together.sums.sizes[1].sum() == sum(out.sums.sizes[0].sum() for out in alone)
    assert together.timeline.buckets["bytes"][1].sum() == sum(out.timeline.buckets["bytes"][0].sum() for out in alone)


@given(parts=PARTS, others=PARTS)
def test_one_fetcher_in_place_of_several_reads_like_a_captured_one_with_all_partitions(
    parts: Sequence[Part], others: Sequence[Part]
) -> None:
    """The first captured fetcher's partitions come first in its fetches, then the second one's."""
    joined = follower([parts, others], [ONE, replace(ONE, readers=1)])
    (captured,) = follower([[*parts, *others]], [ONE])
    found = [of_partition(joined[0], number, 1) for number in range(len(parts))]
    found += [of_partition(joined[1], number, 1) for number in range(len(others))]
    assert found == [of_partition(captured, number, 0) for number in range(len(parts) + len(others))]
    for name in ("requests", "end_lag"):
        assert sum(out.lanes[name][1] for out in joined) == captured.lanes[name][0]
    assert sum(out.sums.sizes[1] for out in joined).tolist() == captured.sums.sizes[0].tolist()


@given(parts=PARTS, others=PARTS)
def test_as_many_fetchers_as_captured_change_nothing(parts: Sequence[Part], others: Sequence[Part]) -> None:
    for out in follower([parts, others], [ONE, replace(ONE, readers=2)]):
        for number in range(len(out.catch_up_us)):
            assert of_partition(out, number, 1) == of_partition(out, number, 0)
        assert out.lanes[1] == out.lanes[0]
        assert out.sums.sizes[1].tolist() == out.sums.sizes[0].tolist()


@given(parts=PARTS, others=PARTS)
def test_lanes_beside_one_with_other_fetchers_stay_as_they_are(parts: Sequence[Part], others: Sequence[Part]) -> None:
    small = replace(ONE, max_bytes=100)
    alone = follower([parts, others], [ONE, small])
    beside = follower([parts, others], [ONE, replace(ONE, readers=3), small])
    for one, other in zip(alone, beside, strict=True):
        for number in range(len(one.catch_up_us)):
            assert [of_partition(other, number, lane) for lane in (0, 2)] == [
                of_partition(one, number, lane) for lane in (0, 1)
            ]
        assert other.lanes["requests"][[0, 2]].tolist() == one.lanes["requests"].tolist()
        assert other.captured.turns.tolist() == one.captured.turns.tolist()


def test_two_fetchers_become_three_by_the_hashes_of_their_partitions() -> None:
    """Requests count for the captured fetcher with most of the partitions, and what a partition gets for its own."""
    dealt = [[0, 2, 4, 6], [1, 3, 5]]
    parts = [[Part([100] * (5 + n), max_bytes=200) for n in of] for of in dealt]
    found = follower(parts, [ONE, replace(ONE, readers=3)], dealt)
    by_hash = {n: (out, place) for out, of in zip(found, dealt, strict=True) for place, n in enumerate(of)}
    requests = list[int]()
    for fetcher in range(3):
        own = [n for of in dealt for n in of if n % 3 == fetcher]
        (alone,) = follower([[Part([100] * (5 + n), max_bytes=200) for n in own]], [ONE])
        requests.append(int(alone.lanes["requests"][0]))
        for place, n in enumerate(own):
            out, number = by_hash[n]
            assert of_partition(out, number, 1) == of_partition(alone, place, 0)
    # Of 0, 3 and 6 most are the first captured fetcher's. 1 and 4 are one of each, and so are 2 and 5.
    assert [int(out.lanes["requests"][1]) for out in found] == [sum(requests), 0]


def test_two_fetchers_read_a_backlog_sooner_that_a_response_has_no_room_for() -> None:
    parts = [Part([100] * 40, max_bytes=100), Part([100] * 40, max_bytes=100)]
    (out,) = follower([parts], [replace(ONE, max_bytes=100), replace(ONE, max_bytes=100, readers=2)])
    one, two = out.catch_up_us.max(axis=0).tolist()
    assert 0.45 * one <= two <= 0.55 * one
    assert out.sums.partitions["empty"].sum(axis=0).tolist()[1] == 0 < out.sums.partitions["empty"].sum(axis=0)[0]


def test_two_fetchers_hold_what_both_hold_at_once() -> None:
    """A follower's fetchers are threads of one broker."""
    held = replace(ONE, max_bytes=1000, record_us=1.0 * MS)
    (out,) = follower([[Part([100] * 5, max_bytes=500)] * 2], [held, replace(held, readers=2)])
    assert out.timeline.held.max(axis=1).tolist() == [1000, 1000]


def test_connections_to_one_leader_at_the_same_time_become_one_and_others_stay_apart() -> None:
    nodes = new_records(NODE, 5, begin=[0, 5, 30, 2, 8], horizon=[10, 12, 40, 9, 31])
    assert groups_that_meet(np.array([1, 2, 1, 1, 3]), nodes).tolist() == [0, 1, 2, 0, 3]


def test_a_joined_fetcher_stands_still_while_all_its_captured_fetchers_do() -> None:
    begin, end = stops_of_all(np.array([5, 7, 50, 5]), np.array([20, 30, 60, 20]), np.array([0, 1, 1, 0]), 2)
    assert (begin.tolist(), end.tolist()) == ([7], [20])
    none = np.zeros(0, np.int64)
    assert [len(of) for of in stops_of_all(none, none, none, 2)] == [0, 0]


def test_one_fetcher_that_stands_still_for_two_reasons_at_a_time_is_not_two_fetchers() -> None:
    """A quota that empties several responses in a row stops a fetcher until its next request each time."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        count, nodes = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        begin, node = rng.integers(0, 30, count), rng.integers(0, nodes, count)
        end = begin + rng.integers(1, 15, count)
        stops = [times(begin[node == of], end[node == of]) for of in range(nodes)]
        assert times(*stops_of_all(begin, end, node, nodes)) == set.intersection(*stops)


def times(begin: Ints, end: Ints) -> set[int]:
    """All times in some stretches."""
    return {time for stretch in zip(begin.tolist(), end.tolist(), strict=True) for time in range(*stretch)}


def test_fetchers_that_become_one_stop_while_both_stopped() -> None:
    units = [unit_of([Part([100] * 3)], [1], 1, PACE) for _ in range(2)]
    units = [unit._replace(changes=with_stop(unit.changes, until)) for unit, until in zip(units, (9, 5), strict=True)]
    for unit in units:
        unit.nodes["end_change"] += 1
    joined, first = joined_unit(units_in_one(units, [1, 1]), np.zeros(2, np.int64), 1, 0)
    stops = joined.changes[joined.changes["partition"] == STOP]
    assert stops[["time", "to"]].tolist() == [(3, 5)]
    assert first.tolist() == [0]


def with_stop(changes: Records, until: int) -> Records:
    """The changes, and a stop from 3 us to `until`."""
    return join_records(READING_CHANGE, [changes, new_records(READING_CHANGE, 1, time=3, partition=STOP, to=until)])


def test_the_curve_of_several_fetchers_adds_up_their_times_at_equal_shares_of_their_amounts() -> None:
    slow = np.array([(0, 0.0), (10, 100.0)], POINT)
    bent = np.array([(0, 0.0), (15, 90.0), (30, 120.0)], POINT)
    assert joined_curve([slow, bent]).tolist() == [(0, 0.0), (20, 140.0), (40, 220.0)]
    nothing = np.array([(0, 0.0)], POINT)
    assert joined_curve([slow, nothing]).tolist() == slow.tolist()


@pytest.mark.parametrize("lane", [{}, {"replica.fetch.max.bytes": 100}])
def test_only_followers_have_other_fetchers_and_only_in_lanes_that_say_so(lane: dict[str, int]) -> None:
    more = lane | {"num.replica.fetchers": 3}
    lanes = fetch_lanes(LaneSettings(("captured", "a", "b"), ({}, lane, more), {"num.replica.fetchers": 1}))
    assert lanes.client("follower")["readers"].tolist() == [AS_CAPTURED, AS_CAPTURED, 3]
    assert lanes.client("consumer")["readers"].tolist() == [AS_CAPTURED] * 3
    assert lanes.deals_fetchers
