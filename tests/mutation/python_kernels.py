"""Kernels that run as plain Python, for a process in which NUMBA_DISABLE_JIT is set.

In a compiled kernel, `record.size` is a field of a record; numpy's own records have fields only as `record["size"]`.
Here the arguments of a kernel get their fields as attributes, in the same memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from udfs.kernels import kernel

NARROW = (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32)
"""Integers that compiled kernels widen to 64 bits before they calculate; numpy would calculate in the narrow type."""


class Row(np.void):  # type: ignore[misc]  # final only for the stubs
    """A record whose fields are attributes."""

    def __getattribute__(self, name: str) -> Any:
        """A field, or else numpy's own attribute with this name."""
        if name in (_fields(self) or ()):
            value = self[name]
            return np.int64(value) if isinstance(value, NARROW) else value
        return np.void.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; a record has no other attributes that can be set."""
        self[name] = value


def _fields(record: np.void) -> Any:
    return np.void.__getattribute__(record, "dtype").fields


@functools.cache
def dtype_of_rows(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype with Row for its records, and for the records in them."""
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
    """An argument of a kernel (an array, a record, or a tuple of these) with Row for records, in the same memory."""
    if isinstance(value, np.ndarray):
        return value.view(dtype_of_rows(value.dtype)) if value.dtype.fields is not None else value
    if isinstance(value, np.void) and not isinstance(value, Row):
        return np.asarray(value).view(dtype_of_rows(value.dtype))[()]
    if isinstance(value, tuple):
        parts = [as_rows(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def use() -> None:
    """From here on, let kernels that are defined take records as compiled ones do. Arrays that they make with np.zeros
    and np.empty have such records too.
    """
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
            if depth:  # called by another kernel, whose records are Rows already
                returned = function(*arguments, **named)
                return returned if options else as_rows(returned)
            depth += 1
            try:
                with np.errstate(all="ignore"):  # like machine code, whose numbers wrap around silently
                    return function(*map(as_rows, arguments), **{name: as_rows(value) for name, value in named.items()})
            finally:
                depth -= 1

        return called

    kernel._compile_both_forms = compiled
    for name in ("zeros", "empty"):
        setattr(np, name, made_by(getattr(np, name)))
