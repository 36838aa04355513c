"""Ships refetch's packages to the workers of a Spark that was started elsewhere, which do not find them otherwise."""

from __future__ import annotations

import atexit
import zipfile
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from pyspark.sql import SparkSession

from jobs.paths import IS_CLONE, ROOT
from jobs.session.spark_properties import WORKERS_PATH
from udfs import CODE

PACKAGES = ("jobs", "udfs", "schemas")
_COMPILED = "__pycache__"


def ship_code(session: SparkSession) -> None:
    """Ship the packages of an installed wheel to the session's workers: a wheel puts their folder only on the path of
    its own process. Nothing is shipped from a clone, whose packages come by --py-files or PYTHONPATH, nor if the
    workers have the path already.
    """
    if IS_CLONE or str(ROOT) in (session.conf.get(WORKERS_PATH, "") or ""):
        return
    ship_to_server(session)


def ship_to_server(session: SparkSession) -> None:
    """Ship this process's packages to the workers of a Spark Connect server."""
    session.addArtifacts(str(_packages_archive()), pyfile=True)  # a session takes the same archive only once


@cache
def _packages_archive() -> Path:
    """The packages in a file. It stays until this process ends, because Spark sends it whenever a worker needs it."""
    folder = mkdtemp(prefix="refetch-")
    atexit.register(rmtree, folder, ignore_errors=True)
    return zip_packages(ROOT, Path(folder) / f"refetch-{CODE}.zip")


def zip_packages(root: Path, archive: Path) -> Path:
    """Write the packages below `root` to an archive."""
    entries = (entry for package in PACKAGES for entry in (root / package, *sorted((root / package).rglob("*"))))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for entry in entries:
            if _COMPILED not in entry.parts:
                file.write(entry, entry.relative_to(root))
    return archive
