"""How numba functions are compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numba
from numba.core import types

_Function = TypeVar("_Function", bound=Callable[..., Any])
_njit: Any = numba.njit  # its type hints leave out _nrt
_unliteral: Any = types.unliteral  # it has none


def kernel(function: _Function) -> _Function:
    """Compile on first call, cache on disk, release the GIL, leave numba's runtime out, and inline into callers.

    With the runtime, references to every array are counted with atomic instructions at each call, which took more
    than half of the decoder's time. Without it a kernel cannot allocate: its output and working memory are arguments.
    A call hands over each array as seven words; inlined, the decoder takes a third of the time.
    """
    return cast(_Function, _once_for_literals(_njit(cache=True, nogil=True, _nrt=False, forceinline=True)(function)))


def allocating_kernel(function: _Function) -> _Function:
    """As `kernel`, with the runtime: for the few functions that make arrays and those that call them."""
    return cast(_Function, _once_for_literals(_njit(cache=True, nogil=True)(function)))


def _once_for_literals(dispatcher: Any) -> Any:
    """The same, compiled once for a call with 0, with 1 and with a variable: numba would take each literal for a type
    of its own, which is a sixth of the time that all kernels take.
    """
    if not hasattr(dispatcher, "get_call_template"):
        return dispatcher  # the plain function, where NUMBA_DISABLE_JIT is set
    resolved = dispatcher.get_call_template

    def get_call_template(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        return resolved([_unliteral(a) for a in args], {name: _unliteral(a) for name, a in kws.items()})

    dispatcher.get_call_template = get_call_template
    return dispatcher
