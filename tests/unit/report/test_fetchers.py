"""What screen and page say about lanes in which followers have another number of fetchers."""

from __future__ import annotations

from pyspark.sql import Row

from jobs.replays.fetch_max_bytes.answers import closed_lanes
from jobs.report_page.advice.floors import metrics_below_floor
from jobs.report_page.cards import fetchers_cards
from jobs.report_page.fetch_max_bytes.fetchers import (
    BESIDE_LIVE_RUNS,
    EACH_AT_ITS_PACE,
    NOT_DEALT,
    fetchers_by_lane,
)
from jobs.report_page.fetch_max_bytes.growth import ALIKE
from jobs.report_page.question import Findings
from jobs.report_page.verdict import fetchers_lines
from schemas.tables import algorithms
from tests.unit.report.findings import findings

FOUR, KIB = "num.replica.fetchers=4", 1024
WITHIN = {"catch_up_ms_range": None, "longest_wait_ms_range": None, "end_lag_bytes_range": None}


def lane(name: str, fetchers: int | None, took: float = 100.0, not_dealt: int = 0, reader: str = "follower") -> Row:
    """The results of two captured fetchers in a lane."""
    return Row(
        reader=reader, scenario=name, took=took, never=False, longest=(0.0, "t-0"), readers=2, fetchers=fetchers,
        not_dealt=not_dealt, requests=10, held=300 * KIB, **WITHIN,
    )  # fmt: skip


def of_lanes(*rows: Row) -> Findings:
    names = tuple(dict.fromkeys(row["scenario"] for row in rows))
    return findings({closed_lanes: list(rows), metrics_below_floor: []}, {algorithms.FETCH_MAX_BYTES: names})


def test_a_lane_shows_how_soon_followers_catch_up_and_what_that_costs() -> None:
    found = of_lanes(lane("captured", 2), lane("captured", None, reader="consumer"), lane(FOUR, 8, took=25.0))
    takes = "fetch sessions 2 -> 8; requests 10 -> 10; most held 300.0 KiB -> 300.0 KiB"
    assert [*fetchers_by_lane(found)] == [(FOUR, f"catch-up 100 ms -> 25 ms; {takes}")]
    assert next(fetchers_lines(found)).startswith(f"FETCHERS  {FOUR}  catch-up 100 ms -> 25 ms; fetch sessions")
    (card,) = fetchers_cards(found)
    assert (card.title, card.terms) == ("followers", [("Sure", f"{EACH_AT_ITS_PACE}; {BESIDE_LIVE_RUNS}")])


def test_lanes_that_do_not_differ_at_any_pace_say_so_and_show_their_cost() -> None:
    ((_, text),) = fetchers_by_lane(of_lanes(lane("captured", 2), lane(FOUR, 8)))
    assert text.startswith(f"{ALIKE}; fetch sessions 2 -> 8")


def test_followers_that_could_not_be_dealt_are_counted() -> None:
    none, some = (of_lanes(lane("captured", 2), lane(FOUR, of, not_dealt=n)) for of, n in ((None, 2), (5, 1)))
    assert [*fetchers_by_lane(none)] == [(FOUR, f"2 captured fetchers {NOT_DEALT}")]
    ((_, text),) = fetchers_by_lane(some)
    assert text.endswith(f"1 captured fetcher {NOT_DEALT}")


def test_other_lanes_say_nothing_about_fetchers() -> None:
    found = of_lanes(lane("captured", 2), lane("replica.fetch.max.bytes=100KiB", 2, took=1.0))
    assert [*fetchers_lines(found), *fetchers_cards(found)] == []
