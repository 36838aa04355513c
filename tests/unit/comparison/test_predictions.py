"""Which lane of an earlier run is now in force, and whether what it predicted came true."""

from __future__ import annotations

from math import inf

import pytest

from jobs.comparison.figures import Figure
from jobs.comparison.predictions import (
    BY_CAPTURE,
    Prediction,
    check_id,
    lane_in_force,
    lane_values,
    prediction_rows,
    settings_in_force,
)
from schemas.tables.algorithms import FETCH_MAX_BYTES, SESSION_CACHE
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED

LIMIT, PART = "consumer.fetch.max.bytes", "consumer.max.partition.fetch.bytes"
NAMES = ("captured", f"{LIMIT}=1MiB", f"{LIMIT}=8MiB", "replica.fetch.max.bytes=2MiB", f"{LIMIT}=8MiB,order=fixed")
LANES = {name: lane_values(name) for name in NAMES}
WAS = {LIMIT: "200000", PART: "1048576"}


def of_consumer(shown: dict[str, str], **captured: str) -> dict[str, str]:
    stated = {key.replace("_", "."): value for key, value in captured.items()}
    return dict(settings_in_force(FETCH_MAX_BYTES, stated, "4.3", shown, ["replica"]))


@pytest.mark.parametrize(
    ("now", "lane"),
    [
        (WAS, "captured"),
        ({**WAS, LIMIT: "1048576"}, f"{LIMIT}=1MiB"),
        ({**WAS, LIMIT: "8388608"}, f"{LIMIT}=8MiB"),
        ({**WAS, LIMIT: "52428800"}, None),
        ({**WAS, LIMIT: "1048576, 8388608"}, None),
        ({LIMIT: "1048576", PART: "65536"}, None),
    ],
)
def test_the_prediction_is_that_of_the_lane_whose_settings_are_in_force(now: dict[str, str], lane: str | None) -> None:
    assert lane_in_force(LANES, of_consumer(WAS), of_consumer(now)) == lane


def test_a_lane_is_no_prediction_if_something_else_has_changed_too() -> None:
    was, now = of_consumer(WAS), of_consumer({**WAS, LIMIT: "1048576"}, broker_fetch_max_bytes="1048576")
    assert lane_in_force(LANES, was, now) is None
    assert lane_in_force(LANES, {**was, "kafka": "3.7"}, of_consumer({**WAS, LIMIT: "1048576"})) is None


def test_a_client_that_had_several_values_may_now_have_that_of_a_lane() -> None:
    was = of_consumer({**WAS, LIMIT: "200000, 52428800"})
    assert lane_in_force(LANES, was, of_consumer({**WAS, LIMIT: "8388608"})) == f"{LIMIT}=8MiB"


def test_a_setting_that_nobody_states_and_no_capture_shows_has_kafkas_default() -> None:
    slots = "broker.max.incremental.fetch.session.cache.slots"
    assert settings_in_force(SESSION_CACHE, {}, "4.3", {})[slots] == "1000"
    assert settings_in_force(SESSION_CACHE, {slots: 8}, "4.3", {})[slots] == "8"
    assert settings_in_force(SESSION_CACHE, {}, "4.3", {})["kafka"] == "4.3"


def predicted(metric: str, figure: Figure, seen: Figure) -> Prediction:
    return Prediction(FETCH_MAX_BYTES, f"{LIMIT}=1MiB", True, "client", "app", metric, figure, seen, BY_CAPTURE)


@pytest.mark.parametrize(
    ("figure", "seen", "is_hit"),
    [
        (Figure(110.0, 78.0, 219.0), 78.0, True),
        (Figure(110.0, 78.0, 219.0), 219.09, True),
        (Figure(110.0, 78.0, 219.0), 219.2, False),
        (Figure(110.0, 78.0, 219.0), 77.0, False),
        (Figure(0.0, 0.0, 0.0), 0.0, True),
        (Figure(0.0, 0.0, 0.0), 4.0, False),
        (Figure(inf, 78.0, inf), inf, True),
        (Figure(inf, 78.0, inf), 80.0, True),
        (Figure(110.0, 78.0, 219.0), inf, False),
    ],
)
def test_a_value_within_p10_and_p90_is_a_hit(figure: Figure, seen: float, is_hit: bool) -> None:
    assert predicted("longest_wait_ms", figure, Figure(seen)).is_hit is is_hit


def test_a_value_outside_the_range_is_a_miss_however_few_bytes_it_is_off() -> None:
    assert not predicted("held_bytes", Figure(100.0, 100.0, 100.0), Figure(100.05)).is_hit


@pytest.mark.parametrize(("cases", "is_hit"), [(20, True), (2000, False)])
def test_a_share_is_a_hit_if_two_samples_of_these_sizes_may_differ_by_as_much(cases: int, is_hit: bool) -> None:
    was, now = Figure(0.2, cases=cases), Figure(0.3, cases=cases)
    assert predicted("refused_share", was, now).is_hit is is_hit


def test_the_table_has_both_ends_of_the_range_and_null_for_what_never_ends() -> None:
    t = PREDICTIONS_CHECKED
    made = [
        predicted("longest_wait_ms", Figure(110.0, 78.0, 219.0), Figure(90.0)),
        predicted("catch_up_ms", Figure(inf, 78.0, inf), Figure(inf)),
    ]
    waited, caught_up = prediction_rows("before", "after", made).to_pylist()
    assert waited[t.check_id] == check_id("before", "after") == "before-after"
    assert [waited[c] for c in (t.predicted_by, t.run_id, t.scenario)] == ["before", "after", f"{LIMIT}=1MiB"]
    assert [waited[c] for c in (t.predicted, t.p10, t.p90, t.seen, t.is_hit)] == [110.0, 78.0, 219.0, 90.0, True]
    assert [caught_up[c] for c in (t.predicted, t.p10, t.p90, t.seen, t.is_hit)] == [None, 78.0, None, None, True]
