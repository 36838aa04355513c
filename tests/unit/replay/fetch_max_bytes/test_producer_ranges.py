"""What becomes of producers under quotas has a range, because their pace is drawn anew from the capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from schemas.tables.gold import PRODUCER_THROTTLE_RANGES
from tests.unit.replay.fetch_max_bytes.sent_requests import Sent, lanes_of, rows_of
from tests.unit.replay.fetch_max_bytes.test_producer_quota import STEADY, by_lane, replayed
from udfs.columns.time_units import US_PER_MS
from udfs.replay.fetch_max_bytes.producer_quota.drawn_pace import at_another_pace
from udfs.replay.fetch_max_bytes.producer_quota.events import producers_of
from udfs.replay.fetch_max_bytes.producer_quota.rows import RANGED
from udfs.replay.fetch_max_bytes.producer_quota.settings import ProducerLanes
from udfs.replay.shared.window import WHOLE

R = PRODUCER_THROTTLE_RANGES
UNEVEN = [
    Sent(at * 100 + int(at % 7) * 8, 80_000 + at % 5 * 10_000, took=2 + at % 11, made=at * 100 - at % 3, batches=2)
    for at in range(200)
]
"""About 1 MB/s for 20 s, without a quota, at an uneven pace, by a client that fills batches of two partitions."""
SLOW = "producer_byte_rate=500000"


def ranges(sent: Sequence[Sent], lanes: ProducerLanes, most: int = 10_000) -> Mapping[tuple[str, str], dict[str, Any]]:
    """The rows of `producer_throttle_ranges` by lane and metric, where there is one producer at one broker."""
    return {(row["scenario"], row["metric"]): row for row in replayed(sent, lanes, most)[R.name]}


def test_every_outcome_that_depends_on_pace_has_a_range_around_its_value() -> None:
    of, values = ranges(UNEVEN, lanes_of(None, 500_000)), by_lane(replayed(UNEVEN, lanes_of(None, 500_000)))
    assert {metric for _, metric in of} == {*RANGED}
    for (lane, metric), row in of.items():
        assert row["value"] == values[lane][metric]
        assert row["p10"] <= row["p50"] <= row["p90"]
    sending = of[SLOW, "sending_ms"]
    assert sending["p10"] < sending["p90"]
    assert not sending["is_exact"]
    assert sending["p50"] == pytest.approx(sending["value"], rel=0.05)


def test_a_lane_in_which_nobody_is_throttled_is_replayed_five_times_and_that_is_exact() -> None:
    of = ranges(UNEVEN, lanes_of(None, 500_000))
    assert {row["replications"] for (lane, _), row in of.items() if lane == "captured"} == {5}
    assert {row["replications"] for (lane, _), row in of.items() if lane == SLOW} == {20}
    for metric in ("throttled_requests", "throttle_time_ms", "throttle_time_max_ms", "blocked_ms", "expired_requests"):
        row = of["captured", metric]
        assert (row["p10"], row["p90"], row["is_exact"]) == (0, 0, True)


@pytest.mark.parametrize("most", [1, 7])
def test_ranges_are_the_same_however_rows_come(most: int) -> None:
    lanes = lanes_of(None, 500_000)
    assert ranges(UNEVEN, lanes, most) == ranges(UNEVEN, lanes)


def test_a_lane_has_the_same_draws_whichever_lanes_are_beside_it() -> None:
    alone, beside = (ranges(UNEVEN, lanes_of(None, *rates)) for rates in ((500_000,), (300_000, 500_000)))
    assert [alone[SLOW, metric] for metric in RANGED] == [beside[SLOW, metric] for metric in RANGED]


def test_the_application_takes_as_long_as_captured_at_every_pace() -> None:
    captured = producers_of(rows_of(UNEVEN), WHOLE)
    assert captured is not None
    unit, draws = captured.unit, np.random.default_rng(1)
    for _ in range(20):
        ready = at_another_pace(unit, 1.0, 1.0, draws).ready_us[unit.by_process]
        made = unit.ready_us[unit.by_process]
        assert (ready[0], ready[-1]) == (made[0], pytest.approx(made[-1], abs=1))
        assert (np.diff(ready) >= 0).all()
        assert abs(ready - made).max() < 1_000 * US_PER_MS


def test_slower_brokers_and_clients_make_sending_longer() -> None:
    captured = producers_of(rows_of(UNEVEN), WHOLE)
    assert captured is not None
    slow, quick = (at_another_pace(captured.unit, of, 1.0, np.random.default_rng(1)) for of in (3.0, 0.3))
    assert slow.service_us.sum() == pytest.approx(10 * quick.service_us.sum(), rel=0.01)
    assert slow.idle_us[1:].sum() == pytest.approx(10 * quick.idle_us[1:].sum(), rel=0.01)


@pytest.mark.parametrize(("batches", "is_as_captured"), [(1, False), (2, True)])
def test_sizes_come_in_another_order_unless_the_client_joins_requests(batches: int, is_as_captured: bool) -> None:
    sent = [replace(one, batches=batches, connection=at % 3) for at, one in enumerate(UNEVEN)]
    captured = producers_of(rows_of(sent), WHOLE)
    assert captured is not None
    unit = captured.unit
    drawn = at_another_pace(unit, 1.0, 1.0, np.random.default_rng(1)).requests["size"]
    assert (drawn == unit.requests["size"]).all() == is_as_captured
    for begin, end in pairwise(unit.first.tolist()):
        assert sorted(drawn[begin:end]) == sorted(unit.requests["size"][begin:end])


LITTLE = [Sent(at * 10, 10_000 if at % 50 else 100_000, made=at * 10, batches=2) for at in range(2_000)]
"""About 1 MB/s for 20 s in small requests, a few of them larger."""


def test_a_throttled_client_fills_the_batches_of_its_next_request_as_far_as_the_capture_shows() -> None:
    joined = by_lane(replayed(LITTLE, lanes_of(None, 500_000)))[SLOW]
    one_each = [replace(one, batches=1) for one in LITTLE]
    apart = by_lane(replayed(one_each, lanes_of(None, 500_000)))[SLOW]
    assert joined["throttled_requests"] < apart["throttled_requests"] / 3
    assert joined["requests"] < apart["requests"] == 2_000
    assert joined["bytes"] == pytest.approx(apart["bytes"], rel=0.03)
    assert joined["bytes"] < apart["bytes"]


def test_without_a_quota_nothing_is_joined() -> None:
    captured = by_lane(replayed(LITTLE, lanes_of(None, 500_000)))["captured"]
    assert (captured["requests"], captured["bytes"]) == (2_000, sum(one.size for one in LITTLE))
    assert captured["sending_ms"] == captured["captured_sending_ms"]


def test_a_request_for_which_a_client_waited_is_larger_if_it_need_not_wait() -> None:
    waited = [replace(one, throttle=50 if at % 10 == 4 else 0, size=50_000 if at % 10 == 5 else one.size)
              for at, one in enumerate(LITTLE)]  # fmt: skip
    lanes = by_lane(replayed(waited, lanes_of(None, 100_000_000)))
    free = lanes["producer_byte_rate=100000000"]
    overhead = 50 + 70 * 2
    split = 50_000 // 10_000 - 1
    assert free["throttled_requests"] == 0
    assert free["bytes"] == sum(one.size for one in waited) + 200 * split * overhead


def test_steady_requests_of_one_batch_are_sent_as_they_are() -> None:
    assert by_lane(replayed(STEADY, lanes_of(None, 500_000)))[SLOW]["requests"] == len(STEADY)
