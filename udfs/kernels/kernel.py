"""How numba functions are compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numba
from numba.core import types

from udfs.kernels.kernel_files import KernelCache

_Function = TypeVar("_Function", bound=Callable[..., Any])
_njit: Any = numba.njit  # its type hints leave out _nrt
_unliteral: Any = types.unliteral  # it has none


def kernel(function: _Function) -> _Function:
    """Compile on first call, cache on disk, release the GIL, leave numba's runtime out, and inline into callers.

    With the runtime, each call counts the references to every array by atomic instructions; in one decoder that took
    more than half of the time. Without it a kernel cannot allocate: its output and working memory are arguments. A call
    that is not inlined passes each array as seven words; inlined, that decoder took a third of the time.
    """
    return cast(_Function, _compiled(function, _nrt=False, forceinline=True))


def allocating_kernel(function: _Function) -> _Function:
    """Compile with numba's runtime, and without inlining: for the few functions that make arrays, and their callers."""
    return cast(_Function, _compiled(function))


def _compiled(function: Callable[..., Any], **options: bool) -> Any:
    """A kernel that is compiled in one form for calls from Python and in another for calls from kernels.

    The form for kernels lacks the wrappers for calls from Python and C, which unpack every array of every argument and
    are a third of what there is to compile. It becomes part of its callers' machine code and is not cached itself.
    """
    called_by_python = _njit(nogil=True, **options)(function)
    if not hasattr(called_by_python, "get_call_template"):
        return function  # NUMBA_DISABLE_JIT is set
    # This is what cache=True does, except that we choose the files.
    called_by_python._cache = KernelCache(function)  # type: ignore[no-untyped-call]  # numba leaves it untyped
    called_by_kernels = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)

    def get_call_template(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Compile once for literals and variables alike: numba would give each literal a type of its own."""
        return called_by_kernels.get_call_template(
            [_unliteral(a) for a in args], {name: _unliteral(a) for name, a in kws.items()}
        )

    called_by_python.get_call_template = get_call_template
    called_by_python.get_overload = called_by_kernels.get_overload
    return called_by_python
