"""An aim's lines of the screen: what meets it, what does as well, what binds, and what other settings trade for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Row

from jobs.report_page.advice.aims import aim_settings, aim_text, lanes_of_aim, names_of, said
from jobs.report_page.question import Findings
from jobs.report_page.verdict import labelled
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import settings_of
from jobs.terminal.screen import Grid, grid_lines
from jobs.terminal.wording import changed, counted, lane_label
from schemas.tables.gold_aims import AIM_SETTINGS, TRADE_OFF


def aims_of(found: Findings) -> list[list[Row]]:
    """The rows of each aim together."""
    t, aims = AIM_SETTINGS, dict[object, list[Row]]()
    for row in found.of(aim_settings):
        aims.setdefault((row[t.algorithm], row[t.scope_kind], row[t.scope]), []).append(row)
    return list(aims.values())


def aim_lines(found: Findings) -> Iterator[str]:
    """The lines of all aims of a run."""
    for rows in aims_of(found):
        first = rows[0]
        yield from labelled("AIM", f"{first[AIM_SETTINGS.algorithm]}: {aim_text(first)}")
        for told in aim_told(rows):
            yield from labelled("", told)
        yield from (f"        {line}" for line in grid_lines(trade_off_grid(found, first)))


def aim_told(rows: Sequence[Row]) -> Iterator[str]:
    """What an aim comes to, a sentence each."""
    t, first = AIM_SETTINGS, rows[0]
    figures = [f"{name} {said(first[t.algorithm], name, first[t.outcomes])}" for name in names_of(first)]
    lane = "the captured settings" if first[t.scenario] == CAPTURED_LANE else said_lane(first[t.scenario])
    if first[t.is_met]:
        yield f"met by {lane}: {'; '.join(figures)}"
    else:
        yield f"no setting meets it: relax it to {' or to '.join(first[t.relax])}"
        yield f"nearest is {lane}: {'; '.join(figures)}"
    for row in rows:
        if first[t.is_met] and row[t.value_from] != row[t.value_to]:
            ends = (changed(f"{row[t.setting]}={row[of]}").values() for of in (t.value_from, t.value_to))
            low, high = (next(iter(of)) for of in ends)
            yield f"any {row[t.setting]} from {low} to {high} does as well"
    if first[t.binds]:
        yield f"what binds: {', '.join(first[t.binds])}"
    yield f"{counted(first[t.lanes_replayed], 'lane')} replayed in {counted(first[t.rounds], 'round')}"


def said_lane(lane: str) -> str:
    """The settings of a lane, as people write them."""
    return " and ".join(f"{key}={value}" for key, value in changed(lane).items())


def trade_off_grid(found: Findings, row: Row) -> Grid:
    """The lanes of the trade-off with what they come to in the outcomes that the aim names."""
    t, rows = TRADE_OFF, lanes_of_aim(found, row)
    keys = list(dict.fromkeys(key for of in rows for key in settings_of(of[t.scenario])))
    names = names_of(row) or ["lane"]
    head = ["lane", *names, ""]
    cells = [
        [
            lane_label(of[t.scenario]) if len(keys) == 1 else said_lane(of[t.scenario]) or CAPTURED_LANE,
            *(said(row[t.algorithm], name, of[t.outcomes]) for name in names),
            "chosen" if of[t.is_chosen] else "" if of[t.is_met] else "fails it",
        ]
        for of in rows
    ]
    return Grid(head, cells, ("lane", ""))
