"""Where a run writes: its lake, its page and its Data Docs. Places are resolved, and tried before anything is read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from udfs.capture.locations import NO_SECRETS, has_secret, is_uri, without_file_scheme, without_secret
from udfs.errors import ArgumentError

_HADOOP_CONFIGURED = {"HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_GATEWAY_PORT"}
"""Environment variables that are set where Hadoop's configuration applies, or where plain spark-submit started us and
may have brought one."""
BY_FLAG = "--lake"
CATALOG = "catalog:"
"""The beginning of the name of a lake that is a schema of a catalog: `catalog:main.refetch`."""
BY_CATALOG = "--catalog"
_SCHEMA = re.compile(r"[\w-]+(\.[\w-]+)?")


def is_in_catalog(lake: str) -> bool:
    """Whether a lake is a schema of a catalog, whose tables Spark reads and writes by name."""
    return lake.startswith(CATALOG)


def is_folder(lake: str) -> bool:
    """Whether a lake is a local folder: neither a schema of a catalog nor at a URI."""
    return not is_in_catalog(lake) and not is_uri(lake)


def names_lake(name: str) -> bool:
    """Whether a name stands for a lake, and not for a run of the current lake."""
    return "/" in name or is_in_catalog(name) or Path(name).is_dir()


def catalog_lake(schema: str, named_by: str = BY_CATALOG) -> str:
    """The lake that is a schema of a catalog. Raises ArgumentError for what cannot be the name of a schema.

    schema: CATALOG.SCHEMA, or SCHEMA in the session's current catalog.

    >>> catalog_lake("main.refetch")
    'catalog:main.refetch'
    """
    if _SCHEMA.fullmatch(schema) is None:
        raise ArgumentError(
            f"{named_by} {schema}: expected CATALOG.SCHEMA or SCHEMA, each of letters, digits, - and _, as main.refetch"
        )
    return f"{CATALOG}{schema}"


def absolute_lake(lake: str, named_by: str = BY_FLAG) -> str:
    """The lake's folder as an absolute path; a URI and the name of a schema of a catalog unchanged. Raises
    ArgumentError where a file is in the way, the URI contains credentials, or no schema can have the name.

    named_by: the flag or the line that names the lake.
    """
    if is_in_catalog(lake):
        return catalog_lake(lake.removeprefix(CATALOG), named_by)
    if has_secret(lake):
        raise ArgumentError(f"{named_by} {without_secret(lake)}: {NO_SECRETS}")
    path = without_file_scheme(lake)
    if is_uri(path):
        return path
    folder = Path(path).resolve()
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{named_by} {lake}: this is a file; name a folder, which is created if it is missing")
    return str(folder)


def page_path(out: str | None, lake: str) -> Path | None:
    """The file of the report: the one that --out names, else one in the lake; None if the lake is not a local folder.

    Raises ArgumentError if --out names a folder or a URI.
    """
    if out is None:
        return Path(lake) / "report.html" if is_folder(lake) else None
    path = without_file_scheme(out)
    if is_uri(path):
        raise ArgumentError(f"--out {out}: a page is written to a local file; copy it from there")
    if Path(path).is_dir():
        raise ArgumentError(f"--out {out}: this is a folder; name the file in it")
    return Path(path).resolve()


def check_lake_writable(name: str, lake: str, named_by: str = BY_FLAG) -> None:
    """Try to write into a lake that is a local folder, before anything is read for it. Raises ArgumentError if that
    fails.

    name: the lake as the user names it. lake: its absolute path. named_by: the flag or the line that names it.
    """
    # Hadoop's configuration may say that paths without a scheme are on another file system.
    if is_folder(lake) and not _HADOOP_CONFIGURED & set(os.environ):
        _check_writable(Path(lake), f"{named_by} {name}", "name a folder that this user may write")


def check_page_writable(name: str | None, page: Path) -> None:
    """As `check_lake_writable`, for the file of a page."""
    if page.exists() and os.access(page, os.W_OK):
        return
    if name is None:
        _check_writable(page.parent, f"the page {page}", "name another place with --out=FILE")
    else:
        _check_writable(page.parent, f"--out {name}", "name a file in a folder that this user may write")


def _check_writable(folder: Path, what: str, to_do: str) -> None:
    """Make a temporary folder in `folder`, or in its nearest existing parent, and remove it again."""
    existing = folder
    try:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        with TemporaryDirectory(dir=existing, prefix=".refetch-"):
            pass
    except OSError as fault:
        raise ArgumentError(f"{what}: nothing can be written there ({existing}: {fault.strerror}); {to_do}") from fault


def junit_path(name: str | None) -> Path | None:
    """The file of JUnit's XML that --junit names, as an absolute path; None without the flag.

    Raises ArgumentError for a URI, for a folder, and where nothing can be written.
    """
    if name is None:
        return None
    path = without_file_scheme(name)
    if is_uri(path):
        raise ArgumentError(f"--junit {name}: XML is written to a local file; copy it from there")
    if Path(path).is_dir():
        raise ArgumentError(f"--junit {name}: this is a folder; name the file in it")
    _check_writable(Path(path).resolve().parent, f"--junit {name}", "name a file in a folder that this user may write")
    return Path(path).resolve()


def docs_folder(name: str | None) -> str | None:
    """The folder of Data Docs that --data-docs names, as an absolute path; None without the flag.

    Raises ArgumentError for a URI.
    """
    if name is None:
        return None
    folder = without_file_scheme(name)
    if is_uri(folder):
        raise ArgumentError(f"--data-docs {name}: pages are written to a local folder; copy them from there")
    return str(Path(folder).resolve())
