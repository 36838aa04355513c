"""An aim's lines on the screen: which setting meets it, which do as well, which constraints bind, and the trade-off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from pyspark.sql import Row

from jobs.report_page.advice.aims import (
    aim_settings,
    aim_text,
    lanes_of_aim,
    outcome_names,
    outcome_text,
    settings_phrase,
)
from jobs.report_page.advice.aims_alone import own_lane_rows, own_lane_text
from jobs.report_page.advice.recommendation import exact_value_text
from jobs.report_page.question import Findings
from jobs.report_page.verdict import labelled_lines
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import setting_of
from jobs.terminal.screen import AS_CAPTURED, WIDTH, Grid, grid_lines
from jobs.terminal.wording import SEPARATOR, changed_settings, quantity
from schemas.tables.gold_aims import AIM_SETTINGS, TRADE_OFF
from schemas.tables.values import OF_CLUSTER

TRADE_OFFS_ELSEWHERE = "what other settings trade for it is in the report, and in the table `trade_off`"
TRADE_OFF_FRAME, FEWEST_LANES = 3, 3
"""The most lines of a trade-off apart from its lanes, and the fewest lanes that are worth showing."""
MOST_HEADING = 45
"""The most characters of the settings' names above a column."""
FARTHER_IN = " " * 8
AS_CAPTURED_NOTE = "- stands for the captured value."


def rows_by_aim(findings: Findings) -> list[list[Row]]:
    """The rows of `aim_settings` of each aim, without those for one client or topic alone."""
    t, aims = AIM_SETTINGS, dict[object, list[Row]]()
    for row in findings.of(aim_settings):
        if row[t.scope_kind] == OF_CLUSTER:
            aims.setdefault(row[t.algorithm], []).append(row)
    return list(aims.values())


def aim_lines(findings: Findings, most: int | None = None) -> list[str]:
    """The lines of all aims of a run; at most `most` lines if that is given.

    If not everything fits, the trade-offs have only the lanes next to the chosen ones, or are left out; the page has
    all of them. If that is still too long, each aim has only its first sentence.
    """
    aims = rows_by_aim(findings)
    results = [result_lines(findings, rows) for rows in aims]

    def with_trade_offs(lanes: int | None) -> list[str]:
        both = ([*lines, *trade_off_lines(findings, rows[0], lanes)] for lines, rows in zip(results, aims, strict=True))
        return [*chain.from_iterable(both)]

    whole = with_trade_offs(None)
    if most is None or len(whole) <= most:
        return whole
    note = labelled_lines("", TRADE_OFFS_ELSEWHERE)
    without = [*chain.from_iterable(results), *note]
    lanes = (most - len(without)) // len(aims) - TRADE_OFF_FRAME
    if lanes >= FEWEST_LANES:
        return [*with_trade_offs(lanes), *note]
    if len(without) <= most:
        return without
    return [*chain.from_iterable(result_lines(findings, rows, sentences=1) for rows in aims), *note]


def result_lines(findings: Findings, rows: Sequence[Row], sentences: int | None = None) -> list[str]:
    """An aim and its result, without its trade-off. rows: those of the aim in `aim_settings`. sentences: how many of
    the sentences are shown; None for all.
    """
    first = rows[0]
    texts = islice(aim_sentences(findings, rows), sentences)
    lines = labelled_lines("AIM", f"{first[AIM_SETTINGS.algorithm]}: {aim_text(first)}")
    return [*lines, *(line for text in texts for line in labelled_lines("", text))]


def aim_sentences(findings: Findings, rows: Sequence[Row]) -> Iterator[str]:
    """The sentences on an aim's result. rows: those of the aim in `aim_settings`."""
    t, first = AIM_SETTINGS, rows[0]
    figures = [f"{name} {outcome_text(first[t.algorithm], name, first[t.outcomes])}" for name in outcome_names(first)]
    lane = settings_phrase(first[t.scenario])
    if first[t.is_met]:
        yield f"met by {lane}: {'; '.join(figures)}"
    else:
        yield f"no setting meets it: relax it to {' or to '.join(first[t.relax])}"
        yield f"nearest is {lane}: {'; '.join(figures)}"
    for row in rows:
        if first[t.is_met] and row[t.value_from] != row[t.value_to]:
            low, high = (setting_value_text(row[t.setting], row[end]) for end in (t.value_from, t.value_to))
            yield f"any {row[t.setting]} from {low} to {high} does as well"
    if first[t.binds]:
        yield f"what binds: {', '.join(first[t.binds])}"
    yield from (own_lane_text(findings, row) for row in own_lane_rows(findings, first[t.algorithm]))
    yield f"{quantity(first[t.lanes_replayed], 'lane')} replayed in {quantity(first[t.rounds], 'round')}"


def setting_value_text(key: str, text: str) -> str:
    """A setting's value as text. text: the value as for --set."""
    return exact_value_text(key, str(setting_of(key).parse(text)))


def trade_off_lines(findings: Findings, row: Row, lanes: int | None = None) -> list[str]:
    """The trade-off as lines. The names of settings are below it if it would be wider than the screen otherwise. lanes:
    for how many lanes there is room; None for all.
    """
    rows = lanes_near_chosen(lanes_of_aim(findings, row), lanes)
    above, below = (
        [f"{FARTHER_IN}{line}" for line in grid_lines(trade_off_grid(row, rows, most), width=WIDTH - len(FARTHER_IN))]
        for most in (MOST_HEADING, 0)
    )
    return above if max(map(len, above), default=0) <= WIDTH else below


def lanes_near_chosen(rows: Sequence[Row], lanes: int | None) -> Sequence[Row]:
    """At most this many of a trade-off's lanes, with the chosen one in the middle if possible. lanes: None for all."""
    if lanes is None or len(rows) <= lanes:
        return rows
    chosen = next((place for place, row in enumerate(rows) if row[TRADE_OFF.is_chosen]), 0)
    first = max(0, min(chosen - lanes // 2, len(rows) - lanes))
    return rows[first : first + lanes]


def trade_off_grid(row: Row, rows: Sequence[Row], most: int = MOST_HEADING) -> Grid:
    """Lanes of the trade-off with those outcomes that the aim names.

    row: of `aim_settings`. rows: of `trade_off`. most: the most characters of the settings' names above their column;
    longer names are in a note.
    """
    t, names = TRADE_OFF, outcome_names(row)
    heading, labels, notes = lanes_column([of[t.scenario] for of in rows], most)
    chosen = "chosen" if row[AIM_SETTINGS.is_met] else "nearest"
    cells = [
        [
            label,
            *(outcome_text(row[t.algorithm], name, of[t.outcomes]) for name in names),
            chosen if of[t.is_chosen] else "" if of[t.is_met] else "fails it",
        ]
        for label, of in zip(labels, rows, strict=True)
    ]
    return Grid((heading, *names, ""), cells, (heading, ""), notes)


def lanes_column(lanes: Sequence[str], most: int = MOST_HEADING) -> tuple[str, list[str], list[str]]:
    """(heading, cells, notes) of a column of lanes. The heading has the settings' names, so that cells need only
    values; names longer than `most` are in a note instead.
    """
    names, values = settings_and_values(lanes)
    cells = [AS_CAPTURED if lane == CAPTURED_LANE else of for lane, of in zip(lanes, values, strict=True)]
    as_captured = [AS_CAPTURED_NOTE] if any("-" in cell.split(SEPARATOR) for cell in cells) else []
    if len(names) <= most:
        return names, cells, as_captured
    return "lane", cells, [f"A lane is named by its values of {names}.", *as_captured]


def settings_and_values(lanes: Sequence[str]) -> tuple[str, list[str]]:
    """(the names of all settings that the lanes change, the values of these in each lane). A value is `-` if the lane
    does not change the setting.
    """
    by_lane = [changed_settings(lane) if lane != CAPTURED_LANE else {} for lane in lanes]
    names = list(dict.fromkeys(chain(*sorted(by_lane, key=len, reverse=True))))
    values = [SEPARATOR.join(of.get(name, "-") for name in names) for of in by_lane]
    return SEPARATOR.join(names) or "lane", values
