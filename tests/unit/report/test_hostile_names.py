"""Topics and clients may have any name. Screen, page and plots show it as text, and it has no other effect."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from jobs.report_page.charts import plot_svg
from jobs.report_page.page import TEMPLATES, page_text
from jobs.report_page.question import Axis, Plot
from jobs.report_page.summary import run_summary
from jobs.terminal.screen import WIDTH, Grid, grid_lines, printable_text
from tests.unit.report.findings import known, verdict
from tests.unit.report.hostile import NAMES, named

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\N{LINE SEPARATOR}\N{RIGHT-TO-LEFT OVERRIDE}]")

SCRIPT = (TEMPLATES / "page.js").read_text(encoding="utf-8")


class Text(HTMLParser):
    """The elements of a page, their handlers, its scripts, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.handlers: list[str] = []
        self.scripts: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts.append(data)
        self.text += data


def plotted(name: str) -> str:
    rows = [{"topic": name, "count": 3, "client": name + str(i)} for i in (1, 2)]
    axes = (Axis("count", "count", "count"), Axis("topic", "topic", "name"), Axis("client", "client", "name"))
    return plot_svg(Plot("counts", "bar", rows, *axes))


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_page_shows_the_name_and_has_no_element_or_handler_from_it(name: str) -> None:
    told = Text()
    told.feed(page_text("/lake", verdict(named(name))))
    assert printable_text(name) in told.text
    assert told.scripts == [SCRIPT]
    assert "img" not in told.elements
    assert told.handlers == []
    assert OBEYED.search(told.text) is None


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_plot_shows_the_name_as_text(name: str) -> None:
    drawn = plotted(name)
    elements = Text()
    elements.feed(drawn)
    assert elements.elements.isdisjoint({"script", "img", "style"})
    assert drawn.count("</svg>") == 1
    assert OBEYED.search(drawn) is None


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_moves_no_cursor_in_the_summary(name: str) -> None:
    told = run_summary("/lake", known(), named(name))
    assert "which sent most, half of the responses" in " ".join(told.split())
    assert OBEYED.search(told) is None


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_row_of_the_screen_stays_a_line_of_bounded_length(name: str) -> None:
    _, row = grid_lines(Grid(("topic", "count"), [[name, "3"]], ("topic",)))
    assert OBEYED.search(row) is None
    assert len(row) <= len("    ") + WIDTH + len("count")


def test_printable_names_stay_as_they_are() -> None:
    assert [name for name in ("orders", "\N{UNICORN FACE}", "größe") if printable_text(name) != name] == []


def test_escaped_characters_can_be_read_back() -> None:
    assert json.loads(f'"{printable_text(chr(0x202E))}"') == chr(0x202E)
    assert printable_text("a\x1b[2J\n") == r"a\x1b[2J\n"
