"""Hostile input through all of decoding, for a number of seconds; ends at the first case that fails.

    python -m tests.fuzz SECONDS [KIND...] [--seed=N] [--first=N]

A case depends only on the seed, its kind and its number: the command that a failure prints repeats it. With
NUMBA_BOUNDSCHECK=1 and a separate NUMBA_CACHE_DIR, kernels also check every index.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fuzz.cases import KINDS


@contextmanager
def told(again: str) -> Iterator[None]:
    """If the case in the block fails, print the command that repeats it."""
    is_fine = False
    try:
        yield
        is_fine = True
    finally:
        if not is_fine:
            sys.stdout.write(f"failed; to repeat it: python -m tests.fuzz 1 {again}\n")


def fuzz(kind: str, seed: int, first: int, seconds: float, folder: Path) -> str:
    """Run cases of a kind until the time is over. Returns a line with the number of cases and of rows."""
    number, rows, until = first, 0, time.monotonic() + seconds
    while time.monotonic() < until:
        with told(f"{kind} --seed={seed} --first={number}"):
            rows += KINDS[kind](random.Random(f"{seed} {kind} {number}"), folder)  # noqa: S311  (not for secrets)
        number += 1
    return f"{kind}: {number - first:,} cases, {rows:,} rows, none failed\n"


def main() -> None:
    """Fuzz as the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Hostile input through all of decoding.")
    parser.add_argument("seconds", type=float, help="for all kinds together")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; default: all")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)), help="default: drawn, and printed")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    asked = parser.parse_args()
    kinds = asked.kinds or list(KINDS)
    if unknown := sorted(set(kinds) - set(KINDS)):
        parser.error(f"no such kind: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    sys.stdout.write(f"seed {asked.seed}\n")
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            sys.stdout.write(fuzz(kind, asked.seed, asked.first, asked.seconds / len(kinds), Path(folder)))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
