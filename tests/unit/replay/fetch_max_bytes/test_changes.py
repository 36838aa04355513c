"""Readers that change during the capture: their partitions come and go, they seek, and they open new sessions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.replay.fetch_max_bytes.closed_units import MS, Client, Part, Times, replayed, turns
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.by_node import NodeReads
from udfs.replay.fetch_max_bytes.closed_loop.changes import (
    Destinations,
    ReaderFetches,
    changes_of_nodes,
    stretches_beyond_bound,
)
from udfs.replay.fetch_max_bytes.closed_loop.events import ANSWERED_FETCH, BOUND, FETCHED_PARTITION, MOVE, SERVING
from udfs.replay.fetch_max_bytes.closed_loop.state import GO_ON, LEAVE
from udfs.replay.fetch_max_bytes.settings import JAVA_3, JAVA_4, LIBRDKAFKA
from udfs.replay.shared.lanes import AS_CAPTURED

TEN = Part([100] * 10, max_bytes=100)
"""It takes ten fetches, one every 2 ms: each is answered after 1 ms, and the next one goes out 1 ms later."""


def test_after_a_seek_every_lane_reads_from_the_same_offset() -> None:
    back = replace(TEN, moves=[(10 * MS, 0)])
    out = replayed([back], [Client(), Client(partition_max_bytes=200)], horizon=60 * MS)
    assert out.sums.partitions["returned"][0].tolist() == [500 + 1000, 1000 + 1000]
    assert out.captured.positions.tolist()[-1] == 5
    forward = replayed([replace(TEN, moves=[(10 * MS, 8)])], [Client()], horizon=60 * MS)
    assert forward.sums.partitions["returned"][0, 0] == 500 + 200


def test_a_partition_that_comes_back_goes_on_where_the_lane_had_read_to() -> None:
    away = replace(TEN, moves=[(10 * MS, LEAVE), (50 * MS, GO_ON)])
    other = replace(TEN, sizes=[100] * 60)
    out = replayed([away, other], [Client(), Client(partition_max_bytes=200)], horizon=60 * MS)
    assert out.sums.partitions["returned"][:2].tolist() == [[1000, 1000], [6000, 6000]]
    assert out.catch_up_us[0].tolist() == [50 * MS + 4 * 2 * MS + 1 * MS, 9 * MS]


def test_records_that_are_under_way_when_their_partition_is_given_up_are_read_again() -> None:
    """Fetcher drops the records of a partition that is not assigned any more, or whose position has changed."""
    late = Part([100], visible=[20 * MS], moves=[(15 * MS, LEAVE), (30 * MS, GO_ON)])
    out = replayed([late], [Client()], horizon=40 * MS)
    assert (out.sums.partitions["returned"][0, 0], out.sums.partitions["cut_tail"][0, 0]) == (200, 0)


@pytest.mark.parametrize(
    ("reopens", "expected"), [([], [0, 1, 0, 1, 2, 0, 1, 2]), ([2 * MS], [0, 1, 2, 0, 2, 0, 1, 2])]
)
def test_a_session_that_opens_anew_has_the_clients_order(reopens: list[int], expected: list[int]) -> None:
    """After the first response the client has moved 0 and 1 to the end, and its session has not."""
    out = replayed([TEN] * 3, [Client(max_bytes=200)], reopens=reopens)
    assert turns(out)[:8] == expected


def test_one_application_takes_the_records_of_all_brokers_in_turn() -> None:
    """Two brokers send 10 records each, at 1 ms a record. One process needs twice as long for them. The 1 ms before it
    turns to the second 10 passes while it works on the first 10.
    """
    parts = [Part([100] * 2, records=10, max_bytes=100, node=node) for node in (0, 1)]
    client = Client(record_us=1.0 * MS)
    one = replayed(parts, [client, replace(client, profile=LIBRDKAFKA)])
    two = replayed(parts, [client], shares=False)
    fetch = 1 * MS
    assert one.catch_up_us[:, 0].tolist() == [fetch + 11 * MS + fetch, fetch + 21 * MS + fetch]
    assert one.catch_up_us[:, 1].tolist() == two.catch_up_us[:, 0].tolist() == [fetch + 11 * MS + fetch] * 2


def test_a_poll_returns_buffered_records_of_all_brokers_up_to_max_poll_records() -> None:
    """FetchCollector.collectFetch: the second poll() has the rest of the first response and all of the second."""
    parts = [Part([100, 100], records=15, max_bytes=100), Part([100, 100], records=5, max_bytes=100, node=1)]
    clients = [Client(record_us=1.0 * MS, overlaps=True, max_poll_records=most) for most in (11, 21, 6, 10)]
    out = replayed(parts, clients)
    ready = 1 * MS + 1 * MS
    # A broker is asked again by the poll() that empties its buffer: after 11 of the 20 records, after none, or after 12
    # and 18. Of two polls with 10 records each, the second may return no more, so only a third sees that all are taken.
    assert out.catch_up_us[0].tolist() == [ready + wait * MS + 1 * MS for wait in (11, 0, 12, 10)]
    assert out.catch_up_us[1].tolist() == [ready + wait * MS + 1 * MS for wait in (11, 0, 18, 20)]


def test_each_poll_takes_the_application_its_own_time_besides_the_work_on_its_records() -> None:
    """30 records at 1 ms each, in polls of at most 10, 15 or 31 records at 2 ms a poll()."""
    parts, taking = [Part([100, 100], records=30, max_bytes=100)], [(60, 60.0 * MS)]
    clients = [Client(overlaps=True, record_us=AS_CAPTURED, max_poll_records=most) for most in (10, 15, 31)]
    out = replayed(parts, clients, pace=Times(poll=2.0 * MS, taking=taking))
    ready = 1 * MS + 1 * MS
    # The poll() that empties the buffer is the fourth, the third, and, where it has room for more, the first.
    assert out.catch_up_us[0].tolist() == [ready + wait * MS + 1 * MS for wait in (30 + 3 * 2, 30 + 2 * 2, 0)]


def test_only_the_second_fetch_of_a_client_that_starts_slowly_is_late() -> None:
    fast, slow = (replayed([TEN], [Client()], pace=Times(start=start)) for start in (0.0, 30.0 * MS))
    assert slow.catch_up_us[0, 0] == fast.catch_up_us[0, 0] + 30 * MS


@pytest.mark.parametrize("profile", [JAVA_3, JAVA_4])
def test_a_broker_is_asked_again_when_poll_is_called_and_not_when_it_answers(profile: int) -> None:
    """Fetcher.sendFetches is called by poll() alone: here after each 10 of broker 0's 30 records, at 1 ms a record."""
    parts = [Part([100], records=30), Part([100], visible=[60 * MS], node=1)]
    client = Client(record_us=1.0 * MS, max_poll_records=10, overlaps=True, max_wait_ms=5, profile=profile)
    out = replayed(parts, [client], horizon=60 * MS)
    first_poll = 1 + 1 * MS + 1 * MS  # the response, and the time until the client turns to it
    responses = out.responses[0]
    of_node = (responses["node"] == 1) & (responses["requested_at"] > 0)
    assert responses["requested_at"][of_node][:3].tolist() == [1, first_poll + 10 * MS, first_poll + 20 * MS]


@pytest.mark.parametrize("profile", [JAVA_3, JAVA_4])
def test_a_broker_that_waits_does_not_slow_down_fetches_to_another(profile: int) -> None:
    parts = [Part([]), Part([100] * 20, max_bytes=100, node=1)]
    out = replayed(parts, [Client(profile=profile)])
    assert out.catch_up_us[1, 0] == 20 * 2 * MS - 1 * MS


def test_a_read_ends_with_the_segment() -> None:
    """LogSegment.read: the limit is 300 B, and segments have two batches or one."""
    out = replayed([Part([100] * 5, max_bytes=300, segments=[2, 4])], [Client()])
    assert out.lanes["requests"][0] == 3
    assert out.sums.responses["largest"][0] == 200


def test_a_parked_fetch_is_answered_when_the_log_goes_on_in_another_segment() -> None:
    """DelayedFetch.tryComplete, case C: the bound is on a newer segment than the fetch offset."""
    part = Part([100, 100], visible=[1, 50 * MS + 1], segments=[1])
    out = replayed([part], [Client(min_bytes=1000, max_wait_ms=500)], horizon=60 * MS)
    assert out.catch_up_us[0, 0] == 50 * MS
    assert out.sums.partitions["returned"][0, 0] == 200


def test_before_kip_74_a_first_batch_above_the_limit_is_cut_and_never_read() -> None:
    """FetchParams.hardMaxBytesLimit: Fetch 0 to 2. A lane that sets fetch.max.bytes has a client that knows it."""
    old = Client(is_hard=True, partition_max_bytes=150, in_session=False)
    out = replayed([Part([100, 200]), Part([100])], [old, replace(old, is_hard=False)])
    assert out.lanes["is_finished"].tolist() == [0, 1]
    assert out.catch_up_us[:, 0].tolist() == [NEVER, 1 * MS]
    assert out.sums.partitions["overrides"][0].tolist() == [0, 1]


def changes_of_fetches(fetches: int, read_in: list[int], *, leaves_nothing_out: bool) -> Records:
    """The changes of a partition without records that some of the fetches ask for. There is one fetch every 10 ms."""
    before = [NONE, *read_in[:-1]]
    moves = new_records(MOVE, len(read_in), fetch=read_in, before=before, fetch_offset=7)
    partitions = new_records(FETCHED_PARTITION, 1, last_fetch=read_in[-1])
    return changes_of_moves(fetches, partitions, moves, leaves_nothing_out=leaves_nothing_out)


def changes_of_moves(fetches: int, partitions: Records, moves: Records, *, leaves_nothing_out: bool) -> Records:
    """The changes of partitions without records, with one fetch every 10 ms."""
    request = 10 * MS * np.arange(fetches)
    reads = NodeReads(
        partitions=partitions,
        node=np.zeros(len(partitions), np.int64),
        fetches=np.zeros(0, ANSWERED_FETCH),
        servings=np.zeros(0, SERVING),
        moves=moves,
        bounds=np.zeros(0, BOUND),
        first_stay=np.arange(len(partitions)),
    )
    none = np.zeros(fetches, np.int64)
    times = ReaderFetches(
        request=request,
        response=request + 2 * MS,
        returned=none,
        node=none,
        first=none,
        last=none + fetches - 1,
        opens_session=none.astype(np.bool_),
        is_throttled=none.astype(np.bool_),
        is_beyond_bound=none.astype(np.bool_),
        horizon=request[-1:] + 2 * MS,
    )
    batches = np.full(len(moves), 4)
    stays = np.full(len(partitions), NEVER)
    leaves = np.full(1, leaves_nothing_out)
    return changes_of_nodes(reads, times, Destinations(batches, batches), stays, leaves, np.zeros(0, np.int64)).changes


def test_a_stretch_beyond_a_bound_lasts_until_the_nodes_next_fetch_or_a_silence() -> None:
    """Fetches of two nodes, 10 ms or 1.5 s apart, each of which takes 2 ms."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        count, is_beyond = int(rng.integers(1, 12)), rng.random(12) < 0.6
        node = (np.arange(count) >= rng.integers(0, 12)).astype(np.int64)
        request = np.cumsum(rng.choice([10 * MS, 1500 * MS], count, p=[0.8, 0.2]))
        first, last = (np.searchsorted(node, node, side=side) for side in ("left", "right"))
        none = np.zeros(count, np.bool_)
        fetches = ReaderFetches(
            request, request + 2 * MS, node, node, first, last - 1, none, none, is_beyond[:count], request[-1:]
        )
        expected, stretch = list[tuple[int, int, int]](), list[int]()
        for number in range(count):
            stretch += [number] if is_beyond[number] else []
            ends = number + 1 == last[number] or request[number + 1] - request[number] > 1000 * MS
            if stretch and (ends or not is_beyond[number + 1]):
                until = request[number] + 2 * MS + 1 if ends else request[number + 1]
                expected.append((stretch[0], until, (until - request[stretch[0]]) // len(stretch)))
                stretch = []
        assert list(zip(*(of.tolist() for of in stretches_beyond_bound(fetches)), strict=True)) == expected


def test_beyond_a_bound_a_consumer_fetches_again_and_again_in_every_lane() -> None:
    """Until 50 ms it sends one every 2 ms, or every 5 ms as captured. The one after that waits for 500 ms or 5 s."""
    nothing, patient = Part([]), Client(max_wait_ms=5000)
    assert replayed([nothing], [Client(), patient], horizon=60 * MS).lanes["requests"].tolist() == [1, 1]
    for every_ms, fetches in ((1, 25), (5, 10)):
        out = replayed([nothing], [Client(), patient], horizon=60 * MS, beyond=[(1, 50 * MS, every_ms * MS)])
        assert out.lanes["requests"].tolist() == [fetches + 1, fetches + 1]


def test_one_fetch_without_a_partition_gives_it_up_only_if_the_client_leaves_no_wanted_one_out() -> None:
    """Other clients leave out partitions with buffered records. Fetches 0 and 3 ask for the partition."""
    surely = changes_of_fetches(4, [0, 3], leaves_nothing_out=True)
    assert surely["time"].tolist() == [0, 10 * MS, 20 * MS + 1]
    assert surely["to"].tolist() == [4, LEAVE, GO_ON]
    assert surely["until"][1] == 30 * MS, "its records are gone when the client asks again"
    assert changes_of_fetches(4, [0, 3], leaves_nothing_out=False)["to"].tolist() == [4]


def test_partitions_that_join_and_that_come_back_are_asked_for_in_the_order_of_their_fetch() -> None:
    """Fetch 0 asks for partition 0, and fetch 3 for partitions 0 and 1, as after a rebalance."""
    partitions = new_records(FETCHED_PARTITION, 2, last_fetch=3, since=np.array([0, 20 * MS + 1]))
    moves = new_records(MOVE, 3, partition=[0, 0, 1], fetch=[0, 3, 3], before=[NONE, 0, NONE], fetch_offset=7)
    found = changes_of_moves(4, partitions, moves, leaves_nothing_out=True)
    assert found["partition"].tolist() == [0, 0, 0, 1]
    assert found["to"].tolist() == [4, LEAVE, GO_ON, 4]


def test_nothing_shows_when_buffered_records_of_a_partition_given_up_for_good_are_gone() -> None:
    found = changes_of_fetches(3, [0], leaves_nothing_out=True)
    assert (found["to"].tolist(), found["until"].tolist()) == ([4, LEAVE], [0, NEVER])
