"""In lanes with `traffic.consumers`, the partitions of a consumer are dealt among this number of consumers like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.replay.fetch_max_bytes.closed_units import MS, PACE, Client, Part, replayed, rules_of, unit_of
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop import more_consumers
from udfs.replay.fetch_max_bytes.closed_loop.more_consumers import share_of_unit
from udfs.replay.fetch_max_bytes.closed_loop.outcomes import new_outcome
from udfs.replay.fetch_max_bytes.closed_loop.placing import places_in_deal
from udfs.replay.fetch_max_bytes.closed_loop.replay import replay_by_clients_clock
from udfs.replay.fetch_max_bytes.closed_loop.state import NO_BACKLOG, ReaderLanes
from udfs.replay.fetch_max_bytes.closed_loop.together import ReaderInLanes
from udfs.replay.fetch_max_bytes.settings import fetch_lanes
from udfs.replay.shared.lanes import AS_CAPTURED, LaneSettings

ONE = Client(max_bytes=300, max_poll_records=4, record_us=900.0)
PARTS = st.lists(
    st.builds(
        Part,
        sizes=st.lists(st.just(100), min_size=1, max_size=12),
        node=st.just(0),
        leaves=st.sampled_from([NEVER, 20 * MS]),
        records=st.just(3),
    ),
    min_size=1,
    max_size=5,
)
"""Backlogs of some partitions of one broker, some of which are given up before they are read."""


def of_partition(out: ReaderLanes, number: int, lane: int) -> list[int]:
    """What a reader is given of a partition, how long it waits for it, and when it has read the backlog."""
    sums = out.sums.partitions[number, lane]
    names = ("requests", "available", "returned", "empty", "longest_requests", "longest_us")
    return [*(int(sums[name]) for name in names), int(out.catch_up_us[number, lane])]


@given(parts=PARTS, consumers=st.integers(1, 4))
def test_each_consumer_reads_its_partitions_as_if_it_were_alone(parts: Sequence[Part], consumers: int) -> None:
    """The partitions are dealt in turn. The requests and lags of all consumers are added up. Of the bytes that they
    hold, the most that any of them holds counts.
    """
    together = replayed(parts, [ONE, replace(ONE, readers=consumers)], 90 * MS)
    own = [parts[share::consumers] for share in range(consumers)]
    alone = [replayed(of, [ONE], 90 * MS) for of in own if of]
    for number in range(len(parts)):
        share, place = number % consumers, number // consumers
        assert of_partition(together, number, 1) == of_partition(alone[share], place, 0)
    for name in ("requests", "end_lag"):
        assert together.lanes[name][1] == sum(out.lanes[name][0] for out in alone)
    assert together.timeline.held[1].max() == max(out.timeline.held[0].max() for out in alone)
    assert together.sums.sizes[1].sum() == sum(out.sums.sizes[0].sum() for out in alone)
    assert together.timeline.buckets["bytes"][1].sum() == sum(out.timeline.buckets["bytes"][0].sum() for out in alone)


@given(parts=PARTS, consumers=st.integers(2, 4))
def test_single_responses_are_those_of_the_consumer_that_holds_most(parts: Sequence[Part], consumers: int) -> None:
    """The replay of memory goes on from them."""
    clients = [ONE, replace(ONE, readers=consumers)]
    together = replayed(parts, clients, 90 * MS)
    alone = [replayed(of, [ONE], 90 * MS) for share in range(consumers) if (of := parts[share::consumers])]
    most = max(alone, key=lambda out: out.timeline.held[0].max())
    count = int(together.lanes["responses"][1])
    assert count == most.lanes["responses"][0]
    names = ["requested_at", "arrived_at", "drained_at", "size", "records", "partitions"]
    assert together.responses[1, :count][names].tolist() == most.responses[0, :count][names].tolist()
    given_up = int(together.lanes["given_up"][1])
    assert given_up == most.lanes["given_up"][0]
    assert together.given_up[1, :given_up]["response"].tolist() == most.given_up[0, :given_up]["response"].tolist()


def test_many_consumers_keep_no_more_responses_than_one_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lanes of three consumers share the room; the responses beyond it are counted."""
    monkeypatch.setattr(more_consumers, "MOST_RESPONSES", 2 * 3 * 5)
    out = replayed([Part([100] * 40, max_bytes=100)] * 3, [Client(max_bytes=100), Client(max_bytes=100, readers=3)])
    assert out.lanes["responses"][1] == 40
    assert np.count_nonzero(out.responses["size"][1]) == 5


@given(parts=PARTS)
def test_lanes_beside_one_with_more_consumers_stay_as_they_are(parts: Sequence[Part]) -> None:
    small = replace(ONE, max_bytes=100)
    alone, beside = replayed(parts, [ONE, small]), replayed(parts, [ONE, replace(ONE, readers=2), small])
    for number in range(len(parts)):
        assert [of_partition(beside, number, lane) for lane in (0, 2)] == [
            of_partition(alone, number, lane) for lane in (0, 1)
        ]
    assert beside.lanes["requests"][[0, 2]].tolist() == alone.lanes["requests"].tolist()
    assert beside.given_up_backlogs.tolist() == alone.given_up_backlogs.tolist()
    assert beside.captured.turns.tolist() == alone.captured.turns.tolist()


def test_twice_the_consumers_read_a_backlog_in_half_the_time_where_the_application_is_slow() -> None:
    parts = [Part([100] * 40, max_bytes=100, records=10)] * 2
    slow = Client(max_bytes=200, record_us=1.0 * MS)
    out = replayed(parts, [slow, replace(slow, readers=2)])
    one, two = out.catch_up_us.max(axis=0).tolist()
    assert 0.45 * one <= two <= 0.55 * one


def test_consumers_without_a_partition_request_nothing() -> None:
    out = replayed([Part([100] * 5)], [ONE, replace(ONE, readers=3)])
    assert of_partition(out, 0, 1) == of_partition(out, 0, 0)
    assert out.lanes["requests"].tolist() == [out.lanes["requests"][0]] * 2


def test_consumers_of_one_name_share_its_quota() -> None:
    """What a quota gives is the same however many consumers there are, so none of them reads its backlog sooner."""
    parts = [Part([1000] * 60, max_bytes=1000)] * 2
    limited = Client(max_bytes=2000, byte_rate=10_000, quota_windows=2, quota_window_ms=1000)
    out = replayed(parts, [Client(max_bytes=2000), limited, replace(limited, readers=2)])
    _, one, two = out.catch_up_us.max(axis=0).tolist()
    assert two == pytest.approx(one, rel=0.15)
    assert two > 5_000 * MS


def test_readers_replayed_together_are_each_dealt_among_as_many_consumers() -> None:
    clients = [ONE, replace(ONE, readers=2)]
    of_parts = [[Part([100] * 8, records=3)] * 3, [Part([100] * 5, records=3)] * 2]
    alone = [replayed(parts, clients) for parts in of_parts]
    readers = list[ReaderInLanes]()
    for parts in of_parts:
        unit = unit_of(parts, [1], 1, PACE)
        readers.append(ReaderInLanes(unit, rules_of(clients, 1, True), new_outcome(unit, len(parts), 2)))
    replay_by_clients_clock(readers)
    for out, reader in zip(alone, readers, strict=True):
        assert np.array_equal(out.catch_up_us, reader.outcome.catch_up_us)
        assert out.lanes["requests"].tolist() == reader.outcome.lanes["requests"].tolist()
        assert np.array_equal(out.timeline.held, reader.outcome.timeline.held)


def test_a_share_wants_only_its_own_partitions_and_has_no_backlog_of_others() -> None:
    unit = unit_of([Part([100] * 3), Part([100] * 2, node=1), Part([100], node=1, leaves=5 * MS)], [1], 1, PACE)
    share = share_of_unit(unit, 2, 1)
    assert share.changes["partition"].tolist() == [-1, 1]
    assert share.nodes[["first_change", "end_change"]].tolist() == [(0, 1), (1, 2)]
    assert (share.partitions["backlog_end"] - share.partitions["start_batch"]).tolist() == [0, 2, 0]
    out = replayed([Part([100]), Part([], node=1)], [ONE, replace(ONE, readers=2)])
    assert out.catch_up_us[1].tolist() == [NO_BACKLOG, NO_BACKLOG]


def test_partitions_are_dealt_by_topic_and_number_whichever_broker_has_them() -> None:
    keys = ["1\0orders\x0010", "2\0orders\x009", "1\0clicks\x000", "3\0orders\x0010"]
    assert places_in_deal(keys).tolist() == [2, 1, 0, 2]


@pytest.mark.parametrize("lane", [{}, {"consumer.fetch.max.bytes": 100}])
def test_only_consumers_are_multiplied_and_only_in_lanes_that_say_so(lane: dict[str, int]) -> None:
    more = lane | {"traffic.consumers": 3}
    lanes = fetch_lanes(LaneSettings(("captured", "a", "b"), ({}, lane, more), {"traffic.consumers": 1}))
    assert lanes.client("consumer")["readers"].tolist() == [AS_CAPTURED, AS_CAPTURED, 3]
    assert lanes.client("follower")["readers"].tolist() == [AS_CAPTURED] * 3
