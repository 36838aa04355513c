"""The usual aims: if no lane of its grid meets them, a run searches on."""

from __future__ import annotations

import pytest

from jobs.find.usual_aims import doublings_in, usual_aim
from jobs.scenarios.aims import Constraint, Span
from jobs.scenarios.scenario import CAPTURED_LANE, Lane, make_lane
from jobs.scenarios.settings import Value

KiB, MiB = 1 << 10, 1 << 20
AS_CAPTURED = Lane(CAPTURED_LANE, {})


def lanes(*changed: dict[str, Value]) -> list[Lane]:
    return [AS_CAPTURED, *map(make_lane, changed)]


def test_a_grid_that_varies_no_setting_of_a_usual_aim_has_no_aim() -> None:
    assert usual_aim("fetch_max_bytes", [AS_CAPTURED]) is None
    assert usual_aim("fetch_max_bytes", lanes({"consumer.max.poll.records": 10})) is None


def test_batch_sizes_are_looked_for_up_to_the_largest_that_was_replayed() -> None:
    aim = usual_aim("batch_split", lanes({"producer.batch.size": 16 * KiB}, {"producer.batch.size": 64 * KiB}))
    assert aim is not None
    assert (aim.target, aim.is_least) == ("producer.batch.size", False)
    assert aim.over == {"producer.batch.size": Span(KiB, 64 * KiB)}


@pytest.mark.parametrize(
    ("response", "partition", "reader"),
    [
        ("consumer.fetch.max.bytes", "consumer.max.partition.fetch.bytes", "consumers"),
        ("replica.fetch.response.max.bytes", "replica.fetch.max.bytes", "followers"),
    ],
)
def test_fetch_limits_are_looked_for_among_doublings_of_both(response: str, partition: str, reader: str) -> None:
    aim = usual_aim("fetch_max_bytes", lanes({response: 100_000, partition: 1 * MiB}))
    assert aim is not None, reader
    assert (aim.target, aim.is_least, aim.where) == ("catch_up", True, (Constraint("longest_wait", "<=", 10.0),))
    assert aim.over == {
        response: tuple(sorted((100_000, *(64 * KiB << times for times in range(11))))),
        partition: tuple(16 * KiB << times for times in range(10)),
    }


def test_doublings_end_with_the_last_allowed_value() -> None:
    assert doublings_in(16, 16) == (16,)
    assert doublings_in(16, 64) == (16, 32, 64)
    assert doublings_in(16, 63) == (16, 32)
