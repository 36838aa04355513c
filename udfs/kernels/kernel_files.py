"""The files in which numba keeps the machine code of a kernel.

By default, numba needs the source file. For code in a zip, as on executors, it ignores NUMBA_CACHE_DIR and names its
folder after the zip's path, which differs for each Spark application.

Numba checks only the source file of a cached kernel, not the files whose functions and tables it has inlined: it would
not notice a change to these. So the folder of a module's kernels is named after the content of everything that the
module imports. A version of refetch copies the folders with the same names from an earlier version.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache

from udfs import KERNELS_OF
from udfs.kernels.imported_code import digest_of_imports


class KernelFiles:
    """The files of one function, in a folder of NUMBA_CACHE_DIR for the kernels of the function's module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._stamp = digest_of_imports(function.__module__)
        self._folder = Path(os.environ["NUMBA_CACHE_DIR"]) / f"{function.__module__}-{self._stamp}"
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Callable[..., Any], _source_file: str) -> KernelFiles:
        """Make the object for a function; called by numba."""
        return cls(function)

    def get_cache_path(self) -> str:
        """The folder of the files."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """A digest of everything that the function's module imports, because much of it is inlined in the function."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """The function's line, which distinguishes functions with the same name in a module."""
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """Make the folder. Raises OSError if it cannot be written."""
        self._folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=self._folder).close()


def copy_from_other_version(folder: Path) -> None:
    """Copy a folder of kernels from the cache of another version, if this version does not have it and another one
    does.

    Numba replaces whole files, and a copy that another process makes at the same time has the same kernels.
    Raises OSError if it cannot be copied.
    """
    home = folder.parent
    if folder.exists() or not home.name.startswith(KERNELS_OF):
        return
    made = next(home.parent.glob(f"{KERNELS_OF}*/{folder.name}"), None)
    if made is not None:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as part:
            copied = shutil.copytree(made, Path(part) / folder.name)
            with suppress(FileExistsError):
                copied.rename(folder)


class _Results(CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [KernelFiles]  # noqa: RUF012  # so numba declares it


class KernelCache(FunctionCache):
    """The cache of a kernel, for its dispatcher. A kernel that it can neither load nor store is compiled and runs."""

    _impl_class = _Results

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel for these types; None if it is not in the cache. Called by numba."""
        with suppress(OSError):
            copy_from_other_version(Path(self.cache_path))
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]  # numba leaves it untyped
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the kernel for these types, if the folder can be written. Called by numba."""
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]  # numba leaves it untyped
