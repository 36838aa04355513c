"""Trends by night: which nights can be compared, and which of their figures are shown and drawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import inf

from pyspark.sql import Row

from jobs.comparison.beside_run import trend_plots
from jobs.comparison.figures import Figure
from jobs.comparison.trend_screen import all_figure_lines, main_figures_grid, trend_lines, trends_json
from jobs.comparison.trends import Name, Night, night_of, night_rows, trend_among
from jobs.report_page.other_runs import OtherRuns
from jobs.report_page.page import page_text
from jobs.report_page.question import Plot
from tests.unit.report.findings import AT, findings, verdict

WAIT, EQUAL, SPLIT = ("client", "longest_wait_ms"), ("replay", "agreement"), ("client", "split_share")


def night(day: int, wait: Figure | None = None, *, minutes: int = 10, cluster: str = "prod", run: str = "") -> Night:
    """The night that is this many days after the first one."""
    first = AT + timedelta(days=day)
    last = first + timedelta(minutes=minutes)
    figures: dict[Name, Figure] = {EQUAL: Figure(0.99, cases=1000)}
    if wait is not None:
        figures[WAIT] = wait
    return Night(run or f"run{day}", f"set{day}", cluster, first, last, first, figures, {WAIT: "app"})


def waits(*ms: float) -> list[Night]:
    """Nights with these longest waits, each with a range of a tenth."""
    return [night(day, Figure(of, of * 0.9, of * 1.1)) for day, of in enumerate(ms)]


def test_nights_of_the_same_cluster_and_about_the_same_length_are_compared() -> None:
    own, other = night(5), night(4, cluster="test")
    found = trend_among(own, [night(1), other, night(2, minutes=4), night(3, minutes=19), own], 10)
    assert [of.run_id for of in found.nights] == ["run1", "run3", "run5"]
    assert found.others == 2


def test_a_capture_set_is_one_night_with_its_newest_run_unless_another_of_its_runs_is_shown() -> None:
    newer = replace(night(1, run="again"), run_at=AT + timedelta(days=9))
    assert [of.run_id for of in trend_among(night(2), [newer, night(1), night(2)], 10).nights] == ["again", "run2"]
    assert [of.run_id for of in trend_among(night(1), [newer, night(1), night(2)], 10).nights] == ["run1", "run2"]


def test_a_table_of_nights_marks_what_changed_by_more_than_both_ranges() -> None:
    grid = main_figures_grid(trend_among(waits(100, 105, 300)[2], waits(100, 105, 300), 10))
    column = [*grid.head].index("longest wait")
    assert [row[column] for row in grid.rows] == ["100 ms", "105 ms", "300 ms*"]
    assert "split" not in grid.head, "no night has producers"


def test_a_night_may_lack_a_figure_and_a_backlog_that_is_never_read_is_named() -> None:
    nights = [night(0), night(1, Figure(inf))]
    lines = [*trend_lines("/lake", trend_among(nights[1], nights, 10))]
    assert lines[0] == "Nights of cluster prod in /lake, the newest last, captured at (UTC)"
    assert " -  " in lines[2]
    assert "not read to its end" in lines[3]
    assert [
        line for line in all_figure_lines(trend_among(nights[1], nights, 10)) if line.startswith("Longest wait")
    ] == ["Longest wait, by client"]
    assert trends_json("/lake", trend_among(nights[1], nights, 10)).nights[1].figures[0].figure is not None


def test_runs_that_are_left_out_are_named_but_no_more_than_twenty() -> None:
    nights = waits(100, 105)
    trend = replace(trend_among(nights[1], nights, 10), incomplete=[f"run{number}" for number in range(10, 40)])
    told = " ".join([*trend_lines("/lake", trend)][-3:])
    assert "left out: run10, run11" in told
    assert "run29, 10 more" in " ".join(told.split())
    assert "run30" not in told


def test_a_figure_that_three_nights_have_is_drawn() -> None:
    drawn = {plot.y.title: plot for plot in trend_plots(trend_among(waits(100, 105, 300)[2], waits(100, 105, 300), 10))}
    assert drawn.keys() == {"longest wait", "results that equal the capture"}
    plot = drawn["longest wait"]
    assert plot.says == "Longest wait: 300 ms in the last of 3 nights, 100 ms in the first."
    assert [(row["at"], row["value"]) for row in plot.rows] == [(0.0, 100.0), (1.0, 105.0), (2.0, 300.0)]
    assert plot.x.title.startswith("days since 2026-01-31")
    nothing = waits(0, 0, 0)
    assert "longest wait" not in {plot.y.title for plot in trend_plots(trend_among(nothing[2], nothing, 10))}
    few = [*waits(100, 105), night(2)]
    assert {plot.y.title for plot in trend_plots(trend_among(few[2], few, 10))} == {"results that equal the capture"}


def test_a_night_comes_out_of_the_table_as_it_went_in() -> None:
    (of,) = waits(100)
    of = replace(of, figures={**of.figures, SPLIT: Figure(0.5, cases=8)})
    rows = [Row(**row) for row in night_rows(of, "code").to_pylist()]
    assert night_of(rows) == of


def test_the_page_has_other_nights_where_there_are_any() -> None:
    without = page_text("/lake", verdict(findings()))
    assert 'id="nights"' not in without
    assert "#nights" not in without
    found = trend_among(waits(100, 105, 300)[2], waits(100, 105, 300), 10)
    plots: list[Plot] = [*trend_plots(found)]
    beside = OtherRuns(
        "run <b>", "compare a b", [("Outcomes", ["app  <i> 1 ms -> 2 ms"])], main_figures_grid(found), plots
    )
    told = page_text("/lake", verdict(findings()), beside)
    own = told.partition('id="nights"')[2].partition('id="glance"')[0]
    assert "run &lt;b&gt;" in own
    assert "&lt;i&gt; 1\N{NO-BREAK SPACE}ms \N{RIGHTWARDS ARROW} 2\N{NO-BREAK SPACE}ms" in own
    assert own.count("<svg") == 2
    assert "300 ms*" in own
    assert '<a href="#nights">' in told


def test_a_page_without_other_nights_has_only_the_comparison() -> None:
    told = page_text("/lake", verdict(findings()), OtherRuns("run a", "compare a b", [("Noise", ["none"])]))
    assert "Compared with run a" in told
    assert "Trends by night" not in told
