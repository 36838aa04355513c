"""Fail each STRIDE-th operation of reading and changing a table in a folder, without Spark. Run it above `layer.c`.

    python -m tests.faults.one_table FOLDER STRIDE ERROR...

Prints how many cases there were, and their faults. A case has a fault if it raises anything but a LakeError whose one
line names the lake, if it loses rows, or if the table cannot be read and written again.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from jobs.lake.declared_columns import described_schema
from jobs.lake.local_log import open_local_table, rows_in_files
from jobs.lake.stored_tables import LocalStore
from jobs.lake.table_address import table_path
from jobs.lake.target import files_by_table
from schemas.tables.silver import QUARANTINE
from tests.faults.control import ERRORS, FILE, Control
from udfs.errors import LakeError
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.table_files import write_files

TABLE = QUARANTINE
COLUMN = str(TABLE.replaced_by)
NEW, ROWS = "new", 3


def written(lake: Path, identity: str = NEW) -> None:
    """Write two files with rows of a capture set, as a job does. Writes nothing if only Spark could do it."""
    path = table_path(str(lake), TABLE)
    table = open_local_table(path)
    if table is None:
        return
    rows_in_files(table.files() or ())
    columns = [pa.array([identity if f.name == COLUMN else None] * ROWS, f.type) for f in arrow_schema(TABLE)]
    rows = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(TABLE))
    made = pa.Table.from_batches([write_files([(TABLE, rows)], {TABLE: path}, identity) for _ in range(2)])
    table.replace(described_schema(TABLE), (COLUMN, identity), files_by_table(made, [TABLE])[TABLE])


def upkept(lake: Path) -> None:
    """Join the files of each capture set, drop the capture set `one`, and remove the files that no table needs."""
    table = LocalStore(table_path(str(lake), TABLE), COLUMN)
    table.compact()
    if "one" in table.holdings():
        table.drop(["one"])
    table.vacuum(timedelta(0))


def held(lake: Path) -> list[str]:
    """The capture set of each of the table's rows, sorted."""
    path = table_path(str(lake), TABLE)
    if not DeltaTable.is_deltatable(path):
        return []
    return sorted(map(str, DeltaTable(path).to_pyarrow_table()[COLUMN].to_pylist()))


def rows_of(*sets: str) -> list[str]:
    """The result of `held` for a table with these capture sets."""
    return sorted(sets * ROWS * 2)


ACTIONS: Mapping[str, tuple[Callable[[Path], None], list[str], list[str]]] = {
    "first write": (written, [], [NEW]),
    "write": (written, ["one"], ["one", NEW]),
    "upkeep": (upkept, ["one", "two"], ["two"]),
}
"""By name: what is done to the table, and its capture sets before and after."""


def wrong(control: Control, lake: Path, action: str) -> Iterator[str]:
    """What is wrong with an action of which one operation fails, and with the same action done again."""
    act, before, after = ACTIONS[action]
    told: Exception | None = None
    try:
        act(lake)
    except Exception as fault:  # noqa: BLE001 - to see which errors are raised
        told = fault
    failed = control.failed
    control.disarm()
    if told is not None and not (isinstance(told, LakeError) and str(told).isprintable() and str(lake) in str(told)):
        yield f"{failed}: {type(told).__name__}: {str(told)[:300]!r}"
    if held(lake) not in (rows_of(*before), rows_of(*after)):
        yield f"{failed}: {held(lake)}, expected those of {before} or {after}"
    act(lake)
    if held(lake) != rows_of(*after):
        yield f"{failed}: {held(lake)} when done again, expected those of {after}"


def cases(control: Control, lake: Path, action: str, error: int, stride: int) -> Iterator[list[str]]:
    """For each case the faults: the first operation fails, then the one `stride` later, and so on."""
    number = 1 - stride
    while True:
        number += stride
        shutil.rmtree(lake, ignore_errors=True)
        for identity in ACTIONS[action][1]:
            written(lake, identity)
        control.arm(number, error)
        faults = [*wrong(control, lake, action)]
        if control.failed is None:
            return
        yield faults


def main(lake: Path, stride: int, errors: list[str]) -> int:
    """Fail each `stride`-th operation with each error. Returns 1 if a case has faults."""
    control = Control(Path(os.environ[FILE]))
    asked = [(action, ERRORS[error]) for error in errors for action in ACTIONS]
    tried = [faults for action, error in asked for faults in cases(control, lake, action, error, stride)]
    told = [fault for faults in tried for fault in faults]
    sys.stdout.writelines(f"{line}\n" for line in [f"{len(tried)} cases, {len(told)} with faults", *told])
    return int(bool(told))


if __name__ == "__main__":
    ended = main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    sys.stdout.flush()
    # A failed read may leave a thread of Arrow or delta-rs running, which would abort the process at a usual exit.
    os._exit(ended)
