"""One case of each kind that `python -m tests.fuzz` makes without end passes its checks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.cases import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_of_hostile_input_passes_its_checks(kind: str, tmp_path: Path) -> None:
    chance = random.Random(f"1 {kind} 0")  # noqa: S311  (no secret depends on it)
    assert KINDS[kind](chance, tmp_path) > 0
