"""What screen and page say about lanes in which records are produced faster, or groups have more members."""

from __future__ import annotations

from pyspark.sql import Row

from jobs.replays.consumer_memory.answers import lanes
from jobs.replays.fetch_max_bytes.answers import closed_lanes
from jobs.replays.session_cache.answers import grown_lanes, slot_needs
from jobs.report_page.advice.floors import metrics_below_floor
from jobs.report_page.cards import growth_cards
from jobs.report_page.consumer_memory.growth import memory_by_traffic
from jobs.report_page.consumer_memory.needed_memory import consumers_by_lane
from jobs.report_page.fetch_max_bytes.fairness import consumers_under_limits
from jobs.report_page.fetch_max_bytes.growth import ALIKE, BESIDE_LIVE_RUNS, EXTRAPOLATED, growth_by_lane
from jobs.report_page.question import Findings
from jobs.report_page.session_cache.growth import slots_by_traffic
from jobs.report_page.verdict import growth_lines
from schemas.tables import algorithms
from schemas.tables.gold_sessions import SESSION_SLOTS
from tests.unit.report.findings import findings

TWICE, FOUR_TIMES, MORE = "traffic.speed=2", "traffic.speed=4", "traffic.consumers=2"
KIB = 1024


def lane(
    name: str, wait: float = 0.0, end_lag: tuple[int, int, int] = (0, 0, 0), never: bool = False, held: int = 0
) -> Row:  # fmt: skip
    """The results of consumers in a lane. end_lag: at the captured pace, and its p10 and p90."""
    within = {**dict(zip(("value", "p10", "p90"), map(float, end_lag), strict=True)), "client_id": "slow-reader"}
    return Row(
        reader="consumer", scenario=name, took=None if never else 100.0, never=never, catch_up_ms_range=None,
        longest=(wait, "t-0"), longest_wait_ms_range=None, end_lag_bytes_range=Row(**within), held=held,
        held_bytes_range=None,
    )  # fmt: skip


def of_lanes(*rows: Row) -> Findings:
    names = tuple(row["scenario"] for row in rows)
    return findings({closed_lanes: list(rows)}, {algorithms.FETCH_MAX_BYTES: names})


def test_bytes_that_are_not_read_at_the_end_are_shown_with_the_consumer_that_does_not_keep_up() -> None:
    found = of_lanes(lane("captured"), lane(TWICE), lane(FOUR_TIMES, end_lag=(300 * KIB, 200 * KIB, 500 * KIB)))
    assert [*growth_by_lane(found)] == [
        (TWICE, ALIKE),
        (FOUR_TIMES, "not read at the end of slow-reader 0 -> 300.0 KiB (200.0 to 500.0 KiB)"),
    ]


def test_lanes_that_do_not_differ_at_any_pace_are_called_alike() -> None:
    captured = lane("captured", end_lag=(100 * KIB, 50 * KIB, 200 * KIB))
    assert [*growth_by_lane(of_lanes(captured, lane(TWICE, end_lag=(300 * KIB, 150 * KIB, 500 * KIB))))] == [
        (TWICE, ALIKE)
    ]


def test_a_backlog_that_is_never_read_and_longer_waits_are_shown() -> None:
    found = of_lanes(lane("captured"), lane(TWICE, wait=40.0, never=True))
    assert [*growth_by_lane(found)] == [(TWICE, "catch-up 100 ms -> not all; longest wait 0 ms -> 40 ms")]


def test_what_more_consumers_change_is_shown_as_well() -> None:
    captured = lane("captured", end_lag=(300 * KIB, 200 * KIB, 500 * KIB))
    assert [*growth_by_lane(of_lanes(captured, lane(MORE)))] == [
        (MORE, "not read at the end 300.0 KiB (200.0 to 500.0 KiB) -> 0")
    ]


def test_more_memory_that_is_held_is_shown() -> None:
    found = of_lanes(lane("captured", held=KIB), lane(TWICE, held=3 * KIB), lane(FOUR_TIMES, held=KIB))
    assert [*growth_by_lane(found)] == [(TWICE, "most held 1.0 KiB -> 3.0 KiB"), (FOUR_TIMES, ALIKE)]


def of_consumers(name: str, most: int, waits: int = 0, stuck: int = 0) -> Row:
    """The results of consumers' pools of memory in a lane."""
    return Row(of="consumers", scenario=name, most_in_loop=most, waits=waits, longest=25.0, stuck=stuck, left_out=0)


def test_the_memory_that_consumers_hold_with_more_traffic_is_said_or_who_waits_for_a_pool() -> None:
    pool = "consumer.buffer.memory=16MiB"
    rows = [
        of_consumers("captured", KIB), of_consumers(pool, KIB), of_consumers(MORE, 2 * KIB),
        of_consumers(f"{pool},{MORE}", 2 * KIB), of_consumers(f"{pool},{TWICE}", 0, waits=3),
        of_consumers(f"{pool},{FOUR_TIMES}", 0, waits=3, stuck=1),
    ]  # fmt: skip
    names = {algorithms.CONSUMER_MEMORY: tuple(row["scenario"] for row in rows)}
    found = findings({lanes: rows}, names)
    assert memory_by_traffic(found) == [
        (MORE, "a consumer holds up to 2.0 KiB of responses"),
        ("buffer.memory=16 MiB and traffic.consumers=2", "nothing waits for memory"),
        ("buffer.memory=16 MiB and traffic.speed=2", "3 responses wait up to 25 ms"),
        ("buffer.memory=16 MiB and traffic.speed=4", "1 connection gets stuck"),
    ]
    assert [row["scenario"] for row in consumers_by_lane(found)] == ["captured", pool]
    assert [card.question for card in growth_cards(found)] == [1]


def test_more_consumers_need_more_slots_however_many_a_lane_has() -> None:
    s = SESSION_SLOTS
    slots, other = "broker.max.incremental.fetch.session.cache.slots=8", "broker.NumFetchSessionCacheShards=1"
    names = (f"{slots},{MORE}", f"{other},traffic.consumers=4", f"{MORE},{TWICE}")
    slots_needed = zip(names, (32, 20, 40), strict=True)
    rows = [Row(**{s.scenario: name, s.enough_slots: needed}) for name, needed in slots_needed]
    needs = [Row(**{s.enough_slots: 16})]
    found = findings({grown_lanes: rows, slot_needs: needs}, {algorithms.SESSION_CACHE: ("captured", slots, *names)})
    assert slots_by_traffic(found) == [
        (MORE, "fetch-session slots that are enough 16 -> 32"),
        (f"{MORE} and {TWICE}", "fetch-session slots that are enough 16 -> 40"),
    ]
    assert next(growth_lines(found)) == f"GROWTH    {MORE}  fetch-session slots that are enough 16 -> 32"
    (card,) = growth_cards(found)
    assert (card.title, card.question) == ("brokers", 9)


def test_screen_and_page_say_how_sure_the_results_are() -> None:
    found = of_lanes(lane("captured"), lane(TWICE, wait=40.0))
    first, *rest = growth_lines(found)
    assert first.startswith("GROWTH    traffic.speed=2  longest wait 0 ms -> 40 ms")
    (card,) = growth_cards(found)
    assert EXTRAPOLATED in " ".join(line.strip() for line in rest)
    assert ("Sure", f"{EXTRAPOLATED}; {BESIDE_LIVE_RUNS}") in card.terms


def test_the_screen_says_so_if_the_captured_lane_is_far_from_the_capture() -> None:
    of = {"algorithm": algorithms.FETCH_MAX_BYTES, "metric": "closed_loop_bytes", "reader": "consumer"}
    low = Row(**of, checked=40, agreed=30, floor=0.9)
    captured, twice = lane("captured"), lane(TWICE, wait=40.0)
    names = {algorithms.FETCH_MAX_BYTES: (captured["scenario"], TWICE)}
    found = findings({closed_lanes: [captured, twice], metrics_below_floor: [low]}, names)
    told = " ".join(line.strip() for line in [*growth_lines(found)][1:])
    assert "closed loop bytes of consumers equal the capture in 75.00 % of 40, below 90.0 %" in told


def test_without_lanes_of_growth_nothing_is_said() -> None:
    found = of_lanes(lane("captured"), lane("consumer.fetch.max.bytes=1MiB"))
    assert [*growth_lines(found), *growth_cards(found)] == []


def test_more_traffic_is_not_taken_for_a_setting_that_makes_waits_shorter() -> None:
    found = of_lanes(
        lane("captured"), lane("traffic.speed=0.5"), lane(MORE), lane("consumer.fetch.max.bytes=1MiB")
    )  # fmt: skip
    assert [row["scenario"] for row in consumers_under_limits(found)] == ["captured", "consumer.fetch.max.bytes=1MiB"]
