"""How many changes the unit tests notice: a random operator is changed, and the tests that call its function are run.

    python -m tests.mutation [--package=NAME | --module=FILE ...] [--mutants=N] [--seed=N] [--seconds=N]

Prints each change that no test notices. The changes are made in a copy of the clone, never in the clone itself. Kernels
run as Python, so that none has to be compiled; tests that fail or take too long this way are left out, and named.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import REPOSITORY

FOLDERS = {
    "replay": ["replay"], "facts": ["facts", "jobs/test_names.py"], "capture": ["capture"],
    "wire": ["wire", "replay/session_cache/test_contents.py"],
}  # fmt: skip
"""By package of udfs: where its tests are in tests/unit. The tests of a folder in a package are in a folder with the
same name, such as `replay/session_cache`."""


EXAMPLES = "test_examples.py"
"""Runs the examples in the docstrings of all packages."""


def left_out(folder: str, names: list[str]) -> set[str]:
    """The names in a folder that are not copied: hidden, compiled, and the lake at the root (`jobs/lake` is code)."""
    compiled = shutil.ignore_patterns(".*", "__pycache__")(folder, names)
    return compiled | ({"lake"} if Path(folder) == REPOSITORY else set())


def folders_of_tests(package: str) -> list[str]:
    """Where the tests of a package, or of a folder in one, are in the clone. Raises SystemExit if there are none."""
    folders = [f"tests/unit/{name}" for name in [*FOLDERS.get(package, [package]), EXAMPLES]]
    if not (REPOSITORY / "udfs" / package).is_dir() or not all((REPOSITORY / folder).exists() for folder in folders):
        raise SystemExit(
            f"--package={package}: udfs or tests/unit has no such folder. Name one of {', '.join(FOLDERS)}, "
            "or a folder in one, as replay/shared"
        )
    return folders


def changed_by_package(package: str | None, modules: list[str]) -> dict[str, list[str]]:
    """What is changed, files or folders, by the package whose tests notice it. Raises SystemExit for a module that is
    not there.
    """
    if not modules:
        return {name: [f"udfs/{name}"] for name in ([package] if package else FOLDERS)}
    grouped: dict[str, list[str]] = {}
    for module in modules:
        top, *folders = Path(module).parts[:-1] or [""]
        if top != "udfs" or not folders or not (REPOSITORY / module).is_file():
            raise SystemExit(f"--module={module}: there is no such file. Name one below udfs, as udfs/wire/records.py")
        grouped.setdefault("/".join(folders[: 2 if folders[0] == "replay" else 1]), []).append(module)
    return grouped


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Which changes no unit test notices.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--package", help="of udfs, or a folder in one, as replay/shared; default: each package")
    what.add_argument("--module", action="append", default=[], help="a file, as udfs/wire/records.py; may be repeated")
    parser.add_argument("--mutants", type=int, default=30, help="changes of each package; default: 30")
    parser.add_argument("--seed", type=int, default=1, help="of the random choice; default: 1")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a test without the JIT, at most; default: 2")
    return parser.parse_args()


def run(copy: Path, package: str, changed: list[str], asked: argparse.Namespace) -> int:
    """Try mutants of files or folders of a package in the copy, which prints them. Returns the exit code."""
    what = {"changed": changed, "tests_in": folders_of_tests(package), "number": asked.mutants}
    what |= {"seed": asked.seed, "limit": asked.seconds}
    return subprocess.run(
        [sys.executable, "-m", "tests.mutation.sample", json.dumps(what)],
        cwd=copy,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONHASHSEED": "0"},
        check=False,
    ).returncode


def main() -> int:
    """Try the packages. Returns 1 if their tests cannot be run."""
    asked = arguments()
    packages = changed_by_package(asked.package, asked.module)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "clone"
        shutil.copytree(REPOSITORY, copy, ignore=left_out)
        return max(run(copy, package, changed, asked) for package, changed in packages.items())


if __name__ == "__main__":
    sys.exit(main())
