"""README.md and the pages for users have commands that jobs accept, and links to what exists."""

from __future__ import annotations

import re
import shlex
import signal
from pathlib import Path

import pytest

from jobs.cli import EXIT_CODES, INTERRUPTED, JOBS, parse_arguments
from jobs.scenarios.settings import TRIES
from tests.conftest import REPOSITORY

README = REPOSITORY / "README.md"
PAGES = (README, *sorted((REPOSITORY / "docs").glob("*.md")))
LINK = re.compile(r"\]\(([^)#\s]+)")

pages = pytest.mark.parametrize(
    "page", [*PAGES, REPOSITORY / "CONTRIBUTING.md"], ids=lambda page: str(page.relative_to(REPOSITORY))
)


def commands(page: Path) -> list[list[str]]:
    """The arguments of every command by spark-submit.sh on a page."""
    whole = page.read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(rf"""spark-submit\.sh ((?:{"|".join(JOBS)}) [^`"\n|>]+)""", whole)
    return [shlex.split(command, comments=True) for command in found]


def links(page: Path) -> list[Path]:
    """The files to which a page links."""
    told = LINK.findall(page.read_text(encoding="utf-8"))
    return [(page.parent / link).resolve() for link in told if not link.startswith("http")]


def headings(page: Path) -> set[str]:
    """The anchors that GitHub makes for a page's headings."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return {
        re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in lines if line.startswith("#")
    }


@pages
def test_every_command_has_flags_that_its_job_takes(page: Path) -> None:
    for command in commands(page):
        assert parse_arguments(command).job == command[0]


def test_the_pages_show_every_job() -> None:
    assert {command[0] for page in PAGES for command in commands(page)} == set(JOBS)


def test_the_readme_has_a_question_for_every_replay_and_the_flag_that_asks_it() -> None:
    asked = re.findall(r"^\| [^|]+\? \| `(\w+)` [^|]*\| `--set=([^`]+)` \|", README.read_text(), re.MULTILINE)
    assert dict(asked) == dict(TRIES)


def test_every_exit_code_has_its_meaning(repository: Path) -> None:
    text = (repository / "docs/running.md").read_text(encoding="utf-8")
    told = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", text, re.MULTILINE) for code in row.split(", ")}
    by_signals = {INTERRUPTED, 128 + signal.SIGTERM, 128 + signal.SIGHUP}
    assert told == {0, 1, *by_signals, *EXIT_CODES.values()}


@pages
def test_every_link_is_to_a_file_or_heading_that_exists(page: Path) -> None:
    assert [link for link in links(page) if not link.exists()] == []
    anchors = re.findall(r"\]\(([^)#\s]*\.md)?#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    led_to = [(page.parent / (file or page.name), anchor) for file, anchor in anchors if not file.startswith("http")]
    assert [anchor for file, anchor in led_to if anchor not in headings(file)] == []


def test_every_page_for_users_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    ahead = {README}
    while ahead:
        reached |= ahead
        ahead = {link for page in ahead for link in links(page) if link in PAGES} - reached
    assert reached == set(PAGES)
