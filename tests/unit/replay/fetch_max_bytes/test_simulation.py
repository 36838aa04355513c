"""In closed loop a client goes on from what it was given, by Kafka's own rules."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.replay.fetch_max_bytes.closed_units import MOST, MS, PACE, Client, Part, replayed, turns
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.state import NO_BACKLOG
from udfs.replay.fetch_max_bytes.closed_loop.timeline import BUCKETS, TICKS
from udfs.replay.fetch_max_bytes.settings import (
    CLIENT_ORDER,
    FIRST_EMPTY_ORDER,
    FIXED_ORDER,
    JAVA_3,
    JAVA_4,
    LIBRDKAFKA,
    REPLICA_FETCHER,
    SHUFFLED_ORDER,
)

TWO_FIT = Client(max_bytes=200)
FOUR = [Part([100] * 10, max_bytes=100)] * 4
"""KIP-74's own example: A, B, C and D, and a response that A and B fill."""


@pytest.mark.parametrize("order", [CLIENT_ORDER, FIRST_EMPTY_ORDER])
def test_a_and_b_starve_c_and_d_in_a_fixed_order_and_not_in_turn(order: int) -> None:
    """kips/kip-74.txt: "client won't get any messages from C and D until it catches up with A and B"."""
    fixed = replayed(FOUR, [replace(TWO_FIT, order=FIXED_ORDER)])
    assert turns(fixed) == [0, 1] * 10 + [2, 3] * 10
    in_turn = replayed(FOUR, [replace(TWO_FIT, order=order)], opens=False)
    assert turns(in_turn) == [0, 1, 2, 3] * 10
    assert fixed.sums.partitions["longest_requests"][:4, 0].tolist() == [0, 0, 10, 10]
    assert in_turn.sums.partitions["longest_requests"][:4, 0].tolist() == [1, 1, 1, 1]


def test_shuffling_starves_nobody_and_is_the_same_for_the_same_seed() -> None:
    shuffled = replayed(FOUR, [replace(TWO_FIT, order=SHUFFLED_ORDER)])
    assert set(turns(shuffled)[:12]) == {0, 1, 2, 3}
    assert turns(shuffled) == turns(replayed(FOUR, [replace(TWO_FIT, order=SHUFFLED_ORDER)]))
    assert turns(shuffled) != turns(replayed(FOUR, [replace(TWO_FIT, order=SHUFFLED_ORDER, seed=8)]))


def test_the_response_that_opens_a_session_moves_nothing_in_it() -> None:
    """FetchSession: full responses do not rotate; in the shared capture a Java consumer fetched 0; 0, 3; then 7."""
    assert turns(replayed(FOUR[:3], [TWO_FIT]))[:8] == [0, 1, 0, 1, 2, 0, 1, 2]
    assert turns(replayed(FOUR[:3], [TWO_FIT], opens=False))[:8] == [0, 1, 2, 0, 1, 2, 0, 1]


def test_librdkafka_begins_with_the_next_partition_whatever_it_received() -> None:
    one_fits = Client(max_bytes=100, profile=LIBRDKAFKA, in_session=False)
    parts = [Part([100] * 4), Part([]), Part([100] * 4)]
    assert turns(replayed(parts, [one_fits])) == [0, 2, 2, 0, 2, 2, 0, 0]


def test_bytes_that_are_cut_off_are_fetched_again() -> None:
    """Seen on a live broker: 42,884 B of batches in three fetches of 20000, 20000 and 10139 B."""
    out = replayed([Part([16_372, 16_373, 10_139], max_bytes=20_000)], [Client()])
    assert (out.sums.partitions["returned"][0, 0], out.sums.partitions["cut_tail"][0, 0]) == (50_139, 7255)
    assert (out.sums.partitions["requests"][0, 0], out.captured.pieces.sum()) == (3, 0)


def test_multiple_records_come_as_in_fetch_request_max_bytes_test() -> None:
    """FetchRequestMaxBytesTest: values of 1, 500, 1040, 500 and 50 B come as {1, 500}, {1040}, {500, 50}."""
    sizes = [69, 569, 1110, 569, 118]
    out = replayed([Part(sizes)], [Client(max_bytes=1024)])
    assert (out.lanes["requests"][0], out.sums.partitions["overrides"][0, 0]) == (3, 1)
    assert out.sums.partitions["returned"][0, 0] == 1024 + 1110 + (569 + 118)
    assert out.sums.partitions["cut_tail"][0, 0] == 1024 - (69 + 569)


def test_order_and_size_limits_are_respected_as_in_fetch_request_test() -> None:
    """FetchRequestTest.testBrokerRespectsPartitionsOrderAndSizeLimits: limits 800 and 190, batches of 191 and 801 B."""
    small = [Part([75] * 9, max_bytes=190) for _ in range(28)]
    over_partition, over_response = Part([191], max_bytes=190), Part([801], max_bytes=190)
    client = Client(max_bytes=800, order=FIXED_ORDER)
    last = replayed([*small, over_partition, over_response], [client])
    assert turns(last)[:5] == [0, 1, 2, 3, 0]
    assert turns(last)[-2:] == [28, 29]
    first = replayed([over_partition, over_response, *small], [client])
    assert turns(first)[:5] == [0, 2, 3, 4, 1]
    assert first.sums.responses["largest"][0] == 801
    assert first.sums.partitions["overrides"][:2, 0].tolist() == [1, 1]


def test_every_fetch_makes_progress_where_the_limits_are_below_a_batch() -> None:
    out = replayed([Part([500, 500]), Part([500])], [Client(max_bytes=0, partition_max_bytes=0)])
    assert (out.sums.partitions["returned"][:2, 0].tolist(), out.lanes["requests"][0]) == ([1000, 500], 3)


def test_catch_up_is_the_time_until_the_backlog_is_read() -> None:
    """A fetch takes 1 ms to be answered here, and the next is sent 1 ms after the response."""
    parts = [Part([100] * 3, max_bytes=100), Part([100]), Part([]), Part([100], visible=[2 * MS])]
    out = replayed(parts, [Client()], horizon=6 * MS)
    assert out.catch_up_us[:, 0].tolist() == [5 * MS, 1 * MS, NO_BACKLOG, NO_BACKLOG]


def test_a_fetch_without_records_waits_for_the_first_append() -> None:
    out = replayed([Part([100], visible=[50 * MS + 1])], [Client()], horizon=50 * MS)
    assert (out.lanes["requests"][0], out.captured.nodes["requests"][0]) == (1, 1)
    assert out.sums.partitions["returned"][0, 0] == 100


def test_a_fetch_waits_no_longer_than_the_longest_wait() -> None:
    clients = [Client(max_wait_ms=100), Client(max_wait_ms=10)]
    out = replayed([Part([])], clients, horizon=1020 * MS, pace=replace(PACE, late=1.0 * MS))
    assert out.lanes["requests"].tolist() == [10, 85]


def test_records_that_a_fetch_waits_for_come_when_a_captured_response_had_them() -> None:
    """That time includes the time of the answer. Records that are there at the request come 20 ms later."""
    part = Part([100] * 3, visible=[1, 100 * MS, 160 * MS])
    out = replayed([part], [Client()], horizon=160 * MS, pace=replace(PACE, answer=20.0 * MS))
    assert out.responses["arrived_at"][0, :3].tolist() == [20 * MS + 1, 100 * MS, 160 * MS]


def test_no_response_comes_sooner_than_an_answer_takes_and_it_has_all_batches_until_then() -> None:
    """The second fetch goes out at 21 ms. Its response at 41 ms has all batches that came before, and no later one."""
    part = Part([100] * 4, visible=[1, 25 * MS, 30 * MS, 43 * MS])
    out = replayed([part], [Client()], horizon=43 * MS, pace=replace(PACE, answer=20.0 * MS))
    assert out.responses["arrived_at"][0, :3].tolist() == [20 * MS + 1, 41 * MS + 1, 62 * MS + 1]
    assert out.responses["size"][0, :3].tolist() == [100, 200, 100]


def test_a_wait_in_vain_takes_as_long_as_it_did_in_the_capture() -> None:
    slow = replace(PACE, answer=20.0 * MS, late=7.0 * MS)
    out = replayed([Part([])], [Client(max_wait_ms=100)], horizon=100 * MS, pace=slow)
    assert out.responses["arrived_at"][0, 0] == 107 * MS + 1


def test_fewer_bytes_than_min_bytes_come_as_late_as_the_response_to_a_wait_in_vain() -> None:
    slow = replace(PACE, answer=20.0 * MS, late=7.0 * MS)
    out = replayed([Part([100])], [Client(min_bytes=101, max_wait_ms=100)], horizon=100 * MS, pace=slow)
    assert out.responses["arrived_at"][0, 0] == 107 * MS + 1


def test_a_parked_fetch_counts_bytes_up_to_each_partitions_limit_and_ignores_its_own() -> None:
    """DelayedFetch.tryComplete ignores the request's limit. Then readFromLog runs again with that limit."""
    arrivals = [10 * MS, 20 * MS, 30 * MS]
    client = Client(min_bytes=150, max_bytes=1000)
    out = replayed([Part([100] * 3, visible=arrivals)], [client, replace(client, max_bytes=100)], horizon=30 * MS)
    assert out.sums.responses["largest"].tolist() == [200, 100]
    assert out.lanes["requests"].tolist() == [2, 3]


def test_min_bytes_is_no_more_than_the_response_may_have() -> None:
    out = replayed([Part([100, 100])], [Client(min_bytes=MOST, max_bytes=100)])
    assert out.sums.partitions["longest_us"][0, 0] == 0
    assert out.catch_up_us[0, 0] == 3 * MS


def test_records_are_worked_on_before_the_next_fetch_or_beside_it() -> None:
    """Of 25 records in polls of 10, the last 5 are worked on while the next fetch is under way.

    A poll() that returns max.poll.records does not see that none are left (CompletedFetch.fetchRecords): the next does.
    """
    parts = [Part([100, 100], records=25, max_bytes=100)]
    client = Client(record_us=100.0, max_poll_records=10)
    beside = replace(client, overlaps=True)
    polls = [replace(beside, max_poll_records=most) for most in (10, 25, 26)]
    out = replayed(parts, [client, *polls])
    before = 1 * MS + 1 * MS  # the response, and the time until the client turns to it
    assert out.catch_up_us[0].tolist() == [before + wait + 1 * MS for wait in (2500, 2000, 2500, 0)]


def test_before_kafka_4_a_fetch_leaves_out_partitions_whose_records_are_not_taken_yet() -> None:
    """KAFKA-17182: a fetch leaves out partitions with buffered records, and may wait for records of the others."""
    parts = [Part([100] * 3, records=100, max_bytes=100), Part([100], visible=[30 * MS])]
    client = Client(record_us=100.0, max_poll_records=60, overlaps=True)
    out = replayed(parts, [client, replace(client, profile=JAVA_3)], horizon=30 * MS)
    assert out.sums.partitions["requests"][0].tolist() == [4, 3]
    assert out.sums.partitions["requests"][1, 1] > out.sums.partitions["requests"][0, 1]


@pytest.mark.parametrize("overlaps", [False, True])
def test_before_kafka_4_too_one_fetch_asks_for_all_partitions_that_one_poll_takes(overlaps: bool) -> None:
    """KafkaConsumer.poll: records leave the buffer, and then fetches are sent.

    A fetch before that poll() would ask only for the partition without records. A fetch during the work on the first
    partition would ask only for that partition.
    """
    parts = [*(Part([100] * 3, records=100, max_bytes=100) for _ in range(2)), Part([])]
    out = replayed(parts, [Client(record_us=100.0, overlaps=overlaps, profile=JAVA_3)])
    assert out.lanes["requests"][0] == 3
    assert out.sums.partitions["requests"][:, 0].tolist() == [3, 3, 3]


@pytest.mark.parametrize("profile", [JAVA_3, JAVA_4])
def test_no_fetch_is_sent_between_two_polls(profile: int) -> None:
    """250 records are three polls, 10 ms apart; a broker that has nothing is asked in each, and before the first."""
    parts = [Part([100], records=250), Part([], node=1)]
    client = Client(record_us=100.0, max_poll_records=100, max_wait_ms=1, overlaps=True, profile=profile)
    out = replayed(parts, [client], horizon=25 * MS)
    assert out.sums.partitions["requests"][1, 0] == 4


def test_a_partition_is_asked_for_from_when_it_joins_until_it_leaves() -> None:
    parts = [Part([100] * 20, max_bytes=100), Part([100] * 20, max_bytes=100, joins=10 * MS, leaves=20 * MS)]
    out = replayed(parts, [Client(profile=REPLICA_FETCHER)])
    assert out.sums.partitions["requests"][:2, 0].tolist() == [20, 5]
    assert out.catch_up_us[1, 0] == NEVER
    assert out.lanes["is_finished"][0] == 1


def test_a_lane_that_never_ends_is_cut_off_and_says_so() -> None:
    idle = replayed([Part([])], [Client(max_wait_ms=0)], horizon=10**12, pace=replace(PACE, gap=0.0, answer=0.0))
    assert (idle.lanes["requests"][0], idle.lanes["is_finished"][0]) == (100_000, 0)


def test_held_records_are_let_go_when_they_are_taken() -> None:
    parts = [Part([100] * 2, records=10, max_bytes=100)]
    out = replayed(parts, [Client(record_us=1000.0)], horizon=100 * MS)
    held = out.timeline.held[0]
    tick = int(out.timeline.lanes["width"][0]) * BUCKETS // TICKS
    assert held.max() == 100
    assert np.count_nonzero(held) * tick == pytest.approx(2 * 11 * MS, abs=4 * tick)


def test_served_bytes_over_time_add_up_to_all_bytes_and_lag_ends_at_0() -> None:
    out = replayed(FOUR, [TWO_FIT, replace(TWO_FIT, max_bytes=100)], horizon=1)
    assert out.timeline.buckets["bytes"].sum(axis=(1, 2)).tolist() == [4000, 4000]
    assert out.timeline.buckets["lag"].max(axis=(1, 2)).tolist() != [0, 0]
    assert out.timeline.buckets["lag"][:, :, -1].tolist() == [[0] * 4] * 2


clients = st.builds(
    Client,
    max_bytes=st.integers(0, 500),
    min_bytes=st.integers(0, 300),
    max_wait_ms=st.integers(1, 20),
    max_poll_records=st.integers(1, 5),
    overlaps=st.booleans(),
    profile=st.sampled_from([0, JAVA_3, LIBRDKAFKA, REPLICA_FETCHER]),
    order=st.sampled_from([CLIENT_ORDER, FIXED_ORDER, FIRST_EMPTY_ORDER, SHUFFLED_ORDER]),
    in_session=st.booleans(),
    record_us=st.sampled_from([0.0, 300.0]),
)


@st.composite
def one_part(draw: st.DrawFn) -> Part:
    sizes = draw(st.lists(st.integers(1, 200), max_size=6))
    times = sorted(draw(st.lists(st.integers(1, 40 * MS), min_size=len(sizes), max_size=len(sizes))))
    return Part(sizes, times, draw(st.integers(0, 300)), draw(st.sampled_from([1, 1, 7 * MS])))


part_lists = st.lists(one_part(), min_size=1, max_size=5)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(part_lists, st.lists(clients, min_size=1, max_size=4))
def test_every_lane_reads_everything_in_order_and_as_if_it_were_alone(parts: list[Part], lanes: list[Client]) -> None:
    together = replayed(parts, lanes, horizon=50 * MS)
    there = [sum(part.sizes) for part in parts]
    assert together.lanes["is_finished"].tolist() == [1] * len(lanes)
    for lane, client in enumerate(lanes):
        alone = replayed(parts, [client], horizon=50 * MS)
        assert alone.sums.partitions[:, 0].tolist() == together.sums.partitions[:, lane].tolist()
        assert alone.catch_up_us[:, 0].tolist() == together.catch_up_us[:, lane].tolist()
        read = (
            together.sums.partitions["returned"][: len(parts), lane]
            - together.sums.partitions["cut_tail"][: len(parts), lane]
        )
        assert read.tolist() == there
        first = max((part.sizes[0] for part in parts if part.sizes), default=0)
        largest = max([first, client.max_bytes, *(max(part.sizes, default=0) for part in parts)])
        assert together.sums.responses["largest"][lane] <= largest


def test_a_grid_of_32_lanes_is_one_pass_over_the_unit() -> None:
    chance = random.Random(3)  # noqa: S311  (not for secrets)
    lanes = [Client(max_bytes=chance.randrange(100, 900)) for _ in range(32)]
    out = replayed(FOUR, lanes)
    assert out.sums.partitions["returned"].sum(axis=0).min() >= 4000
    assert out.lanes["requests"].tolist() == [replayed(FOUR, [lane]).lanes["requests"][0] for lane in lanes]
