"""How numba functions are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])
_njit: Any = numba.njit  # its type hints leave out _nrt


def kernel(function: _Function) -> _Function:
    """Compile on first call, cache on disk, release the GIL, leave numba's runtime out, and inline into callers.

    With the runtime, references to every array are counted with atomic instructions at each call, which took more
    than half of the decoder's time. Without it a kernel cannot allocate: its output and working memory are arguments.
    A call hands over each array as seven words; inlined, the decoder takes a third of the time.
    """
    return cast(_Function, _njit(cache=True, nogil=True, _nrt=False, forceinline=True)(function))


def allocating_kernel(function: _Function) -> _Function:
    """As `kernel`, with the runtime: for the few functions that make arrays and those that call them."""
    return cast(_Function, _njit(cache=True, nogil=True)(function))
