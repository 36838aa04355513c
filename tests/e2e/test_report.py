"""The page as a user sees it: written by the command, opened from disk, wide and narrow, light and dark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from jobs.cli import run_command
from jobs.report_page.page import TEMPLATES, page_text
from jobs.report_page.questions import QUESTIONS
from tests.e2e.conftest import CapturedLake
from tests.unit.report.findings import verdict
from tests.unit.report.hostile import NAMES, named

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDE, NARROW = 1280, 390
SIZE_LIMIT = 3 << 20
SCRIPT = (TEMPLATES / "page.js").read_text(encoding="utf-8")
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
CELLS_OVER = """[...document.querySelectorAll("td")].filter(of => of.scrollWidth > of.clientWidth + 1)
  .map(of => of.textContent.slice(0, 40))"""
Scheme = Literal["light", "dark"]


@pytest.fixture(scope="module")
def lake(captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured("starve")


@pytest.fixture(scope="module")
def written(lake: CapturedLake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page that the command writes for the lake."""
    path = tmp_path_factory.mktemp("report") / "a report.html"
    assert run_command(["report", f"--lake={lake.path}", f"--out={path}"]) == 0
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's own browser. Tests are skipped if there is none."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on PATH")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=quiet)
        yield browser
        browser.close()


SCREENS = pytest.mark.parametrize(
    "screen", [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light")], ids=["wide", "dark", "narrow"]
)


@pytest.fixture
def opened(browser: Browser, written: Path, screen: tuple[int, Scheme]) -> Iterator[Page]:
    """The page of the lake, opened."""
    with shown(browser, written, screen) as found:
        yield found


@contextmanager
def shown(browser: Browser, written: Path, screen: tuple[int, Scheme]) -> Iterator[Page]:
    """A page, opened from disk. It may log nothing to the console and ask nothing of a network."""
    width, scheme = screen
    opened = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    told: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        told.append(f"console: {message.text}")

    def on_request(request: Request) -> None:
        if not request.url.startswith(("file:", "data:")):
            told.append(f"request: {request.url}")

    opened.on("console", on_console)
    opened.on("pageerror", lambda fault: told.append(f"error: {fault}"))
    opened.on("dialog", lambda dialog: told.append(f"dialog: {dialog.message}"))
    opened.on("request", on_request)
    opened.goto(written.as_uri())
    yield opened
    opened.close()
    assert told == []


@SCREENS
def test_the_page_is_complete_and_nothing_is_wider_than_the_screen(opened: Page) -> None:
    for details in opened.locator("summary").all():
        details.click()
    assert opened.locator("article").count() == len(QUESTIONS)
    assert opened.locator("article.open .answer").all_inner_texts() != [""]
    assert opened.locator("figure svg").count() > 5
    assert opened.evaluate(FITS)


@SCREENS
def test_names_from_the_wire_run_no_code_and_fit(browser: Browser, screen: tuple[int, Scheme], tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(page_text("/lake", verdict(named(*NAMES.values()))), encoding="utf-8")
    with shown(browser, path, screen) as opened:
        for details in opened.locator("summary").all():
            details.click()
        assert opened.evaluate(FITS)
        assert opened.evaluate(CELLS_OVER) == []
        assert opened.locator("script").all_text_contents() == [SCRIPT]
        assert opened.locator("img").count() == 0


@SCREENS
def test_the_filter_finds_a_client_in_tables_and_plots(opened: Page) -> None:
    rows = opened.locator("#clients tbody tr, article tbody tr")
    everything = rows.count()
    opened.get_by_label("Show only").fill("perf-consumer backlog-7")
    left = rows.and_(opened.locator(":not(.filtered)")).all_text_contents()
    assert 0 < len(left) < everything
    assert [row for row in left if "perf-consumer" not in row or "backlog-7" not in row] == []
    marks = opened.locator("figure svg :not(.filtered) > title").all_text_contents()
    assert marks
    assert [mark for mark in marks if "perf-consumer" not in mark or "backlog-7" not in mark] == []
    opened.locator("#filtered a").first.click()
    assert opened.locator("article:target .answer").is_visible()
    opened.get_by_role("button", name="All").click()
    # Not wait_for_function: when it polls again, it evaluates a string, which the page forbids.
    expect(opened.locator(".filtered, .without, #filter.on")).to_have_count(0)


@SCREENS
def test_no_text_of_a_plot_leaves_its_plot(opened: Page) -> None:
    """Labels are drawn in the browser's font, which may be wider than the font that they were measured in."""
    outside = """() => [...document.querySelectorAll("figure svg")].flatMap(svg => {
      const frame = svg.getBoundingClientRect();
      return [...svg.querySelectorAll("text")].filter(text => {
        const box = text.getBoundingClientRect();
        return box.left < frame.left - 1 || box.right > frame.right + 1;
      }).map(text => text.textContent);
    })"""
    assert opened.evaluate(outside) == []


@SCREENS
def test_no_text_of_a_plot_touches_another(opened: Page) -> None:
    touching = """() => [...document.querySelectorAll("figure svg")].flatMap(svg => {
      const texts = [...svg.querySelectorAll("text, .role-legend-symbol path")].filter(of => of.getBBox().width)
        .map(of => [of.textContent, of.getBoundingClientRect()]);
      return texts.flatMap(([name, a], i) => texts.slice(i + 1).filter(([, b]) =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > -a.height / 6
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > a.height / 2).map(([other]) => [name, other]));
    })"""
    assert opened.evaluate(touching) == []


@SCREENS
def test_a_table_that_is_wider_than_the_screen_is_moved_by_the_keyboard(opened: Page) -> None:
    for details in opened.locator("summary").all():
        details.click()
    wide = [box for box in opened.get_by_role("region").all() if box.evaluate("of => of.scrollWidth > of.clientWidth")]
    for box in wide:
        # In this browser, Tab stops at everything that scrolls. In others it stops only where the page says so.
        assert box.evaluate("of => of.tabIndex") == 0
        box.focus()
        opened.keyboard.press("ArrowRight")
        expect(box).not_to_have_js_property("scrollLeft", 0)
        assert box.evaluate("of => of.scrollLeft") > 0
        assert box.evaluate("of => of.getBoundingClientRect().right <= document.documentElement.clientWidth")
    assert wide


@SCREENS
def test_text_stands_out_from_the_page(opened: Page) -> None:
    """The contrast is at least WCAG's 4.5 to 1, also in plots and on a dark screen."""
    faint = """() => {
      const light = rgb => {
        const [r, g, b] = rgb.match(/\\d+/g).slice(0, 3).map(n => n / 255)
          .map(n => n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const page = light(getComputedStyle(document.body).backgroundColor);
      const contrast = rgb => {
        const [high, low] = [light(rgb), page].sort((a, b) => b - a);
        return (high + 0.05) / (low + 0.05);
      };
      const told = [...document.querySelectorAll("p, li, dd, td, figure svg text")].filter(of => of.textContent.trim());
      return told.filter(of => contrast(getComputedStyle(of)[of.closest("svg") ? "fill" : "color"]) < 4.5)
        .map(of => of.textContent.slice(0, 40));
    }"""
    assert opened.evaluate(faint) == []


def test_the_page_is_small_and_the_same_when_written_again(lake: CapturedLake, written: Path, tmp_path: Path) -> None:
    assert (
        run_command(["report", f"--lake={lake.path}", f"--out={tmp_path / 'again.html'}", f"--run={lake.run_id}"]) == 0
    )
    assert (tmp_path / "again.html").read_bytes() == written.read_bytes()
    assert written.stat().st_size < SIZE_LIMIT


def test_an_unknown_run_is_refused_with_the_names_of_known_ones(
    lake: CapturedLake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["report", f"--lake={lake.path}", f"--out={tmp_path / 'x.html'}", "--run=gone"]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told == f"refetch: {lake.path}: no run gone; the newest are {lake.run_id}"
    assert not (tmp_path / "x.html").exists()
