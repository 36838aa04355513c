"""Prefetches memory before it is read: reading rows that are scattered in memory is mostly waiting for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from udfs.columns.arrays import Cells
from udfs.kernels.kernel import kernel

LINE_BYTES = 64
"""The length of a line of the processor's cache. If real lines are longer, some are prefetched twice."""

_config: Any = config  # its type hints leave out what the environment sets
_INT = ir.IntType(32)
_PREFETCH = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), _INT, _INT, _INT])
_ARGUMENTS = (0, 3, 1)  # of llvm.prefetch: for reading, keep in the cache, data


def _emit_prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """The signature of prefetching the line of an array's element, and the function that generates it."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        address = builder.bitcast(builder.gep(data, [values[1]]), _PREFETCH.args[0])
        declare: Any = cgutils.get_or_insert_function
        builder.call(declare(builder.module, _PREFETCH, "llvm.prefetch.p0"), [address, *map(_INT, _ARGUMENTS)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _do_nothing(array: Cells, index: int) -> None:
    """Do nothing: for use if numba compiles nothing."""


_prefetch = cast(Callable[[Cells, int], None], _do_nothing if _config.DISABLE_JIT else intrinsic(_emit_prefetch))


@kernel
def prefetch_cells(cells: Cells, first: int, count: int) -> None:
    """Prefetch cells[first : first + count]; harmless if there are no such cells."""
    for index in range(first, first + count, LINE_BYTES // cells.itemsize):
        _prefetch(cells, index)
    _prefetch(cells, first + count - 1)
