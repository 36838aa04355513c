"""README.md names what there is, and its commands are such as their jobs take; no page leads to what is not there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from jobs.cli import EXIT_CODES, INTERRUPTED, JOBS, parse
from jobs.scenarios.settings import settings
from schemas.tables.gold import GOLD
from schemas.tables.silver import SILVER

PAGES = ("capturing", "cluster", "damage", "frame_functions", "frames", "reasons", "tables")


@pytest.fixture(scope="module")
def readme(repository: Path) -> str:
    return (repository / "README.md").read_text(encoding="utf-8")


def test_every_table_is_named_with_what_a_row_is(readme: str) -> None:
    named = {line.split("`")[1] for line in readme.splitlines() if line.startswith(("| `silver/", "| `gold/"))}
    assert named == {f"{table.layer}/{table.name}" for table in (*SILVER, *GOLD)}


def test_every_setting_is_named_beside_its_replay(readme: str) -> None:
    by_replay = {
        line.split("`")[1]: line for line in readme.splitlines() if line.startswith("| `") and "`kafka`" in line
    }
    for key, setting in settings().items():
        assert f"`{key}`" in readme, key
        for replay in set(setting.algorithms) & by_replay.keys():
            assert f"`{key}`" in by_replay[replay], f"{key} of {replay}"


def test_every_command_has_flags_that_its_job_takes(readme: str) -> None:
    whole = readme.replace("\\\n", " ")
    found = re.findall(rf"""spark-submit\.sh ((?:{"|".join(JOBS)}) [^`"\n]+)""", whole)
    commands = [shlex.split(command, comments=True) for command in found]
    assert {"ingest", "pipeline", "gate", "report"} <= {command[0] for command in commands}
    for command in commands:
        assert parse(command).job == command[0]


def test_every_exit_code_has_its_meaning(readme: str) -> None:
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", readme, re.MULTILINE)}
    assert told == {0, 1, INTERRUPTED, *EXIT_CODES.values()}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{name}.md" for name in PAGES)])
def test_every_link_leads_to_a_file(page: str, repository: Path) -> None:
    text = (repository / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if not link.startswith("http")]
    assert [link for link in links if not (repository / page).parent.joinpath(link).exists()] == []
    anchors = re.findall(r"\]\(#([^)]+)\)", text)
    headings = {
        re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("#")
    }
    assert [anchor for anchor in anchors if anchor not in headings] == []


def test_every_page_for_users_is_reached_from_the_readme_or_a_page_of_it(repository: Path, readme: str) -> None:
    texts = [readme, *((repository / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in PAGES)]
    named = {link for text in texts for link in re.findall(r"\]\((?:docs/)?(\w+)\.md", text)}
    assert set(PAGES) <= named
    assert {path.stem for path in (repository / "docs").glob("*.md")} == set(PAGES)
