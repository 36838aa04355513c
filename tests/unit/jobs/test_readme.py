"""README.md names what there is: every table, every setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.scenarios.settings import settings
from schemas.tables.gold import GOLD
from schemas.tables.silver import SILVER


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
