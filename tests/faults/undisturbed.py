"""The small pipeline whose operations fail, the folder in which it runs, and the rows of an undisturbed run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from jobs.lake.table_address import table_path
from jobs.paths import CONF, ROOT
from schemas.tables.gold import GOLD
from schemas.tables.silver import SILVER
from schemas.tables.table import Table
from tests.conftest import REPOSITORY
from tests.equal_rows.hashes import rows_hash
from udfs import CODE, cache_dir

CAPTURE = REPOSITORY / "tests" / "captures" / "starve.pcap.zst"
"""The smallest capture."""
SCENARIO = """\
replay:
  fetch_max_bytes:
    consumer.fetch.max.bytes: [32KiB]
"""
RUN_AT = "2026-01-31T12:00:00Z"

Rows = Mapping[str, tuple[int, str]]
"""(number of rows, their hash) by table."""


class TornTableError(Exception):
    """A table exists, but cannot be read."""


@dataclass(frozen=True)
class Home:
    """A folder with everything that the command reads and writes, except code and packages."""

    folder: Path

    @property
    def lake(self) -> Path:
        """The lake, which may not exist."""
        return self.folder / "lake"

    @property
    def temporary(self) -> Path:
        """The folder of temporary files."""
        return self.folder / "tmp"

    @property
    def watched(self) -> list[Path]:
        """The folders in which operations are counted."""
        return [self.folder, CONF, ROOT / "jobs" / "report_page"]

    @property
    def arguments(self) -> list[str]:
        """The arguments of the command."""
        captures, scenario = self.folder / CAPTURE.name, self.folder / "scenario.yaml"
        told = [f"--captures={captures}", f"--lake={self.lake}", f"--scenario={scenario}", f"--run-at={RUN_AT}"]
        return ["pipeline", *told, "--master=local[1]"]

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with the folders of temporary files and of the cache."""
        return {"TMPDIR": str(self.temporary), "XDG_CACHE_HOME": str(self.folder / "cache")}

    def emptied(self) -> None:
        """Remove the lake and the temporary files."""
        for folder in (self.lake, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)
        self.temporary.mkdir()


def made_home() -> Home:
    """A new home, with a copy of this version's machine code from the user's cache."""
    home = Home(Path(tempfile.mkdtemp(prefix="refetch-faults-")))
    shutil.copy(CAPTURE, home.folder)
    (home.folder / "scenario.yaml").write_text(SCENARIO)
    if cache_dir().is_dir():
        shutil.copytree(cache_dir(), home.folder / "cache" / "refetch", ignore=left_out)
    home.temporary.mkdir()
    return home


def left_out(folder: str, names: list[str]) -> list[str]:
    """The names in the top folder of the cache that are not copied: all but this version's machine code."""
    return [name for name in names if Path(folder) == cache_dir() and name != f"kernels-{CODE}"]


def lake_rows(lake: Path) -> Rows:
    """The rows of the tables that a lake has. Raises TornTableError if one cannot be read whole."""
    return {table.name: whole(lake, table) for table in (*SILVER, *GOLD) if is_there(lake, table)}


def is_there(lake: Path, table: Table) -> bool:
    """Whether the lake has the table."""
    return DeltaTable.is_deltatable(table_path(str(lake), table))


def whole(lake: Path, table: Table) -> tuple[int, str]:
    """(number of rows, their hash) of a table. Reads all of its files."""
    rows = rows_in(table_path(str(lake), table))
    return rows.num_rows, rows_hash(rows, table)


def rows_in(path: str) -> pa.Table:
    """The rows of the Delta table at a path. Reads all of its files. Raises TornTableError if one cannot be read."""
    try:
        return DeltaTable(path).to_pyarrow_table()
    except (DeltaError, OSError, pa.ArrowException) as fault:
        raise TornTableError(f"{path}: {fault}") from fault
