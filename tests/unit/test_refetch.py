"""The package `refetch`: what notebooks import, and the name of the command that users type."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import refetch
from jobs import open_capture

SCRIPT = "spark-submit.sh"


def test_notebooks_have_what_jobs_declares() -> None:
    assert refetch.open_capture is open_capture.open_capture
    assert refetch.OpenCapture is open_capture.OpenCapture
    with pytest.raises(AttributeError, match="it has OpenCapture, OpenLake, open_capture, open_lake"):
        refetch.open_table  # noqa: B018 - the point


def test_packages_of_another_project_are_reported_and_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = ModuleType("jobs")
    other.__file__ = str(tmp_path / "jobs" / "__init__.py")
    monkeypatch.setitem(sys.modules, "jobs", other)
    with pytest.raises(ImportError, match=f"has loaded others: jobs \\({tmp_path}"):
        refetch._put_on_path()


def texts(file: Path) -> Iterator[str]:
    """The strings of a module, except docstrings and others that stand alone."""
    tree = ast.parse(file.read_text())
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def test_one_module_says_how_the_command_is_called(repository: Path) -> None:
    modules = [file for root in ("jobs", "udfs", "schemas") for file in (repository / root).rglob("*.py")]
    named = {str(file.relative_to(repository)) for file in modules if any(SCRIPT in text for text in texts(file))}
    assert named == {"jobs/paths.py", "jobs/bootstrap.py"}
