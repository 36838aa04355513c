"""A zip of the packages, like one that `git archive` makes for executors."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.conftest import REPOSITORY

PACKAGES = ("jobs", "udfs", "schemas")


def zipped(path: Path, changed: str | None = None) -> Path:
    """Zip the packages of the clone, with one more line in the module `changed`."""
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for package in PACKAGES:
            for entry in sorted(REPOSITORY.joinpath(package).rglob("*")):
                name = str(entry.relative_to(REPOSITORY))
                if name == changed:
                    archive.writestr(name, entry.read_text() + "\n# another release\n")
                elif entry.is_dir() or entry.suffix == ".py":
                    archive.write(entry, name)
    return path
