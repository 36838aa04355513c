"""Question 6: the bytes that the consumer with the largest lag has not read yet, and those that it holds, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyspark.sql import Row

from jobs.replays.fetch_max_bytes.answers import closed_lanes
from jobs.replays.ranged import are_apart, time_with_range, with_range
from jobs.report_page.fetch_max_bytes.catch_up import (
    backlog_over_time,
    catch_up_by_lane,
    held_curves,
    held_over_time,
    lag_curves,
)
from jobs.report_page.question import Findings, Plot, Unplotted
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_MEMORY, FETCH_TIMELINE
from tests.unit.report.findings import findings

LANES = ("captured", "consumer.fetch.max.bytes=1MiB", "consumer.fetch.max.bytes=8MiB")


def lagging(lags: dict[str, list[int]], held: dict[str, list[int]], cut_off: Sequence[str] = ()) -> Findings:
    """Rows of buckets of 20 ms. lags, held: by lane, the bytes not yet read at the end of each bucket, and the most
    held in it. cut_off: lanes that are cut off before all was read.
    """
    t, m, c = FETCH_TIMELINE, FETCH_MEMORY, FETCH_CONSUMERS
    who = {t.client_id: "billing", t.client_address: "10.0.0.1"}
    spans = [
        Row(
            **who,
            **{t.scenario: lane, t.bucket: bucket, t.bucket_ms: 20.0, "lag": lag, c.read_all: lane not in cut_off},
        )
        for lane, of_lane in lags.items()
        for bucket, lag in enumerate(of_lane)
    ]
    memory = [Row(**who, **{m.scenario: lane, m.held_bytes: of_lane}) for lane, of_lane in held.items()]
    return findings({backlog_over_time: spans, held_over_time: memory}, {algorithms.FETCH_MAX_BYTES: LANES})


SLOW, FAST = [900, 500, 100, 0, 0], [900, 0, 0]
FOUND = lagging({LANES[0]: SLOW, LANES[1]: FAST, LANES[2]: FAST}, {LANES[0]: [9], LANES[1]: [5, 9, 4, 0, 7, 8]})


def curves(plot: Plot) -> dict[str, list[tuple[float, int]]]:
    found: dict[str, list[tuple[float, int]]] = {}
    for row in plot.rows:
        found.setdefault(str(row["lane"]), []).append((float(str(row["since"])), int(str(row["bytes"]))))
    return found


def test_lag_is_drawn_at_the_end_of_its_bucket_until_all_is_read_in_every_lane() -> None:
    assert curves(lag_curves(FOUND)) == {
        "captured": [(20, 900), (40, 500), (60, 100), (80, 0)],
        "1 MiB": [(20, 900), (40, 0), (60, 0), (80, 0)],
    }


def test_the_curve_of_a_lane_that_is_cut_off_ends_with_what_is_not_read() -> None:
    found = curves(lag_curves(lagging({LANES[0]: SLOW, LANES[1]: [900, 800]}, {}, cut_off=[LANES[1]])))
    assert found["1 MiB"] == [(20, 900), (40, 800)]
    assert found["captured"][-1] == (80, 0)


def test_a_curve_is_named_by_the_settings_that_concern_consumers() -> None:
    lane = f"{LANES[1]},replica.fetch.max.bytes=2KiB"
    found = replace(lagging({LANES[0]: SLOW, lane: FAST}, {}), lanes={algorithms.FETCH_MAX_BYTES: (LANES[0], lane)})
    plot = lag_curves(found)
    assert list(curves(plot)) == ["captured", "1 MiB"]
    assert plot.colour is not None
    assert plot.colour.title == "fetch.max.bytes"


def test_what_is_held_is_shown_until_all_is_read_in_every_lane() -> None:
    held = curves(held_curves(FOUND))
    assert held["captured"] == [(0, 9), (20, 0), (40, 0), (60, 0), (80, 0)]
    assert held["1 MiB"] == [(0, 5), (20, 9), (40, 4), (60, 0), (80, 7)]


def test_a_lane_without_rows_has_no_curve() -> None:
    found = lagging({LANES[0]: SLOW, LANES[1]: FAST}, {})
    assert list(curves(lag_curves(found))) == ["captured", "1 MiB"]


@pytest.mark.parametrize("plotted", [lag_curves, held_curves])
def test_without_a_lag_no_curve_is_drawn_and_the_reason_is_given(plotted: object) -> None:
    assert callable(plotted)
    with pytest.raises(Unplotted, match="no consumer lagged"):
        plotted(lagging({LANES[0]: [0, 0]}, {LANES[0]: [9]}))
    with pytest.raises(Unplotted, match="no consumer lagged for longer than one time bucket"):
        plotted(lagging({LANES[0]: [5, 0]}, {LANES[0]: [9]}))


def caught_up(*ranges: tuple[float, float, float | None]) -> Findings:
    """Lanes with the time of their slowest backlog, and its p10 and p90."""
    rows = [
        Row(
            reader="consumer", scenario=lane, took=took, never=False, catch_up_ms_range=within(p10, p90),
            longest=Row(longest_wait_ms=0.0), waiting=0, held=took,
        )
        for lane, (took, p10, p90) in zip(LANES, ranges, strict=False)
    ]  # fmt: skip
    return findings({closed_lanes: rows}, {algorithms.FETCH_MAX_BYTES: LANES[: len(rows)]})


def test_each_lane_is_drawn_with_its_range_unless_it_never_ends_at_a_slow_pace() -> None:
    plot = catch_up_by_lane(caught_up((146, 120, 210), (900, 700, None), (31, 31, 31)))
    assert [tuple(row.values()) for row in plot.rows] == [("captured", 146, 120, 210), ("8 MiB", 31, 31, 31)]
    with pytest.raises(Unplotted, match="at every pace"):
        catch_up_by_lane(caught_up((900, 700, None)))


def within(p10: float | None, p90: float | None) -> Row:
    return Row(value=None, p10=p10, p90=p90)


@pytest.mark.parametrize(
    ("value", "p10", "p90", "text"),
    [
        (146, 120, 210, "146 ms (120 to 210 ms)"),
        (900, 700, 2400, "900 ms (700 ms to 2.4 s)"),
        (146, 150, 210, "146 ms (146 to 210 ms)"),
        (146, 120, None, "146 ms (120 ms to not all)"),
        (146, 146, 146, "146 ms"),
        (0, 0, 0, "0 ms"),
    ],
)
def test_a_time_is_shown_with_its_range_at_other_paces(value: float, p10: float, p90: float | None, text: str) -> None:
    assert time_with_range(value, within(p10, p90)) == text
    assert time_with_range(value, None) == text.partition(" (")[0]


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [((10, 20), (21, 30), True), ((10, 20), (19, 30), False), ((10, None), (5, 7), True), ((10, 20), (10, 20), False)],
)
def test_lanes_differ_if_their_ranges_do_not_meet(
    one: tuple[float, float | None], other: tuple[float, float | None], apart: bool
) -> None:
    assert are_apart(*(with_range(ends[0], within(*ends)) for ends in (one, other))) is apart
