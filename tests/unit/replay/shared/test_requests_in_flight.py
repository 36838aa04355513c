"""The last event that surely came before a produce request."""

from __future__ import annotations

import numpy as np

from udfs.replay.shared.requests_in_flight import before_requests


def test_a_request_is_made_when_the_one_before_is_written_and_the_fifth_before_is_answered() -> None:
    time = np.array([10, 20, 30, 40, 50, 60, 60, 61])
    response = np.array([55, 56, 57, 58, 59, 70, 70, 71])
    connection = np.array([1, 1, 1, 1, 1, 1, 1, 2])
    assert before_requests(time, response, connection).tolist() == [0, 10, 20, 30, 40, 55, 55, 0]
    for answered in (60, 65):  # six may be in flight: this client may have any number
        response[0] = answered
        assert before_requests(time, response, connection).tolist() == [0, 10, 20, 30, 40, 50, 50, 0]
