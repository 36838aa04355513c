"""What the closed loop of a producer goes on from: pieces of batches, and how long requests are served."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints
from udfs.replay.consumer_memory.producer.requests import lingered, pieces_of, requests_of, share_behind
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def test_a_request_is_served_once_the_one_before_on_its_connection_is_answered() -> None:
    sent, answered = ints(0, 10, 20, 200), ints(50, 90, 60, 230)
    requests, place = requests_of(ints(0, 0, 1, 0), ints(1, 2, 1, 3), sent, answered)
    assert requests.service[place].tolist() == [50, 40, 40, 30]
    assert requests.behind[place].tolist() == [0, 40, 0, 0]
    assert share_behind(requests) == 40 / 200


def test_all_batches_of_a_request_are_served_with_it() -> None:
    requests, place = requests_of(ints(0, 0, 0), ints(4, 4, 5), ints(0, 0, 10), ints(50, 50, 70))
    assert requests.service[place].tolist() == [50, 50, 20]
    assert requests.bounds.tolist() == [0, 2]


def test_how_long_batches_linger_is_told_by_the_one_of_a_request_that_waited_longest() -> None:
    sent = ints(20, 20, 40, 600)
    requests, place = requests_of(ints(0, 0, 0, 0), ints(1, 1, 2, 3), sent, sent)
    assert lingered(requests, place, ints(0, 17, 19, 100)) == 21


def test_requests_that_five_in_flight_held_back_do_not_tell_how_long_batches_linger() -> None:
    """The sixth is sent when the first is answered."""
    sent, answered = ints(1, 2, 3, 4, 5, 90), ints(90, 91, 92, 93, 94, 95)
    requests, place = requests_of(ints(*[0] * 6), np.arange(6), sent, answered)
    assert lingered(requests, place, sent - ints(1, 1, 1, 1, 1, 80)) == 1
    assert lingered(requests, place[5:], ints(10)) == 0


def test_a_batch_is_as_many_pieces_as_records_evenly_in_time_and_size() -> None:
    pieces = pieces_of(
        ints(0, 1000), ints(9000, 2000), ints(RECORD_BATCH_OVERHEAD + 50, RECORD_BATCH_OVERHEAD + 7), ints(5, 1)
    )
    assert pieces.batch.tolist() == [0, 1, 0, 0, 0, 0]
    assert pieces.time.tolist() == [0, 1000, 2000, 4000, 6000, 8000]
    assert pieces.size.tolist() == [10, 7, 10, 10, 10, 10]
    assert pieces.is_first.tolist() == [1, 1, 0, 0, 0, 0]


def test_a_batch_of_many_records_is_64_pieces_that_have_all_its_bytes() -> None:
    pieces = pieces_of(ints(0), ints(1000), ints(RECORD_BATCH_OVERHEAD + 999), ints(500))
    assert (len(pieces.size), int(pieces.size.sum()), set(pieces.size.tolist())) == (64, 999, {15, 16})
