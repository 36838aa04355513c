"""Bytes that a reader holds are shown with their range, and with how many equal runs lay in such ranges."""

from __future__ import annotations

from pyspark.sql import Row

from jobs.replays.fetch_max_bytes.answers import closed_lanes, closed_table
from jobs.replays.fetch_max_bytes.ranges import CATCH_UP_IS_TOO_NARROW
from jobs.report_page.consumer_memory.needed_memory import other_limits_text
from jobs.report_page.fetch_max_bytes.catch_up import held_table
from jobs.report_page.question import Findings
from jobs.terminal.lane_rows import NO_ROW
from schemas.tables import algorithms
from tests.unit.report.findings import findings, sentence

LANES = ("captured", "consumer.fetch.max.bytes=50MiB")
NARROW = "uch a range contained only 70 % of equal runs of consumers in the lab, and should contain 80 %."


def lane(
    name: str,
    held: int,
    within: tuple[float, float] | None = None,
    reader: str = "consumer",
    took: tuple[float, float] | None = None,
) -> Row:
    """A row of the query `closed_lanes`."""
    return Row(
        reader=reader, scenario=name, took=9.0, never=False, given_up=0, waiting=0, requests=9, cut=0,
        longest=Row(longest_wait_ms=0.0, partition="orders-7"), held=held, bound=9 << 20, own_bound=8 << 20,
        catch_up_ms_range=took and Row(p10=took[0], p90=took[1]), longest_wait_ms_range=None,
        held_bytes_range=within and Row(p10=within[0], p90=within[1]),
    )  # fmt: skip


def found(rows: list[Row]) -> Findings:
    """A run with these rows of the closed loop."""
    return findings({closed_lanes: rows}, {algorithms.FETCH_MAX_BYTES: LANES})


RANGED = [lane(LANES[0], 500), lane(LANES[1], 2048, (1024.0, 4096.0))]
EXACT = [lane(LANES[0], 500), lane(LANES[1], 2048, (2048.0, 2048.0))]


def test_the_screen_has_the_range_and_how_many_equal_runs_lie_in_such_a_range() -> None:
    table = closed_table(RANGED, LANES)
    held = [row[list(table.head).index("held")] for row in table.rows]
    assert held == ["500 B", "2.0 KiB (1.0 to 4.0 KiB)"]
    assert table.notes[-2:] == (f"held: s{NARROW}", NO_ROW)


def test_followers_have_a_figure_of_their_own() -> None:
    rows = [lane(name, 2048, (1024.0, 4096.0), reader) for name in LANES for reader in ("consumer", "follower")]
    said = [note for note in closed_table(rows, LANES).notes if note.startswith("held: ")]
    assert said[0] == f"held: s{NARROW}"
    assert said[1:] == [f"held: s{NARROW.replace('70', '50').replace('consumers', 'followers')}"]


def test_the_range_of_a_catch_up_is_shown_with_how_many_equal_runs_lie_in_such_a_range() -> None:
    rows = [lane(name, 500, took=(5.0, 20.0)) for name in LANES]
    says = f"catch-up: {CATCH_UP_IS_TOO_NARROW}."
    assert closed_table(rows, LANES).notes[-2:] == (says, NO_ROW)
    assert held_table(found(rows)).notes[1:] == (says,)


def test_the_page_has_the_figure_in_the_answer_and_below_the_table() -> None:
    told = sentence(found(RANGED), 6)
    assert f"A consumer holds up to 500 B of records meanwhile. S{NARROW} It can hold at most 8.0 MiB" in told
    table = held_table(found(RANGED))
    assert [row[2] for row in table.rows] == ["500 B", "2.0 KiB (1.0 to 4.0 KiB)"]
    assert table.notes[1:] == (f"held: s{NARROW}",)


def test_the_answer_on_memory_has_the_figure_too() -> None:
    told = other_limits_text(found(RANGED))
    assert "a consumer holds at most 2.0 KiB (1.0 to 4.0 KiB) of records with fetch.max.bytes=50 MiB. It holds" in told
    assert told.endswith(f". S{NARROW[:-1]}")


def test_memory_that_is_the_same_at_any_pace_has_no_range() -> None:
    texts = [*closed_table(EXACT, LANES).notes, sentence(found(EXACT), 6), *held_table(found(EXACT)).notes]
    assert not [text for text in (*texts, other_limits_text(found(EXACT))) if "equal runs" in text or "(2.0" in text]
