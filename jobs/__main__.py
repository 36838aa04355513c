"""`python -m jobs JOB ...`, and the file to hand to a plain spark-submit."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # Run as a file: Python put this folder on the path, and the packages are in the one above.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from jobs.cli import entry

if __name__ == "__main__":
    entry()
