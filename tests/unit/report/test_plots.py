"""Plots: ticks in the units that people use, colours that suit a dark screen, and no markup from outside."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import get_args

import pytest

from jobs.report_page.axes import (
    CHARACTER,
    WIDTH,
    axis_reach,
    doubling_ticks,
    room_below,
    room_beside,
    round_byte_ticks,
)
from jobs.report_page.charts import COLOURS, GRID, INK, MOST_TOUCHED, MUTED, SYMBOL, plot_svg
from jobs.report_page.page import TEMPLATES
from jobs.report_page.question import Axis, Mark, Plot

EVIL = "<script>alert(1)</script>&\"'"
LANES = [{"lane": "captured", "wait": 105.0}, {"lane": "1 MiB", "wait": 0.0}]
BY_LANE = Plot("waits", "bar", LANES, Axis("wait", "longest wait", "ms"), Axis("lane", "fetch.max.bytes", "name"))


def texts(drawn: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawn)


def over_bytes(high: int) -> Plot:
    rows = [{"bytes": count, "share": 0.5} for count in (0, high)]
    return Plot("held", "step", rows, Axis("bytes", "held", "bytes"), Axis("share", "of the time", "percent"))


@pytest.mark.parametrize("high", [7, 1000, 65_536, 700_000, 3 << 20, 5 << 30])
def test_bytes_have_few_ticks_at_round_binary_values(high: int) -> None:
    ticks = round_byte_ticks(high)
    assert 2 <= len(ticks) <= 6
    assert ticks[0] == 0
    assert high * 0.6 < ticks[-1] <= high
    assert ticks[1].hex().startswith("0x1.0000000000000p")


def test_doublings_stay_within_their_reach_and_are_few() -> None:
    ticks = doubling_ticks(100, 2**40)
    assert 100 <= ticks[0] < ticks[-1] <= 2**40
    assert len(ticks) <= 7
    assert {later / earlier for earlier, later in pairwise(ticks)} == {ticks[1] / ticks[0]}


def test_ticks_are_written_with_their_units() -> None:
    told = texts(plot_svg(over_bytes(3 << 20)))
    assert {"1 MiB", "2 MiB", "3 MiB", "50 %"} <= set(told)
    assert [text for text in told if re.search(r"\d{5}", text)] == []


def test_an_axis_of_counts_has_no_tick_between_two_counts() -> None:
    rows = [{"since": 0.0, "replicas": 0}, {"since": 1.2, "replicas": 2}]
    told = texts(
        plot_svg(Plot("replicas", "step", rows, Axis("since", "seconds", "time"), Axis("replicas", "n", "count")))
    )
    assert told[told.index("seconds") + 1 : -1] == ["0", "1", "2"]
    assert "0.4" in told


def test_names_below_a_plot_leave_room_for_their_neighbours() -> None:
    names = [f"a-consumer-with-a-long-name-{n}" for n in range(8)]
    rows = [{"evictor": evictor, "victim": victim, "n": 1} for evictor in names for victim in names]
    plot = Plot("who", "heat", rows, Axis("victim", "", "name"), Axis("evictor", "", "name"), Axis("n", "n", "count"))
    # A browser's font may be a quarter wider than the one by which names are cut.
    assert room_below(plot) * 1.25 * len(names) < WIDTH - room_beside(plot)


def test_names_of_a_legend_end_before_the_next_symbol_in_whichever_font() -> None:
    name = "orders-to-audit"
    rows = [{"at": at, "n": at, "of": f"{name}-{of}"} for at in (1, 2) for of in ("1", "2")]
    plot = Plot("p", "line", rows, Axis("at", "", "time"), Axis("n", "n", "count"), Axis("of", "of", "name"))
    entries = plot_svg(plot).partition("role-legend-entry")[2]
    (second,) = {float(at) for at in re.findall(r'<g transform="translate\(([\d.]+),0\)"><path class', entries)} - {0.0}
    assert second > SYMBOL + CHARACTER * len(f"{name}-1")


def test_beside_long_names_there_are_fewer_ticks() -> None:
    def ticks(name: str) -> int:
        rows = [{"metric": name, "share": 1.0}]
        drawn = plot_svg(Plot("p", "bar", rows, Axis("share", "", "percent"), Axis("metric", "", "name")))
        return sum(text.endswith("%") for text in texts(drawn))

    assert (ticks("bytes"), ticks("bytes " * 6)) == (6, 3)


def test_unknown_results_have_a_colour_that_no_other_results_have() -> None:
    rows = [{"metric": "bytes", "share": 0.5, "verdict": verdict} for verdict in ("equal", "unknown")]
    plot = Plot("f", "bar", rows, Axis("share", "", "percent"), Axis("metric", "", "name"), Axis("verdict", "", "name"))
    assert re.findall(r'<path d="[^"]*" fill="(#\w+)"><title>', plot_svg(plot)) == [COLOURS[0], MUTED]


def test_lanes_stand_in_their_own_order_under_the_setting_that_they_change() -> None:
    told = texts(plot_svg(BY_LANE))
    assert told.index("captured") < told.index("1 MiB")
    assert "fetch.max.bytes" in told


@pytest.mark.parametrize("mark", get_args(Mark))
def test_a_name_from_the_wire_is_text_wherever_it_stands(mark: Mark) -> None:
    rows = [{"topic": EVIL, "count": 3, "client": EVIL + str(i), "x": i, "low": 2, "high": 4} for i in (1, 2)]
    name, count = Axis("topic", EVIL, "name"), Axis("count", "count", "count")
    colour = Axis("count", "n", "count") if mark == "heat" else Axis("client", EVIL, "name")
    x = {"heat": Axis("client", EVIL, "name"), "line": Axis("x", "x", "count"), "step": Axis("x", "x", "count")}
    plot = Plot("plot", mark, rows, x.get(mark, count), count if mark in ("line", "step") else name, colour)
    drawn = plot_svg(plot)
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn


def titles(drawn: str) -> list[str]:
    return re.findall(r"<title>([^<]*)</title>", drawn)


def test_a_mark_shows_its_values_with_units_under_the_pointer() -> None:
    assert titles(plot_svg(BY_LANE)) == ["captured; longest wait: 105 ms", "1 MiB; longest wait: 0 ms"]
    assert titles(plot_svg(over_bytes(3 << 20))) == [
        "held: 0; of the time: 50.0 %",
        "held: 3.0 MiB; of the time: 50.0 %",
    ]
    took = [{"lane": "captured", "took": 146.0, "low": 120.0, "high": 2400.0}]
    plot = Plot("took", "interval", took, Axis("took", "catch-up", "ms"), Axis("lane", "lane", "name"))
    assert set(titles(plot_svg(plot))) == {"captured; catch-up: 146 ms (120 ms to 2.4 s)"}


def test_only_some_points_of_a_long_curve_show_their_values_so_that_the_page_stays_small() -> None:
    rows = [{"at": float(at), "n": at} for at in range(1000)]
    drawn = plot_svg(Plot("p", "step", rows, Axis("at", "seconds", "time"), Axis("n", "n", "count")))
    assert MOST_TOUCHED / 2 < len(titles(drawn)) <= MOST_TOUCHED
    assert titles(drawn)[0] == "seconds: 0; n: 0"


def test_an_interval_reaches_from_its_low_to_its_high_end() -> None:
    rows = [{"lane": "captured", "took": 200.0, "low": 100.0, "high": 400.0}]
    plot = Plot("took", "interval", rows, Axis("took", "catch-up", "ms"), Axis("lane", "lane", "name"))
    assert axis_reach(plot, plot.x) == (100.0, 400.0)
    drawn = plot_svg(plot)
    (band,) = (float(end) for end in re.findall(r'mark-rect role-mark[^>]*>.*?d="M[^h]*h([\d.]+)', drawn)[:1])
    whole = WIDTH - room_beside(plot)
    assert 0.6 * whole < band < 0.9 * whole


def test_a_histogram_stacks_its_colours_and_draws_the_limit() -> None:
    rows = [{"bytes": 1024.0, "until": 2048.0, "batches": n, "answer": a} for n, a in ((3, "taken"), (4, "refused"))]
    plot = Plot(
        "sizes", "bar", rows, Axis("bytes", "bytes", "bytes", log=True), Axis("batches", "batches", "count"),
        Axis("answer", "answer", "name"), (1500.0, "max.message.bytes"),
    )  # fmt: skip
    told = texts(plot_svg(plot))
    assert {"taken", "refused", "max.message.bytes"} <= set(told)
    assert max(int(text) for text in told if text.isdigit()) >= 6


def test_a_diagonal_is_labelled_as_where_both_axes_are_equal() -> None:
    rows = [{"estimated": 0.5, "had": 0.9, "batches": "some split"}, {"estimated": 0.6, "had": 0.6, "batches": "taken"}]
    plot = Plot(
        "ratios", "point", rows, Axis("estimated", "estimated", "ratio"), Axis("had", "had", "ratio"),
        Axis("batches", "batches", "name"), diagonal="as estimated",
    )  # fmt: skip
    assert {"as estimated", "some split", "taken"} <= set(texts(plot_svg(plot)))
    assert "as estimated" not in texts(plot_svg(replace(plot, diagonal="")))


def test_every_colour_of_a_plot_has_another_on_a_dark_screen() -> None:
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    dark = style[style.index("prefers-color-scheme: dark") :]
    used = re.findall(r"(fill|stroke)=\"(#[0-9a-f]{6})\"", "".join(plot_svg(plot) for plot in (BY_LANE, over_bytes(9))))
    assert [f"{of} {colour}" for of, colour in used if f'svg [{of}="{colour}"]' not in dark] == []
    assert [colour for colour in (*COLOURS, INK, MUTED, GRID) if colour not in dark] == []


def test_the_same_rows_give_the_same_bytes() -> None:
    assert plot_svg(BY_LANE) == plot_svg(BY_LANE)
