"""Where the kernels' machine code is kept: in the user's cache, or elsewhere if nothing can be written there."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryFile

from udfs import private_folder
from udfs.kernels.compiled_parts import DECODER, marker_of_part

_FOLDER = "NUMBA_CACHE_DIR"
_NEEDED_BYTES = 16 << 20
"""How much room must be free. The machine code of one version takes three quarters of this."""


def choose_kernel_cache() -> None:
    """If the user's cache is full or cannot be written, make this process and those that it starts from now on keep
    machine code among temporary files, and say so on stderr. A cache that already has the decoder's code is kept.
    """
    if all(marker_of_part(part).exists() for part in DECODER):
        return
    folder = Path(os.environ[_FOLDER])
    fault = why_not_kept(folder)
    if fault is not None:
        elsewhere = private_folder() / folder.name
        os.environ[_FOLDER] = str(elsewhere)
        sys.stderr.write(f"refetch: {folder}: {fault}. The kernels' machine code is kept in {elsewhere} instead\n")


def why_not_kept(folder: Path) -> str | None:
    """Why machine code cannot be kept in a folder; None if it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(_NEEDED_BYTES))
            file.flush()
    except OSError as fault:
        return fault.strerror or type(fault).__name__
    return None
