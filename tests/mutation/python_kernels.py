"""Kernels as the Python that they are written in, for a process in which NUMBA_DISABLE_JIT is set.

Compiled, `record.size` is a field of a record; numpy's own records have fields by `record["size"]` alone. Here whatever
a kernel is called with has its fields as attributes, in the same memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from udfs.kernels import kernel

NARROW = (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32)
"""Integers that compiled kernels make 64 bits wide before they calculate; numpy makes what they meet narrow instead."""


class Row(np.void):  # type: ignore[misc]  # final only for the stubs
    """A record with its fields as attributes."""

    def __getattribute__(self, name: str) -> Any:
        """A field, or what numpy has by this name."""
        if name in (_fields(self) or ()):
            value = self[name]
            return np.int64(value) if isinstance(value, NARROW) else value
        return np.void.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; there is nothing else to set."""
        self[name] = value


def _fields(record: np.void) -> Any:
    return np.void.__getattribute__(record, "dtype").fields


@functools.cache
def dtype_of_rows(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A dtype with Row for its records and for those in them."""
    if dtype.subdtype is not None:
        return np.dtype((dtype_of_rows(dtype.subdtype[0]), dtype.subdtype[1]))
    if dtype.fields is None:
        return dtype
    return np.dtype((
        Row,
        {
            "names": list(dtype.names or ()),
            "formats": [dtype_of_rows(dtype.fields[name][0]) for name in dtype.names or ()],
            "offsets": [dtype.fields[name][1] for name in dtype.names or ()],
            "itemsize": dtype.itemsize,
        },
    ))  # fmt: skip


def as_rows(value: Any) -> Any:
    """An argument of a kernel with Row for records, in the same memory: an array, a record, or a tuple of such."""
    if isinstance(value, np.ndarray):
        return value.view(dtype_of_rows(value.dtype)) if value.dtype.fields is not None else value
    if isinstance(value, np.void) and not isinstance(value, Row):
        return np.asarray(value).view(dtype_of_rows(value.dtype))[()]
    if isinstance(value, tuple):
        parts = [as_rows(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def use() -> None:
    """Have all kernels that are made from here on take records as compiled ones do, and make such themselves."""
    depth = 0

    def made_by(make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def made(*arguments: Any, **named: Any) -> Any:
            return as_rows(make(*arguments, **named)) if depth else make(*arguments, **named)

        return made

    def compiled(function: Callable[..., Any], **options: bool) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            nonlocal depth
            if depth:  # by another kernel, which has the rows that it was called with, and those that are made for it
                returned = function(*arguments, **named)
                return returned if options else as_rows(returned)
            depth += 1
            try:
                with np.errstate(all="ignore"):  # as of machine code, whose numbers wrap around without a warning
                    return function(*map(as_rows, arguments), **{name: as_rows(value) for name, value in named.items()})
            finally:
                depth -= 1

        return called

    kernel._compile_both_forms = compiled
    for name in ("zeros", "empty"):
        setattr(np, name, made_by(getattr(np, name)))
