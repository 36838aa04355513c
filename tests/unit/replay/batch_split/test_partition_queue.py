"""What an idempotent producer keeps back while the parts of a split batch are sent one after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.replay.batch_split.producers import Producer, Records, even_sizes, replayed

SETTINGS = Producer(1024, 2048, linger=5)
TOO_LARGE = 75
"""Records of 100 bytes in the first batch, at an estimate of 0.1: it is refused and split into ten."""
LATER = range(60, 460, 20)
"""ms at which single records follow, while the parts are sent: at 55 ms the first, at 505 the last."""


def followed_by_singles(has_sequence: bool) -> Records:
    """... each of which lingers out before the next one comes."""
    ms, values = [0] * TOO_LARGE + list(LATER), [100] * TOO_LARGE + [5] * len(LATER)
    return Records(ms, values, initial=[0.1], has_sequence=has_sequence, round_trip=50)


@pytest.mark.parametrize(("has_sequence", "batches"), [(True, 1 + 1), (False, 1 + len(LATER))])
def test_a_batch_behind_the_parts_of_a_split_one_is_filled_further_though_it_has_lingered(
    has_sequence: bool, batches: int
) -> None:
    records = followed_by_singles(has_sequence)
    found = replayed(SETTINGS, records, even_sizes(records, [1.0] * len(records.ms)))
    assert (found.of("splits"), found.of("split_batches"), found.of("batches")) == (1, 10, batches)
    assert found.of("records") == len(records.ms)


@pytest.mark.parametrize(("has_sequence", "recovery"), [(True, 6 * 50_000), (False, 0)])
def test_each_part_is_closed_when_the_one_before_is_answered_so_that_the_estimate_comes_down_in_time(
    has_sequence: bool, recovery: int
) -> None:
    """From 1.0 to the ratio of 0.97 it takes six steps of 0.005."""
    records = replace(followed_by_singles(has_sequence), ms=[0] * TOO_LARGE, values=[100] * TOO_LARGE)
    found = replayed(SETTINGS, records, even_sizes(records, [0.972 * 109 / 100] * TOO_LARGE))
    assert (found.of("recoveries"), found.of("recovery_longest")) == (1, recovery)


def test_full_batches_wait_until_the_last_part_is_sent_and_then_leave_together() -> None:
    """All are made before any of them is closed, at the estimate that the parts leave."""
    ms = [0] * TOO_LARGE + [60] * 30
    records = Records(ms, [100] * len(ms), initial=[0.1], has_sequence=True, round_trip=50)
    found = replayed(SETTINGS, records, even_sizes(records, [1.0] * len(ms)))
    assert (found.of("batches"), found.of("split_batches")) == (1 + 4, 10)
    assert found.of("bytes_sent") == 2 * TOO_LARGE * 100 + 30 * 100 + (1 + 4 + 10) * 61


def test_the_parts_of_a_part_that_is_refused_go_before_those_behind_it() -> None:
    """Every part is sent in the end, each once, whichever are refused again."""
    records = Records([0] * TOO_LARGE, [100] * TOO_LARGE, initial=[0.1], has_sequence=True, round_trip=50)
    found = replayed(Producer(1024, 700, linger=5), records, even_sizes(records, [1.0] * TOO_LARGE))
    assert (found.of("failed"), found.of("splits")) == (0, 1 + 9), "nine of ten parts have 861 bytes"
    assert found.of("split_batches") == 10 + 9 * 3
