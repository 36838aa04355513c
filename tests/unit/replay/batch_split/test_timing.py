"""The times of a captured producer, as far as its requests and records show them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from schemas.tables.steps import SENT
from tests.unit.replay.batch_split.producers import Row, sent, sent_batch
from udfs.columns.arrays import Records
from udfs.columns.sentinels import NONE
from udfs.replay.batch_split.estimate import INITIAL_RATIO, record_bytes
from udfs.replay.batch_split.events import Sent, read_sent
from udfs.replay.batch_split.possible_estimates.events import groups_of_sendings
from udfs.replay.batch_split.possible_estimates.order import CLOSE, SPLIT, no_order, times_in
from udfs.replay.batch_split.possible_estimates.state import NO_ESTIMATE
from udfs.replay.batch_split.timing import BYTES_SHARE, soonest_times, timed_batches

LINGER = 100_000  # us


def read(*rows: Row) -> Sent:
    return read_sent(sent_batch(rows), {}, {})


def batches_in(order: Records, found: Sent) -> Records:
    """The captured batches at the times that an order of closes and splits gives."""
    return timed_batches(found, times_in(order, found), LINGER)


def test_a_batch_shows_by_which_split_it_was_made() -> None:
    """A refused batch comes back whole, for batch.size has room for it, then in halves, one of them in halves again."""
    rows = [(0, 8, 9, 10), (0, 8, 11, 10), (0, 4, 13, 10), (0, 2, 15, 0), (2, 2, 17, 0), (4, 4, 19, 0), (8, 8, 21, 0)]
    found = read(*(sent(first, n, 250 * n, request, error) for first, n, request, error in rows))
    assert found.sendings["made_by"].tolist() == [NONE, 0, 1, 2, 2, 1, NONE]


def test_a_batch_that_comes_back_whole_from_a_split_is_no_retry() -> None:
    rows = (0, 9, 10), (0, 11, 0), (8, 18, 7), (8, 20, 0)
    found = read(*(sent(first, 8, 2000, request, error) for first, request, error in rows))
    assert batches_in(no_order(4), found)["retries"].tolist() == [0, 1]


def test_a_split_of_which_no_part_was_captured_makes_no_batch_close_earlier() -> None:
    """In this order the split comes after the second batch's close. It may have been at any time after the response at
    9.5 ms.
    """
    found = read(sent(0, 8, 2000, 9, 10), sent(8, 8, 800, 18, 0))
    order = no_order(2)
    order["rank"][CLOSE, 0], order["rank"][CLOSE, 1], order["rank"][SPLIT, 0] = 0, 1, 2
    assert times_in(order, found).close.tolist() == [9000, 18_000]


@pytest.mark.parametrize(("request_us", "filled_by"), [(7999, NONE), (8000, 8)], ids=["before its ms", "as it begins"])
def test_a_batch_was_sent_before_it_was_full_if_its_request_is_before_the_ms_of_the_next_record(
    request_us: int, filled_by: int
) -> None:
    """In the order given here it is closed before that record, but what counts is whether the record can have come
    before the request.
    """
    found = read(sent(0, 8, 800, 9, 0, request_time=request_us), sent(8, 8, 800, 18, 0))
    order = no_order(2)
    order[CLOSE, 0] = (8, 0, 0)
    assert batches_in(order, found)["filled_by"][0] == filled_by


def test_the_delay_of_a_batch_that_waited_for_parts_counts_from_the_last_part() -> None:
    """It was full at 16 ms. The last part was sent at 49 ms, and the batch at 50."""
    rows = [(0, 8, 9, 10), (0, 4, 10, 0), (4, 4, 49, 0), (8, 8, 50, 0), (16, 8, 60, 0)]
    found = read(*(sent(first, n, 250 * n, request, error) for first, n, request, error in rows))
    batch = batches_in(no_order(5), found)[1]
    assert (batch["delay"], batch["delay_in_turn"], batch["queued_by"]) == (1000, 1000, 0)


def test_the_delay_of_a_batch_that_was_next_before_the_split_includes_its_wait_until_the_split() -> None:
    """It was next at 20 ms. The response came at 20.5 ms, but the client acted on it at 30, and closed nothing before.
    It sent the last part at 49 ms, and this batch at 50.
    """
    rows = [(0, 8, 20, 10), (0, 4, 30, 0), (4, 4, 49, 0), (8, 8, 50, 0), (16, 8, 60, 0)]
    found = read(*(sent(first, n, 250 * n, request, error) for first, n, request, error in rows))
    batch = batches_in(no_order(5), found)[1]
    assert (batch["delay"], batch["delay_in_turn"], batch["queued_by"]) == (30_000 - 20_000 + 1000, 1000, 0)


def test_a_record_that_came_after_a_close_was_appended_after_it_even_if_its_own_ms_is_earlier() -> None:
    found, order = read(*(sent(8 * at, 8, 900, request, 0) for at, request in enumerate((30, 35)))), no_order(2)
    order[CLOSE, 0] = (8, 0, 12_345)
    times = times_in(order, found)
    assert times.append[7] < 8000 < 12_345 <= times.close[0] < times.append[8]
    assert (np.diff(times.append) > 0).all()


def test_a_batch_of_one_record_that_was_refused_is_not_split() -> None:
    """It fails (KIP-126): RecordAccumulator.splitAndReenqueue is for batches of more records."""
    found = read(sent(0, 1, 250, 9, 10), sent(1, 2, 500, 12, 10), sent(1, 1, 250, 13, 0), sent(2, 1, 250, 14, 0))
    (group,) = groups_of_sendings(found, LINGER, {})
    assert group.refused.tolist() == [1]


def refused_with_another_in_flight() -> Sent:
    """A batch is refused at 9.5 ms, while another is in flight, and sent again in two parts. A third follows them."""
    rows = [(0, 8, 9, 10), (8, 8, 18, 0), (0, 4, 30, 0), (4, 4, 49, 0), (16, 8, 60, 0)]
    return read(*(sent(first, n, 250 * n, request, error) for first, n, request, error in rows))


def test_a_batch_that_was_in_flight_when_the_parts_came_was_closed_before_the_split() -> None:
    (group,) = groups_of_sendings(refused_with_another_in_flight(), LINGER, {})
    assert group.closed[group.splits["after"]].tolist() == [1]


def test_a_part_was_closed_only_after_the_part_before_it_was_answered() -> None:
    found = refused_with_another_in_flight()
    (group,) = groups_of_sendings(found, LINGER, {})
    earliest = dict(zip(group.closed.tolist(), group.closes["earliest"].tolist(), strict=True))
    assert (earliest[2], earliest[3]) == (18_000, 30_500), "the request before, and the answer to the first part"


def test_times_keep_to_the_order_that_is_known_and_to_what_the_capture_shows() -> None:
    """Three batches are created at 0, 8 and 16 ms. The first is closed with its request or, in the known order, before
    the second is created.
    """
    found = read(*(sent(8 * at, 8, 900, request, 0) for at, request in enumerate((30, 35, 60))))
    at_request, order = times_in(no_order(3), found), no_order(3)
    assert at_request.close.tolist() == [30_000, 35_000, 60_000]
    assert (at_request.append // 1000).tolist() == list(range(24))
    order[CLOSE, 0] = (8, 0, 0)
    in_order = times_in(order, found)
    assert in_order.append[7] < in_order.close[0] < in_order.append[8]
    assert in_order.close[1:].tolist() == [35_000, 60_000]


def test_a_batch_is_closed_with_its_request_or_as_soon_as_it_is_ready_and_next() -> None:
    found, ms, linger = (
        read(*(sent(8 * at, 8, 900, request, 0) for at, request in enumerate((9, 30, 60)))),
        1000,
        10_000,
    )
    times = times_in(no_order(3), found)
    batches, at_once = (timed_batches(found, of, linger) for of in (times, soonest_times(found, times, linger)))
    assert (batches["closed"] // ms).tolist() == [9, 30, 60]
    assert (batches["delay"] // ms).tolist() == [0, 13, 30], "the third was ready at 26 ms, but not next before 30"
    assert batches["round_trip"].tolist() == [500, 500, 500]
    assert (at_once["delay"] // ms).tolist() == [0, 0, 3], "they were ready within the ms 8, 16 and 26"
    answered = (at_once["closed"] + at_once["round_trip"]) // 100
    assert answered.tolist() == [95, 305, 605], "each is answered at its captured time"


def test_a_share_of_the_time_between_two_closes_is_by_bytes_if_the_second_waited_for_the_first() -> None:
    found = read(*(sent(8 * at, 8, 900, request, 0) for at, request in enumerate((9, 30, 60))))
    batches = timed_batches(found, times_in(no_order(3), found), 10_000)
    assert batches["by_bytes"].tolist() == [0, 0, int(BYTES_SHARE * 30_000)], "only the third was ready and waited"
    assert (batches["uncompressed"] > 800).all()


def test_records_without_keys_whose_batches_are_left_with_room_are_placed_by_the_application() -> None:
    """Kafka's partitioner stays with a partition until a batch is closed, or batch.size bytes went there (KIP-794)."""
    begin = [sent(0, 1, 180, 10, 0), sent(5, 3, 420, 20, 0, partition=1)]
    spread = [sent(at, 1, 180, 20, 0, partition=at) for at in (8, 9)]
    together = [sent(12, 2, 300, 20, 0, partition=2)]
    assert [is_sticky(rows) for rows in (begin, [*begin, *together], [*begin, *spread])] == [True, True, False]
    assert is_sticky([*begin, *(row | {SENT.create_times: [11]} for row in spread)])
    assert not is_sticky([*begin, *(row | {SENT.keyless_records: -1} for row in together)])


def is_sticky(rows: Sequence[Row]) -> bool:
    """Whether the built-in partitioner places the records of batches whose records have no keys."""
    keyless = [row | {SENT.keyless_records: row[SENT.keyless_records] + len(row[SENT.create_times])} for row in rows]
    partitions = read(*keyless).capture.partitions
    return bool(partitions["is_sticky"].all())


@pytest.mark.parametrize(
    ("first", "known", "initial"),
    [
        ({}, {}, INITIAL_RATIO),
        ({SENT.began_before: True}, {}, NO_ESTIMATE),
        ({SENT.base_sequence: 8}, {}, NO_ESTIMATE),
        ({SENT.base_sequence: 8, SENT.began_before: True}, {}, NO_ESTIMATE),
        ({SENT.base_sequence: 8, SENT.began_before: True, SENT.codec: "none"}, {}, INITIAL_RATIO),
        ({SENT.began_before: True}, {(0, 1): 0.25}, 0.25),
    ],
    ids=["from the begin", "began before", "sent before", "both", "not compressed", "known from the stretch before"],
)
def test_the_estimate_at_the_beginning_is_known_if_the_producer_began_in_the_capture(
    first: Row, known: dict[tuple[int, int], float], initial: float
) -> None:
    (group,) = groups_of_sendings(read(sent(0, 8, 900, 9, 0, **first)), LINGER, known)
    assert group.initial == initial


def test_topics_and_codecs_have_groups_of_their_own_with_their_closes_and_splits() -> None:
    """A batch of `t` is refused at 9.5 ms and sent in two parts; one of `u` and one in another codec are taken."""
    of_u = sent(100, 8, 700, 12, 0, topic="u", base_sequence=0)
    rows = [sent(0, 8, 2000, 9, 10), sent(0, 4, 1000, 20, 0), sent(4, 4, 1010, 21, 0), of_u]
    other = sent(200, 8, 650, 30, 0, codec="zstd", base_sequence=8)
    refused, in_zstd, of_topic_u = groups_of_sendings(read(*rows, other), LINGER, {})
    assert [(of.topic, of.codec) for of in (refused, in_zstd, of_topic_u)] == [(0, 1), (0, 4), (1, 1)]
    assert (refused.closed.tolist(), refused.refused.tolist()) == ([0, 1, 2], [0])
    assert refused.splits[["earliest", "latest"]].tolist() == [(9500, 20_000)]
    assert refused.closes["latest"].tolist() == [9000, 20_000, 21_000]
    uncompressed = sum(record_bytes(104, at, at) for at in range(8))
    assert refused.splits["ratio"].tolist() == [pytest.approx((2000 - 61) / uncompressed)]
    assert of_topic_u.closes["ratio"].tolist() == [pytest.approx((700 - 61) / uncompressed)]
    assert [len(of.batches) for of in (refused, in_zstd, of_topic_u)] == [1, 1, 1]
