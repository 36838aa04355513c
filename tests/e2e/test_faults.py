"""Failing operations of a command before Spark starts: a few of those that `python -m tests.faults` lets fail."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.commands import tried
from tests.faults.control import ERRORS, Control, has_compiler
from tests.faults.undisturbed import Home, made_home

pytestmark = pytest.mark.skipif(not has_compiler(), reason="the layer under all operations is made with a C compiler")


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    home = made_home()
    yield home
    shutil.rmtree(home.folder)


@pytest.mark.parametrize(("number", "error"), [(1, "EACCES"), (3, "EIO"), (6, "EIO"), (11, "ENOSPC"), (14, "EIO")])
def test_what_fails_before_spark_starts_is_one_line_that_names_the_file(
    home: Home, tmp_path: Path, number: int, error: str
) -> None:
    case = tried(home, Control.made(tmp_path / "control"), number, ERRORS[error], {}, by_audit=False)
    assert case.failed is not None
    assert case.faults == []
    assert case.ended.code in (1, 2)
    assert len(case.ended.said.splitlines()) <= 2
