"""The command `refetch`, `python -m refetch`, and the file of an installed wheel to hand to a plain spark-submit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

if not __package__:
    # Run as a file: Python put this folder on the path, and the package is in the one above.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import refetch  # noqa: F401 - puts the packages on the path


def main() -> NoReturn:
    """Run the job that the command line names, else the quickstart."""
    from jobs.cli import entry
    from jobs.quickstart import quickstart_arguments

    entry(sys.argv[1:] or quickstart_arguments())


if __name__ == "__main__":
    main()
