"""Fail the n-th operation of a small pipeline, for every n: check its message, its lake, and the run that follows.

    python -m tests.faults [--stride=N] [--first=N] [--sites] [--seconds=N] [--layer=audit] [ERROR...]

Operations are opens, reads, writes, renames, links, removals, syncs and starts of programs, by the driver and by the
workers, on files of the lake, the captures, the caches, the temporary folder and refetch's own settings and templates.
An ERROR is ENOSPC, EIO, EACCES, EINTR or KILL, which kills the process at the operation; default: all of them.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.faults.commands import Case, traced, tried, undisturbed
from tests.faults.control import ERRORS, Control, Failed, has_compiler
from tests.faults.undisturbed import made_home

_VARIES = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|tmp\w{8}|\d+")


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Fail the n-th operation, for every n.")
    parser.add_argument("errors", nargs="*", metavar="ERROR", help=f"{', '.join(ERRORS)}; default: all")
    parser.add_argument("--stride", type=int, default=1, help="fail each N-th operation; default: each")
    parser.add_argument("--first", type=int, default=1, help="the first operation that fails; default: 1")
    parser.add_argument("--sites", action="store_true", help="only the first operation of a kind on a file")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no new case after this time")
    parser.add_argument("--layer", choices=("c", "audit"), help="default: c if there is a compiler")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.errors) - set(ERRORS)):
        parser.error(f"no such error: {', '.join(unknown)}; there are {', '.join(ERRORS)}")
    return asked


def numbers(operations: Sequence[Failed], first: int, stride: int, by_site: bool) -> Iterator[int]:
    """The numbers of the operations to fail; the first operation has number 1."""
    seen = set[tuple[str, str]]()
    for number, operation in enumerate(operations, 1):
        site = operation.kind, _VARIES.sub("#", operation.path)
        if number >= first and (number - first) % stride == 0 and not (by_site and site in seen):
            yield number
        seen.add(site)


def told(case: Case) -> str:
    """A line for a case, one for each of its faults, and the last line of stderr if it has any."""
    what = "no operation" if case.failed is None else f"{case.failed.kind} {case.failed.path}"
    error = next(name for name, number in ERRORS.items() if number == case.error)
    last = case.ended.said.strip().splitlines()[-1:] if case.faults else []
    faults = [f"  {line}" for line in [*case.faults, *last]]
    return "\n".join([f"{error} {case.number}: {what}: exit {case.ended.code}", *faults])


def main() -> int:
    """Try the operations. Returns 1 if a case has faults."""
    asked = arguments()
    by_audit = asked.layer == "audit" or not has_compiler()
    home, control = made_home(), Control.made(Path(tempfile.mkdtemp(prefix="refetch-control-")) / "control")
    until, tries, wrong = time.monotonic() + asked.seconds, 0, 0
    expected, operations = undisturbed(home), traced(home, control, by_audit)
    sys.stdout.write(f"{len(operations):,} operations in an undisturbed run\n")
    for number in numbers(operations, asked.first, asked.stride, asked.sites):
        for error in asked.errors or list(ERRORS):
            if time.monotonic() > until:
                break
            # Python itself repeats a call that a signal interrupts (PEP 475), and audit hooks do not see that.
            if not (by_audit and error == "EINTR"):
                case = tried(home, control, number, ERRORS[error], expected, by_audit=by_audit)
                tries, wrong = tries + 1, wrong + bool(case.faults)
                sys.stdout.write(f"{told(case)}\n")
                sys.stdout.flush()
    shutil.rmtree(home.folder)
    sys.stdout.write(f"{tries:,} cases, {wrong:,} with faults\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
