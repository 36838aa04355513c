"""Which kernels there are, which of them Python calls, and which the warm-up does not compile, so that workers have to.

    python -m tests.kernels

runs the warm-up and prints a line for each kernel that it does not compile. It has to run in a process of its own: in
any other process, kernels may have been called before.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from numba.core.dispatcher import Dispatcher

import udfs
from udfs.kernels import warm_up

DECORATORS = {"kernel", "allocating_kernel", "inlined_kernel"}


def modules() -> list[ModuleType]:
    """All modules of udfs."""
    found = pkgutil.walk_packages(udfs.__path__, "udfs.")
    return [import_module(name) for name in sorted(module.name for module in found)]


def is_kernel(node: ast.AST) -> bool:
    """Whether a statement defines a kernel."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(isinstance(each, ast.Name) and each.id in DECORATORS for each in decorators)


def named_in(module: ModuleType, nodes: Iterable[ast.AST]) -> Iterator[Any]:
    """The kernels that some code of a module names, either as `kernel` or as `module.kernel`."""
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        found: Any = None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found = getattr(module, node.id, None)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found = getattr(getattr(module, node.value.id, None), node.attr, None)
        if isinstance(found, Dispatcher):
            yield found


def calls() -> tuple[dict[Any, set[Any]], set[Any]]:
    """(every kernel with the kernels that it calls, the kernels that Python calls)."""
    called_by: dict[Any, set[Any]] = {}
    by_python: set[Any] = set()
    for module in modules():
        for statement in ast.parse(inspect.getsource(module)).body:
            if isinstance(statement, ast.FunctionDef) and is_kernel(statement):
                called_by[getattr(module, statement.name)] = set(named_in(module, statement.body))
            else:
                by_python |= set(named_in(module, [statement]))
    return called_by, by_python


def left_out() -> list[str]:
    """The kernels that the warm-up does not compile: those that Python calls and the warm-up does not, and those that
    no kernel compiled by the warm-up calls.
    """
    for run in warm_up.RUNS.values():
        run()
    called_by, by_python = calls()
    done = {kernel for kernel in called_by if kernel.signatures}
    reached, found = set(done), list(done)
    while found:
        more = called_by[found.pop()] - reached
        reached |= more
        found += more
    missing = (by_python - done) | (called_by.keys() - reached)
    return sorted(f"{kernel.py_func.__module__}.{kernel.py_func.__name__}" for kernel in missing)


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}\n" for name in left_out())
