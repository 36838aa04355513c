"""What a lake holds, by delta-rs and by the files in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from jobs.lake.table_address import table_path
from schemas.tables.gold import GOLD, RUNS
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import CAPTURES, SILVER
from schemas.tables.table import Table
from tests.equal_rows.hashes import rows_hash
from tests.faults.undisturbed import rows_in
from tests.histories.model import Cell
from udfs.columns.arrow_columns import compute as pc

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Seen:
    """What was found in a lake.

    cells: the hash of each cell's rows. files_of: how many files each cell has. run_at, files, written, pages, shown,
    tables: as in `Lake`. strays: files that no version of a table has had. unneeded: files that the newest version does
    not have.
    """

    cells: Mapping[Cell, str]
    files_of: Mapping[Cell, int]
    run_at: Mapping[str, int]
    files: Mapping[str, str]
    written: tuple[str, ...]
    pages: frozenset[str]
    shown: str | None
    tables: frozenset[str]
    strays: tuple[str, ...]
    unneeded: tuple[str, ...]


def seen(lake: Path, begin: datetime) -> Seen:
    """Everything in a lake. begin: when its history began. Raises TornTableError if a table cannot be read."""
    tables = {table: Path(table_path(str(lake), table)) for table in (*SILVER, *GOLD)}
    there = {table: path for table, path in tables.items() if DeltaTable.is_deltatable(str(path))}
    read = {table: rows_in(str(path)) for table, path in there.items()}
    cells, files_of, strays, unneeded = dict[Cell, str](), dict[Cell, int](), list[str](), list[str]()
    for table, path in there.items():
        cells |= hashes(table, read[table])
        needed = files_in(table, path)
        for of, names in needed.items():
            files_of[table.name, of] = len(names)
        own = {name for names in needed.values() for name in names}
        on_disk = {str(file.relative_to(path)) for file in path.glob("*=*/*.parquet")}
        strays += [f"{table.name}/{name}" for name in sorted(on_disk - own - once_had(path))]
        unneeded += [f"{table.name}/{name}" for name in sorted(on_disk - own)]
    captures, runs = read.get(CAPTURES), read.get(RUNS)
    return Seen(
        cells=cells, files_of=files_of, run_at={} if runs is None else clocks(runs, begin),
        files={} if captures is None else names_of(captures),
        written=() if captures is None else order(CAPTURES, there[CAPTURES]),
        pages=frozenset(page.stem.removeprefix("report-") for page in lake.glob("report-*.html")),
        shown=shown_run(lake), tables=frozenset(table.name for table in there), strays=tuple(strays),
        unneeded=tuple(unneeded),
    )  # fmt: skip


def hashes(table: Table, rows: pa.Table) -> dict[Cell, str]:
    """The hash of a table's rows, by capture set or run.

    `gate` also checks the tables of replays that only other runs have. Its results on these depend on which runs the
    lake has, so they do not count.
    """
    if table == GATE_RESULTS:
        rows = rows.filter(pc.greater(rows[str(GATE_RESULTS.rows_checked)], 0))
    column = rows[str(table.replaced_by)]
    return {(table.name, str(of)): rows_hash(rows.filter(pc.equal(column, of)), table) for of in pc.unique(column)}


def files_in(table: Table, path: Path) -> dict[str, list[str]]:
    """The files of the newest version, by capture set or run."""
    files, found = pa.table(DeltaTable(str(path)).get_add_actions(flatten=True)), dict[str, list[str]]()
    for of, name in zip(files[f"partition.{table.replaced_by}"], files["path"], strict=True):
        found.setdefault(str(of), []).append(str(name))
    return found


def once_had(path: Path) -> set[str]:
    """The files that any version of a table has had."""
    lines = [line for log in path.glob("_delta_log/*.json") for line in log.read_text().splitlines()]
    actions = [json.loads(line) for line in lines]
    return {action[kind]["path"] for action in actions for kind in ("add", "remove") if kind in action}


def clocks(runs: pa.Table, begin: datetime) -> dict[str, int]:
    """Each run's clock, in hours since the history began."""
    rows = runs.select([str(RUNS.run_id), str(RUNS.run_at)]).to_pylist()
    return {row[str(RUNS.run_id)]: round((row[str(RUNS.run_at)] - begin) / HOUR) for row in rows}


def names_of(captures: pa.Table) -> dict[str, str]:
    """The name of each capture set's file, without its extension."""
    rows = captures.select([str(CAPTURES.capture_id), str(CAPTURES.path)]).to_pylist()
    return {row[str(CAPTURES.capture_id)]: Path(row[str(CAPTURES.path)]).stem for row in rows}


def order(table: Table, path: Path) -> tuple[str, ...]:
    """Capture sets, in the order in which they were written last."""
    needed = files_in(table, path)
    at = {of: max((path / name).stat().st_mtime_ns for name in names) for of, names in needed.items()}
    return tuple(sorted(at, key=lambda of: at[of]))


def shown_run(lake: Path) -> str | None:
    """The run that report.html shows, according to summary.json; None if there is no such page."""
    with suppress(OSError, ValueError):
        if (lake / "report.html").exists():
            return str(json.loads((lake / "summary.json").read_text())["run_id"])
    return None
