"""`python -m tests.mutation` says which changes no test notices."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.__main__ import FOLDERS, changed_by_package, folders_of_tests, left_out
from tests.mutation.equal import EQUAL
from tests.mutation.operators import mutants_in, mutants_of

MODULE = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Number = int | float


def total(one: int | None, other: int) -> int:
    return one + other


def larger(one: int, other: int) -> int:
    return one if one > other else other
"""
TESTS = """
from tiny.sums import larger, total


def test_a_total_has_both() -> None:
    assert total(2, 3) == 5


def test_the_larger_is_the_first() -> None:
    assert larger(3, 2) == 3


def test_a_test_that_fails_before_anything_is_changed_notices_nothing() -> None:
    assert larger(2, 3) == 2
"""


def write_package(folder: Path) -> None:
    (folder / "tiny").mkdir()
    (folder / "tiny" / "sums.py").write_text(MODULE)
    (folder / "test_tiny.py").write_text(TESTS)


def test_one_operator_is_changed_at_a_time(tmp_path: Path) -> None:
    write_package(tmp_path)
    changes = [(mutant.line, mutant.function, mutant.before, mutant.after) for mutant in mutants_of(tmp_path, "tiny")]
    assert changes == [(9, 8, "one + other", "one - other"), (13, 12, "one > other", "one >= other")]


def test_of_a_module_that_is_named_only_its_own_operators_are_changed(tmp_path: Path) -> None:
    write_package(tmp_path)
    (tmp_path / "tiny" / "products.py").write_text("def twice(one: int) -> int:\n    return one * 2\n")
    assert [mutant.before for mutant in mutants_of(tmp_path, "tiny/products.py")] == ["one * 2"]
    assert len(mutants_of(tmp_path, "tiny")) == 3


def test_modules_that_are_named_are_tried_with_the_tests_of_their_packages() -> None:
    wire, codes = "udfs/wire/header.py", "udfs/wire/records.py"
    cache, entries = "udfs/replay/session_cache/cache.py", "udfs/replay/session_cache/contents/entries.py"
    by_package = {"wire": [wire, codes], "replay/session_cache": [cache, entries]}
    assert changed_by_package(None, [wire, cache, codes, entries]) == by_package
    assert changed_by_package("replay/shared", []) == {"replay/shared": ["udfs/replay/shared"]}
    assert list(changed_by_package(None, [])) == list(FOLDERS)


@pytest.mark.parametrize("unknown", ["udfs/wire/sums.py", "udfs/wire", "jobs/run.py", "records.py"])
def test_a_module_that_is_not_there_is_named(unknown: str) -> None:
    with pytest.raises(SystemExit, match=f"--module={unknown}: there is no such file"):
        changed_by_package(None, [unknown])


def test_the_lake_of_a_clone_is_not_copied_but_the_code_of_lakes_is(repository: Path) -> None:
    assert left_out(str(repository), [".git", "jobs", "lake"]) == {".git", "lake"}
    assert left_out(str(repository / "jobs"), ["__pycache__", "lake"]) == {"__pycache__"}


def test_each_package_and_each_replay_has_tests_to_run(repository: Path) -> None:
    replays = [f"replay/{file.parent.name}" for file in (repository / "udfs/replay").glob("*/__init__.py")]
    assert replays
    for name in [*FOLDERS, *replays]:
        assert all((repository / folder).exists() for folder in folders_of_tests(name))
    assert folders_of_tests("replay/shared") == ["tests/unit/replay/shared", "tests/unit/test_examples.py"]


@pytest.mark.parametrize("unknown", ["sums", "replay/sums"])
def test_a_package_that_is_not_there_is_named(unknown: str) -> None:
    with pytest.raises(SystemExit, match=f"--package={unknown}: udfs or tests/unit has no such folder"):
        folders_of_tests(unknown)


def test_a_change_that_is_listed_as_equal_can_be_made(repository: Path) -> None:
    files = {file for file, _, _ in EQUAL}
    mutants = [mutant for file in files for mutant in mutants_in(file, (repository / file).read_text())]
    assert EQUAL.keys() <= {(mutant.file, mutant.before, mutant.after) for mutant in mutants}


def run_sample(what: dict[str, object], folder: Path, repository: Path) -> subprocess.CompletedProcess[str]:
    """Try changes of a package in a folder, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tests.mutation.sample", json.dumps(what)],
        cwd=folder,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_change_that_no_test_notices_survives_and_is_shown(tmp_path: Path, repository: Path) -> None:
    write_package(tmp_path)
    what = {"changed": ["tiny"], "tests_in": ["test_tiny.py"], "number": 2, "seed": 1, "limit": 2.0}
    run = run_sample(what, tmp_path, repository)
    assert run.returncode == 0, run.stderr
    printed = run.stdout.splitlines()
    assert "tiny: 1 of 2 mutants noticed, 0 change nothing, of 2 that can be made, seed 1" in printed
    assert "  tiny/sums.py:13 survived: one > other  ->  one >= other" in printed
    assert any("left out" in line and "test_a_test_that_fails" in line for line in printed)
    assert (tmp_path / "tiny" / "sums.py").read_text() == MODULE


def test_if_the_tests_crash_before_anything_is_changed_the_run_says_where(tmp_path: Path, repository: Path) -> None:
    write_package(tmp_path)
    (tmp_path / "test_tiny.py").write_text(
        "import os, signal\n\n\ndef test_that_crashes() -> None:\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    what = {"changed": ["tiny"], "tests_in": ["test_tiny.py"], "number": 1, "seed": 1, "limit": 2.0}
    run = run_sample(what, tmp_path, repository)
    assert run.returncode == 1
    assert "pytest ended with -11 before anything was changed" in run.stderr
    assert "in test_that_crashes" in run.stderr


def test_a_test_that_takes_too_long_is_left_out_at_once_though_hypothesis_makes_its_examples(
    tmp_path: Path, repository: Path
) -> None:
    write_package(tmp_path)
    (tmp_path / "test_tiny.py").write_text(
        "from hypothesis import given, settings, strategies as st\n"
        "from tiny.sums import total\n\n\n"
        "@settings(deadline=None)\n"
        "@given(st.integers())\n"
        "def test_totals(one: int) -> None:\n"
        "    for _ in range(10_000_000):\n"
        "        assert total(one, 1) == one + 1\n"
    )
    what = {"changed": ["tiny"], "tests_in": ["test_tiny.py"], "number": 0, "seed": 1, "limit": 0.5}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = run_sample(what, tmp_path, repository)
    took = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert took.ru_utime - before.ru_utime < 15, "seconds of processor time; with repeated tries it takes 20"
    assert "  left out, fails or takes too long without the JIT: test_tiny.py::test_totals" in run.stdout.splitlines()


def test_an_example_that_notices_a_change_is_not_made_smaller(tmp_path: Path, repository: Path) -> None:
    """Otherwise a change takes its whole time limit, because each smaller example runs the test again."""
    write_package(tmp_path)
    runs = tmp_path / "runs"
    (tmp_path / "conftest.py").write_text(
        "from hypothesis import settings\n"
        "settings.register_profile('refetch', derandomize=True, database=None)\n"
        "settings.load_profile('refetch')\n"
    )
    (tmp_path / "test_tiny.py").write_text(
        "from hypothesis import given, settings, strategies as st\n"
        "from tiny.sums import total\n\n\n"
        "@settings(max_examples=30)\n"
        "@given(st.lists(st.integers(0, 1000), max_size=50))\n"
        "def test_totals(of: list[int]) -> None:\n"
        f"    with open({str(runs)!r}, 'a') as file:\n"
        "        file.write('.')\n"
        "    assert len(of) < 5 or total(sum(of), len(of)) == sum(of) + len(of)\n"
    )
    what = {"changed": ["tiny"], "tests_in": ["test_tiny.py"], "number": 2, "seed": 1, "limit": 2.0}
    run = run_sample(what, tmp_path, repository)
    assert "tiny: 1 of 2 mutants noticed" in run.stdout, run.stderr
    assert 30 < len(runs.read_text()) < 80, "with smaller examples it is 121"
