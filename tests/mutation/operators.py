"""The changes that can be made in a module: each is of one operator."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
"""By operator: the one that replaces it, which gives a result of the same type."""


@dataclass(frozen=True)
class Mutant:
    """A module with one operator changed.

    file: its path from the root of the repository. line: of the expression. function: the first line of the function
    around it, counting its decorators; 0 outside of functions. before, after: the expression. source: of the changed
    module.
    """

    file: str
    line: int
    function: int
    before: str
    after: str
    source: str


def mutants_of(root: Path, changed: str) -> list[Mutant]:
    """All mutants of a module, or of the modules below a folder, file by file."""
    files = [root / changed] if changed.endswith(".py") else sorted((root / changed).rglob("*.py"))
    return [mutant for file in files for mutant in mutants_in(file.relative_to(root).as_posix(), file.read_text())]


def mutants_in(file: str, source: str) -> Iterator[Mutant]:
    """All mutants of one module, in the order of its syntax tree."""
    tree = ast.parse(source)
    for function, node in _expressions(tree, 0):
        for place in range(len(node.ops) if isinstance(node, ast.Compare) else 1):
            operator = _operator(node, place)
            if type(operator) not in SWAPS:
                continue
            before = ast.unparse(node)
            _change(node, place, SWAPS[type(operator)]())
            yield Mutant(file, node.lineno, function, before, ast.unparse(node), ast.unparse(tree) + "\n")
            _change(node, place, operator)


def _expressions(node: ast.AST, function: int) -> Iterator[tuple[int, ast.expr | ast.stmt]]:
    """(first line of the function around it, expression) for all with an operator, except in annotations and in what is
    only for type checkers, which are not evaluated.
    """
    if isinstance(node, Function):
        function = min(part.lineno for part in (node, *node.decorator_list))
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp | ast.Compare):
        yield function, node
    not_evaluated = ("body",) if _is_for_type_checkers(node) else ("annotation", "returns")
    for name, value in ast.iter_fields(node):
        if name not in not_evaluated:
            children = value if isinstance(value, list) else [value]
            for child in (each for each in children if isinstance(each, ast.AST)):
                yield from _expressions(child, function)


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _operator(node: ast.AST, place: int) -> ast.AST:
    return node.ops[place] if isinstance(node, ast.Compare) else node.op  # type: ignore[attr-defined]


def _change(node: ast.AST, place: int, operator: ast.AST) -> None:
    if isinstance(node, ast.Compare):
        node.ops[place] = operator  # type: ignore[call-overload]
    else:
        node.op = operator  # type: ignore[attr-defined]
