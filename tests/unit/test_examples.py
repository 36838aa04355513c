"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

SOURCES = [path for package in ("jobs", "udfs", "schemas") for path in sorted((REPOSITORY / package).rglob("*.py"))]
WITH_EXAMPLES = [path.relative_to(REPOSITORY) for path in SOURCES if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=str)
def test_the_examples_of_a_module_give_what_they_say(path: Path) -> None:
    module = importlib.import_module(".".join(path.with_suffix("").parts))
    told = doctest.testmod(module)
    assert told.attempted > 0, "an example is not where doctest looks"
    assert told.failed == 0
