"""The recipes of docs/recipes.md, taken from the page and run unchanged."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.cli import run_command
from jobs.lake.table_address import table_path
from schemas.tables.gold_splits import BATCH_SPLIT
from tests.conftest import REPOSITORY
from tests.e2e.conftest import CapturedLake, add_night

PAGE = (REPOSITORY / "docs/recipes.md").read_text(encoding="utf-8")


def recipe(folder: Path, name: str) -> Path:
    """A file of the page, written under the name in its first line."""
    (text,) = re.findall(rf"```(?:python|yaml)\n# {re.escape(name)}\n(.*?)```", PAGE, re.DOTALL)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def ran(script: Path, *arguments: Path) -> tuple[int, list[str]]:
    """A script's exit code and the lines that it prints."""
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.fixture(scope="module")
def split(captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured("split")


def test_an_alert_comes_when_the_split_rate_doubles(split: CapturedLake, tmp_path: Path) -> None:
    lake, t = tmp_path / "lake", BATCH_SPLIT
    shutil.copytree(split.path, lake)
    add_night(split.path, str(lake), 1, {split.run_id: "later-run", split.capture_id: "later-set"})
    script, told = recipe(tmp_path, "alert_on_splits.py"), tmp_path / "compare.json"
    told.write_text(compared(lake), encoding="utf-8")
    assert ran(script, told) == (0, [])
    rows = DeltaTable(table_path(str(lake), t)).to_pyarrow_table().filter(pc.field(str(t.run_id)) == "later-run")
    place = rows.schema.get_field_index(t.splits)
    more = rows.set_column(place, t.splits, pc.multiply(rows[t.splits], 3))
    write_deltalake(
        table_path(str(lake), t), more, mode="overwrite", predicate="run_id = 'later-run'", partition_by=[str(t.run_id)]
    )
    told.write_text(compared(lake), encoding="utf-8")
    code, lines = ran(script, told)
    splitting = {row[t.client_id] for row in rows.to_pylist() if row[t.scenario] == "captured" and row[t.splits]}
    assert code == 1
    assert {line.partition(" splits ")[0] for line in lines} == splitting != set()


def compared(lake: Path) -> str:
    """What the recipe's `compare --json` command prints."""
    (command,) = re.findall(r"spark-submit\.sh (compare .*) --lake=lake (--json) > compare\.json", PAGE)
    with redirect_stdout(StringIO()) as out:
        assert run_command([*" ".join(command).split(), f"--lake={lake}"]) == 0
    return out.getvalue()


@pytest.fixture(scope="module")
def starve(captured: Callable[[str], CapturedLake], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A copy of a lake that has lanes with limits under which a partition has to wait."""
    lake = tmp_path_factory.mktemp("recipes") / "lake"
    shutil.copytree(captured("starve").path, lake)
    return str(lake)


def test_a_recommended_change_becomes_a_ticket(starve: str, tmp_path: Path) -> None:
    assert run_command(["report", f"--lake={starve}"]) == 0
    code, lines = ran(recipe(tmp_path, "tickets.py"), Path(starve, "summary.json"))
    assert code == 0
    summary = json.loads(Path(starve, "summary.json").read_text())
    changes = [of for of in summary["recommendations"] if of["verdict"] == "change"]
    tickets = [json.loads(line) for line in lines]
    assert [of["title"] for of in tickets] == [
        f"{of['setting']} of {of['scope'] or of['scope_kind']}" for of in changes
    ]
    assert changes[0]["gain"]["sentence"] in tickets[0]["body"]
    assert f"-> {changes[0]['recommended']}" in tickets[0]["body"]


def test_limits_that_starve_a_partition_fail_the_deployment(starve: str, tmp_path: Path) -> None:
    rules, junit = recipe(tmp_path, "starved.yaml"), tmp_path / "gate.xml"
    rules.write_text(rules.read_text().replace("< 1000", "< 100"), encoding="utf-8")
    assert run_command(["gate", "--on", "gold", f"--lake={starve}", f"--gates={rules}", f"--junit={junit}"]) == 3
    cases = ElementTree.parse(junit).getroot().iter("testcase")  # noqa: S314 - written by the job itself
    failed = {case.get("name"): case[0].text or "" for case in cases if case.find("failure") is not None}
    assert failed.keys() == {"no_partition_starves"}
    assert "topic=" in failed["no_partition_starves"]
