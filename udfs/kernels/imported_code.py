"""Which of refetch's own code a kernel depends on: that of its module, and that of everything that the module imports.

Kernels of one algorithm do not depend on those of another. So after a change, only the kernels of modules that import
the changed code are compiled again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import accumulate

from udfs import CODE, sources_of

PACKAGES = ("udfs", "schemas")
_IMPORT = re.compile(
    rb"(?:^|;)[ \t]*(?:from[ \t]+((?:udfs|schemas)[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n;]*)"
    rb"|import[ \t]+((?:udfs|schemas)[^\n;]*))",
    re.MULTILINE,
)
_NAME = re.compile(rb"[\w.]+")


@cache
def digest_of_imports(module: str) -> str:
    """16 hex digits that change with the source of a module, and of any module of refetch that it imports, directly or
    indirectly.

    module: its full name. For a module that is not in PACKAGES they change with any source in PACKAGES.
    """
    if module not in _sources():
        return CODE
    of_each = (f"{name} {_digest(name)}\n" for name in sorted(reached_from(module)))
    return hashlib.sha256("".join(of_each).encode()).hexdigest()[:16]


@cache
def _digest(module: str) -> str:
    return hashlib.sha256(_sources()[module]).hexdigest()


def reached_from(module: str) -> set[str]:
    """The module, and the modules that it imports directly or indirectly."""
    reached, to_follow = set[str](), [module]
    while to_follow:
        name = to_follow.pop()
        if name not in reached:
            reached.add(name)
            to_follow += _imported_by(name)
    return reached


@cache
def _imported_by(module: str) -> frozenset[str]:
    """The modules that a module imports directly, and the packages around it, which Python imports before it."""
    within = accumulate(module.split("."), lambda package, name: f"{package}.{name}")
    return frozenset(name for name in (*within, *names_in_imports(_sources()[module])) if name in _sources())


def names_in_imports(source: bytes) -> Iterator[str]:
    """The names in the import statements of a source: modules, and names in modules, which may be modules, too."""
    for package, names, modules in _IMPORT.findall(source):
        if package:
            yield package.decode()
            yield from (f"{package.decode()}.{name.decode()}" for name in _NAME.findall(names))
        yield from (name.decode() for name in _NAME.findall(modules))


@cache
def _sources() -> dict[str, bytes]:
    """The source of each module of PACKAGES by its full name."""
    return {
        path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): source.read_bytes()
        for package in PACKAGES
        for path, source in sources_of(files(package), package)
    }
