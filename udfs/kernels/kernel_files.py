"""Which files numba keeps a kernel's machine code in.

Numba's own choice asks for the source file. It passes over NUMBA_CACHE_DIR for code in a zip, as executors have it, and
names its folder after the zip's path, which differs for each Spark application.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache

from udfs import CODE


class KernelFiles:
    """Of one function: a folder of its module's in NUMBA_CACHE_DIR, wherever the module was imported from."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._folder = Path(os.environ["NUMBA_CACHE_DIR"]) / function.__module__
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Callable[..., Any], _source_file: str) -> KernelFiles:
        """What numba calls."""
        return cls(function)

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """What the function is compiled from: any of the code, for much of it is inlined."""
        return CODE

    def get_disambiguator(self) -> str:
        """Functions of the same name in a module differ in their lines."""
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """Make the folder. Raises OSError where it cannot be written to."""
        self._folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=self._folder).close()


class _Results(CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [KernelFiles]  # noqa: RUF012  # so numba declares it


class KernelCache(FunctionCache):
    """The cache of a kernel, for its dispatcher."""

    _impl_class = _Results
