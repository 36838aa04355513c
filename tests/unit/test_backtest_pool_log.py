"""What the backtest reads about a broker's memory pool from its log."""

from __future__ import annotations

import pytest

from tests.backtest.pool_log import pool_figures, quantile

NETWORK, HANDLER = "data-plane-kafka-network-thread-1-PLAINTEXT-PLAINTEXT-0", "data-plane-kafka-request-handler-3"


def line(ms: float, told: str, thread: str = NETWORK) -> str:
    """A line of the log. ms: its time after noon."""
    return f"2026-11-30T12:00:{ms / 1000:09.6f}\t{thread}\t{told}\n"


def refused(ms: float, size: int, connection: str) -> str:
    """A receive that finds no memory."""
    return line(ms, f"Broker low on memory - could not allocate buffer of size {size} for source {connection}")


def test_a_receive_waits_from_its_first_refusal_until_its_size_is_granted_to_its_thread() -> None:
    figures = pool_figures(
        [
            line(0, "allocated buffer of size 100 "),
            refused(10, 70, "a"),
            line(20, "released buffer of size 100", HANDLER),
            line(30, "allocated buffer of size 90 "),
            refused(31, 70, "a"),
            line(40, "released buffer of size 90", HANDLER),
            line(41, "allocated buffer of size 70 "),
        ]
    )
    assert (figures["requests that wait"], figures["wait ms, longest"]) == (1, pytest.approx(31))
    assert figures["... 99th percentile of all"] == pytest.approx(31)


def test_a_pool_is_depleted_from_a_refusal_to_the_next_grant_or_release() -> None:
    told = [refused(10, 70, "a"), refused(12, 80, "b"), line(15, "released buffer of size 9"), refused(20, 70, "a")]
    assert pool_figures([*told, line(22, "allocated buffer of size 70")])["depleted ms"] == pytest.approx(7)


def test_the_pool_of_a_controller_in_the_same_process_does_not_count() -> None:
    controllers = NETWORK.replace("PLAINTEXT-P", "CONTROLLER-P")
    told = [line(0, "allocated buffer of size 100 "), line(1, "allocated buffer of size 400 ", controllers)]
    assert pool_figures(told)["most bytes in use"] == 100


def test_a_quantile_is_one_of_the_values() -> None:
    assert [quantile([3.0, 1.0, 2.0], share) for share in (0.01, 0.5, 0.99)] == [1.0, 2.0, 3.0]
    assert quantile([], 0.5) == 0
