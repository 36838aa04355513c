"""What runs inside Python workers, on arrays and Arrow batches."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from udfs.errors import SetupError


def code_digest(*packages: Traversable) -> str:
    """16 hex digits that change with any Python source of the packages, in folders or in a zip.

    Raises SetupError if a package has no source: without sources, different versions would look the same.
    """
    digest = hashlib.sha256()
    for package in packages:
        sources = list(sources_of(package, package.name))
        if not sources:
            raise SetupError(
                f"{package}: there is no Python source in it, by which refetch tells its versions apart. Ship the "
                "packages jobs, udfs and schemas with their .py files."
            )
        for name, source in sources:
            digest.update(f"{name}\0".encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def sources_of(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    """The Python sources in a folder and its subfolders, each with its path. path: that of the folder."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from sources_of(entry, f"{path}/{entry.name}")
        elif entry.name.endswith(".py"):
            yield f"{path}/{entry.name}", entry


@cache
def cache_dir() -> Path:
    """The folder for what refetch can make again: among the user's caches, or a folder for temporary files."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if os.access(home, os.W_OK) or os.access(home.parent, os.W_OK):
        return home / "refetch"
    return private_folder()


def private_folder() -> Path:
    """The user's own folder for temporary files; a new one if others could have put files there, which would be run."""
    folder = Path(tempfile.gettempdir()) / f"refetch-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    return folder if is_ours else Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))


CODE = code_digest(files("udfs"), files("schemas"))
"""A digest that differs between any two versions of the code that decodes and replays."""


KERNELS_OF = "kernels-"
"""The beginning of the name of a folder with a version's machine code."""


def kernel_cache_dir() -> str:
    """The folder for the machine code of this version of the kernels, next to those of other versions."""
    return str(cache_dir() / f"{KERNELS_OF}{CODE}")


# Numba reads this when it is first imported, which only modules below this one do.
os.environ.setdefault("NUMBA_CACHE_DIR", kernel_cache_dir())
