"""Every replay has the same modules, names are clear, and the map of the code names what is there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

from schemas.tables.algorithms import (
    BATCH_SPLIT,
    CONSUMER_MEMORY,
    FETCH_MAX_BYTES,
    PARTITION_LIMITS,
    SESSION_CACHE,
)

PREFIX = {
    FETCH_MAX_BYTES: "fetch_", CONSUMER_MEMORY: "memory_", SESSION_CACHE: "session_", BATCH_SPLIT: "split_",
    PARTITION_LIMITS: "limit_",
}  # fmt: skip
"""Prefixes that names of modules do without, because the name of their package says it already."""
PLAN = {
    "__init__", "settings", "silver_events", "events", "state", "fidelity", "rows", "replay", "warm_up"
}  # fmt: skip
"""The modules of every replay. Others are named after what their kernels do."""
JOB_SIDE = {"__init__", "job", "answers"}
CODE = ("jobs", "udfs", "schemas", "notebooks")
MAP = "docs/architecture.md"
OF_EACH = {"main", "packed", "lanes", "lanes_table", "answer_lines", "answer_row"}
"""Functions in `jobs` that each command or replay has under this name."""


def modules_in(folder: Path) -> set[str]:
    return {file.stem for file in folder.glob("*.py")}


@pytest.mark.parametrize("replay", PREFIX)
def test_a_replay_has_the_modules_that_all_have(replay: str, repository: Path) -> None:
    assert modules_in(repository / "udfs" / "replay" / replay) >= PLAN
    assert modules_in(repository / "jobs" / "replays" / replay) >= JOB_SIDE
    assert (repository / "docs" / f"{replay}.md").exists()


def names_defined(folder: Path, *kinds: type[ast.FunctionDef] | type[ast.ClassDef]) -> Iterator[str]:
    """The names of the functions or classes at the top of the modules below a folder."""
    for file in folder.rglob("*.py"):
        yield from (node.name for node in ast.parse(file.read_text()).body if isinstance(node, kinds))


def recurring(names: Iterable[str]) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


def test_a_name_in_jobs_belongs_to_one_thing(repository: Path) -> None:
    assert recurring(names_defined(repository / "jobs", ast.FunctionDef, ast.ClassDef)) == OF_EACH


def test_a_class_shares_its_name_with_no_other(repository: Path) -> None:
    assert recurring(name for root in CODE for name in names_defined(repository / root, ast.ClassDef)) == set()


@pytest.mark.parametrize("replay", PREFIX)
def test_no_module_of_a_replay_repeats_its_name(replay: str, repository: Path) -> None:
    names = {file.stem for file in (repository / "udfs" / "replay" / replay).rglob("*.py")}
    assert not {name for name in names if name.startswith(PREFIX[replay])}


def imports_of(file: Path, module: str) -> Iterator[str]:
    """The names that a module imports when it is loaded."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module or ""
            yield from (name, *(f"{name}.{alias.name}" for alias in node.names))


def test_imports_form_no_cycle(repository: Path) -> None:
    files = {
        ".".join(file.relative_to(repository).with_suffix("").parts).removesuffix(".__init__"): file
        for root in CODE
        for file in (repository / root).rglob("*.py")
    }
    graph = {module: set(imports_of(file, module)) & files.keys() - {module} for module, file in files.items()}
    assert len(graph) > 100
    TopologicalSorter(graph).prepare()  # raises CycleError


@pytest.mark.parametrize("page", [MAP, "CONTRIBUTING.md"])
def test_paths_that_pages_name_exist(page: str, repository: Path) -> None:
    text = (repository / page).read_text()
    named = set(re.findall(r"`((?:jobs|udfs|schemas|conf|docs|tests|notebooks)(?:/[\w.*-]+)+)", text))
    missing = [path for path in named if not any(repository.glob(path.replace("NAME", "*")))]
    assert len(named) > 20
    assert missing == []


def test_the_map_names_every_package_of_the_code(repository: Path) -> None:
    text = (repository / MAP).read_text()
    packages = {
        f"{root}/{folder.parent.name}" for root in CODE[:3] for folder in (repository / root).glob("*/__init__.py")
    }
    assert {name for name in packages if name not in text} == set()


def rooms_in_picture(text: str) -> dict[str, str]:
    """The nodes of the map's picture that name a folder of the code, with that folder."""
    picture = text.partition("```mermaid")[2].partition("```")[0]
    return dict(re.findall(r'(\w+)\["((?:jobs|udfs|schemas)/[\w/]+?)(?:/\*[\w./]*)?:', picture))


def test_of_two_folders_that_the_picture_joins_one_imports_the_other(repository: Path) -> None:
    """Arrows point where rows go. An import may go in either direction."""
    text = (repository / MAP).read_text()
    rooms, picture = rooms_in_picture(text), text.partition("```mermaid")[2].partition("```")[0]
    assert len(rooms) >= 8
    assert [folder for folder in rooms.values() if not (repository / folder).is_dir()] == []
    steps = [
        (a, b) for a, b in re.findall(r"^\s*(\w+) -->(?:\|[^|]*\|)? (\w+)", picture, re.M) if {a, b} <= rooms.keys()
    ]
    assert len(steps) >= 3
    for a, b in steps:
        assert uses(repository, rooms[a], rooms[b]) or uses(repository, rooms[b], rooms[a]), (
            f"{rooms[a]} and {rooms[b]}"
        )


def uses(repository: Path, folder: str, other: str) -> bool:
    """Whether a module below a folder imports one that is below the other."""
    package = other.replace("/", ".") + "."
    return any(
        name.startswith(package)
        for file in (repository / folder).rglob("*.py")
        for name in imports_of(file, ".".join(file.relative_to(repository).with_suffix("").parts))
    )
