"""The array types of kernels, and functions that make arrays ready for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Shorts = npt.NDArray[np.int16]
Codes = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Cells = Bytes | Ints


class Records(Protocol):
    """A structured array: rows by number, and columns by the names of its dtype's fields.

    A column has the type Any: with numpy's own types, mypy takes twice as long for all the code.
    """

    @property
    def dtype(self) -> np.dtype[np.void]: ...

    @property
    def shape(self) -> Any: ...

    @property
    def size(self) -> int: ...

    def __array__(self) -> npt.NDArray[np.void]: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __getitem__(self, key: Any, /) -> Any: ...

    def __setitem__(self, key: Any, value: Any, /) -> None: ...

    def copy(self) -> Records: ...

    def compress(self, rows: Any, /) -> Any: ...

    def reshape(self, shape: Any, /) -> Any: ...

    def take(self, rows: Any, /) -> Any: ...

    def tolist(self) -> Any: ...

    def view(self, dtype: Any, /) -> Any: ...


class Record(Protocol):
    """A row of a structured array in a kernel. Its fields are attributes, which can be set in place."""

    def __getattr__(self, name: str) -> Any: ...

    def __setattr__(self, name: str, value: Any) -> None: ...


Array = TypeVar("Array", bound=npt.NDArray[Any] | Records)


def all_read_only(columns: Iterable[Any]) -> Iterator[Any]:
    """A read-only view of each of several arrays, whose types may differ; see `read_only`."""
    return map(read_only, columns)


def stretch_edges(lengths: npt.ArrayLike) -> Ints:
    """Where stretches of these lengths begin if one follows the other, and where the last one ends: int64[n + 1].

    >>> stretch_edges([3, 0, 2]).tolist()
    [0, 3, 3, 5]
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def numbers_in_stretches(begins: Ints, lengths: Ints) -> Ints:
    """The numbers of stretches, one stretch after the other: int64[sum of lengths]. A stretch has `length` numbers that
    count up from `begin`.

    begins, lengths: int64[n].

    >>> numbers_in_stretches(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = stretch_edges(lengths)
    return np.repeat(begins - ends[:-1], lengths) + np.arange(ends[-1])


def as_int64s(values: npt.NDArray[Any]) -> Ints:
    """The values as contiguous int64[values.shape]; they are copied only if they are not that already."""
    return np.ascontiguousarray(values, np.int64)


def read_only(values: Array) -> Array:
    """A contiguous view of the values that cannot be written.

    If all input is read-only, kernels are compiled for only one type.
    """
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view  # type: ignore[return-value]  # of the same kind, which stubs do not say
