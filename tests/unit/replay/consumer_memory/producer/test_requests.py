"""How long brokers serve a producer's requests, and how long its batches linger."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.replay.consumer_memory.producer.requests import lingers_of, requests_of_sendings, shares_behind


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def linger(requests: Records, request: Ints, appended_at: Ints) -> int:
    """How long the batches of one producer linger (us)."""
    return int(lingers_of(requests, np.zeros(len(requests), np.int64), 1, request, appended_at)[0])


def test_a_request_is_served_once_the_one_before_on_its_connection_is_answered() -> None:
    sent_at, answered_at = ints(0, 10, 20, 200), ints(50, 90, 60, 230)
    requests, place = requests_of_sendings(ints(0, 0, 1, 0), ints(1, 2, 1, 3), sent_at, answered_at)
    assert requests["service_us"][place].tolist() == [50, 40, 40, 30]
    assert requests["behind_us"][place].tolist() == [0, 40, 0, 0]
    assert shares_behind(requests, ints(0, 0, 0, 0), 1).tolist() == [40 / 200]
    assert shares_behind(requests, requests["connection"], 3).tolist() == [40 / 160, 0, 0]


def test_all_batches_of_a_request_are_served_with_it() -> None:
    requests, place = requests_of_sendings(ints(0, 0, 0), ints(4, 4, 5), ints(0, 0, 10), ints(50, 50, 70))
    assert requests["service_us"][place].tolist() == [50, 50, 20]
    assert len(requests) == 2


def test_the_batch_of_a_request_that_waited_longest_shows_how_long_batches_linger() -> None:
    sent_at = ints(20, 20, 40, 600)
    requests, place = requests_of_sendings(ints(0, 0, 0, 0), ints(1, 1, 2, 3), sent_at, sent_at)
    assert linger(requests, place, ints(0, 17, 19, 100)) == 21


def test_requests_held_back_by_five_in_flight_do_not_show_how_long_batches_linger() -> None:
    """The sixth is sent when the first is answered."""
    sent_at, answered_at = ints(1, 2, 3, 4, 5, 90), ints(90, 91, 92, 93, 94, 95)
    requests, place = requests_of_sendings(ints(*[0] * 6), np.arange(6), sent_at, answered_at)
    assert linger(requests, place, sent_at - ints(1, 1, 1, 1, 1, 80)) == 1
    assert linger(requests, place[5:], ints(10)) == 0


def test_each_producer_lingers_for_the_median_of_its_own_requests() -> None:
    sent_at = ints(10, 20, 30, 15)
    requests, place = requests_of_sendings(ints(0, 0, 0, 1), ints(1, 2, 3, 1), sent_at, sent_at)
    appended_at = sent_at - ints(7, 3, 5, 9)
    assert lingers_of(requests, requests["connection"], 3, place, appended_at).tolist() == [5, 9, 0]
