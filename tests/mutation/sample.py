"""Change one operator at a time in a copy of the clone, which is the current folder, and print which no test notices.

`python -m tests.mutation` starts this in a process of its own: kernels have to be Python, and numba decides that when
it is imported.
"""

from __future__ import annotations

import ast
import json
import random
import sys
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from tests.mutation.equal import EQUAL
from tests.mutation.operators import Mutant, mutants_of
from tests.mutation.trials import Test, calls_of, outcome

FOR_ALL = 20.0
"""Seconds of processor time that all tests of a mutant may take together without the JIT."""


def module_of(file: str) -> str:
    """The name by which a file is imported."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def importers(root: Path, file: str) -> set[str]:
    """The module's file, and the files of its top package that import the module by `from ... import`."""
    module = module_of(file)
    package, _, name = module.rpartition(".")
    found = {file}
    for other in sorted((root / file.partition("/")[0]).rglob("*.py")):
        for node in ast.walk(ast.parse(other.read_text())):
            if isinstance(node, ast.ImportFrom) and (
                node.module == module or (node.module == package and name in {each.name for each in node.names})
            ):
                found.add(other.relative_to(root).as_posix())
    return found


def tests_of(mutant: Mutant, tests: dict[str, Test], root: Path) -> list[str]:
    """The tests that call the function of a mutant, the fastest first, up to FOR_ALL seconds.

    If none calls it, the code may run when its module is imported. Then these are the tests that call any function of
    the module or of its importers.
    """
    place = mutant.file, mutant.function
    calling = [name for name, test in tests.items() if place in test.calls]
    if not calling:
        files = importers(root, mutant.file)
        calling = [name for name, test in tests.items() if any(file in files for file, _ in test.calls)]
    calling.sort(key=lambda name: tests[name].seconds)
    spent = accumulate(tests[name].seconds for name in calling)
    return [name for name, seconds in zip(calling, spent, strict=True) if seconds <= FOR_ALL]


def trial(mutant: Mutant, tests: dict[str, Test], root: Path) -> str:
    """What notices a mutant (see `outcome`); empty if nothing does."""
    calling = tests_of(mutant, tests, root)
    if not calling:
        return ""
    file = root / mutant.file
    original = file.read_text()
    try:
        file.write_text(mutant.source)
        return outcome(calling, 5 + 5 * max(tests[name].seconds for name in calling))
    finally:
        file.write_text(original)


def lines(root: Path, changed: list[str], tests_in: list[str], number: int, seed: int, limit: float) -> Iterator[str]:
    """A line for the tests, for each test that cannot run without the JIT, for each mutant that no test notices, and
    for the totals.

    changed: the files and folders in which a mutant may be. limit: seconds of processor time that a test may take
    without the JIT.
    """
    name = ", ".join(changed)
    tests, left_out = calls_of(tests_in, limit)
    yield f"{name}: {len(tests):,} tests, which take {sum(test.seconds for test in tests.values()):.0f} s"
    yield from (f"  left out, fails or takes too long without the JIT: {test}" for test in left_out)
    every = [mutant for each in changed for mutant in mutants_of(root, each)]
    chance = random.Random(seed)  # noqa: S311  (not for secrets)
    chosen = chance.sample(every, min(number, len(every)))
    noticed = equal = 0
    for mutant in chosen:
        by = trial(mutant, tests, root)
        noticed += bool(by)
        if not by:
            reason = EQUAL.get((mutant.file, mutant.before, mutant.after), "")
            equal += bool(reason)
            told = f"changes nothing, for {reason}" if reason else "survived"
            yield f"  {mutant.file}:{mutant.line} {told}: {mutant.before}  ->  {mutant.after}"
    yield (
        f"{name}: {noticed} of {len(chosen)} mutants noticed, {equal} change nothing, "
        f"of {len(every):,} that can be made, seed {seed}"
    )


def main() -> None:
    """Print the lines for the only argument: the named arguments of `lines` as JSON."""
    for line in lines(Path.cwd(), **json.loads(sys.argv[1])):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
