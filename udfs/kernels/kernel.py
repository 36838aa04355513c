"""How numba functions are compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numba
from numba._dynfunc import make_function
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from udfs.kernels.kernel_files import KernelCache

_Function = TypeVar("_Function", bound=Callable[..., Any])
_njit: Any = numba.njit  # its type hints leave out _nrt
_unliteral: Any = types.unliteral  # it has none


def kernel(function: _Function) -> _Function:
    """Compile on first call, cache on disk, release the GIL, leave numba's runtime out, and inline into callers.

    With the runtime, each call counts the references to every array with atomic instructions. In one decoder that took
    more than half of the time. Without the runtime a kernel cannot allocate: its output and working memory are
    arguments. A call that is not inlined passes each array as seven words. With inlining, that decoder took a third of
    the time.
    """
    return cast(_Function, _compile_both_forms(function, _nrt=False, forceinline=True))


def allocating_kernel(function: _Function) -> _Function:
    """Compile with numba's runtime, and without inlining: for the few functions that make arrays, and their callers."""
    return cast(_Function, _compile_both_forms(function))


def inlined_kernel(function: _Function) -> _Function:
    """Put the function's code into its callers before they are compiled. This is for views, which kernels cannot
    return.
    """
    return cast(_Function, _njit(inline="always")(function))


def _compile_both_forms(function: Callable[..., Any], **options: bool) -> Any:
    """A kernel that is compiled in one form for calls from Python, and in another form for calls from kernels.

    The form for kernels lacks the wrappers for calls from Python and C, which unpack every array of every argument and
    are a third of what is compiled. It becomes part of its callers' machine code, and is not cached itself.
    """
    called_by_python = _njit(nogil=True, **options)(function)
    if not hasattr(called_by_python, "get_call_template"):
        return function  # NUMBA_DISABLE_JIT is set
    # This is what cache=True does, except that we choose the files.
    called_by_python._cache = KernelCache(function)  # type: ignore[no-untyped-call]  # numba leaves it untyped
    called_by_kernels = _njit(
        no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_CompilerOfParts, **options
    )(function)

    def get_call_template(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Compile once for both literals and variables: numba would give each literal its own type."""
        return called_by_kernels.get_call_template(
            [_unliteral(a) for a in args], {name: _unliteral(a) for name, a in kws.items()}
        )

    called_by_python.get_call_template = get_call_template
    called_by_python.get_overload = called_by_kernels.get_overload
    return called_by_python


class _Part(JITCodeLibrary):
    """Code that is linked into its callers, and becomes machine code there.

    Numba would optimise it fully and make machine code that nobody calls. That took a quarter of the time to compile
    all kernels. Without any optimisation, its callers were slower by a tenth or more.
    """

    def _optimize_final_module(self) -> None:
        managers: Any = self._codegen._module_pass_manager  # numba leaves it untyped
        passes, builder = managers(opt=1, loop_vectorize=False, slp_vectorize=False)
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]  # numba leaves it untyped
        self._finalized = True


class _CompilerOfParts(Compiler):
    """Compiles a function only for calls from kernels, as numba compiles its own subroutines."""

    def __init__(
        self, typing: Any, target: Any, _library: Any, arguments: Any, result: Any, flags: Any, variables: Any
    ) -> None:
        flags = flags.copy()
        flags.no_compile = True
        part = _Part(target.codegen(), "part")  # type: ignore[no-untyped-call]  # as above
        super().__init__(typing, target, part, arguments, result, flags, variables)  # type: ignore[no-untyped-call]

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function that Python never calls, and register it under a name for compiling its callers."""
        part = super().compile_extra(func)  # type: ignore[no-untyped-call]  # as above
        of = part.fndesc
        name = make_function(of.lookup_module(), of.qualname, "", 0, part.environment, (part.library,))
        self.state.targetctx.insert_user_function(name, of, [part.library])
        return part._replace(entry_point=name)
