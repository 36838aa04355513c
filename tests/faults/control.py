"""The control file: tests write into it which operation has to fail, the layers of all processes what they counted.

A layer counts each operation on files below some folders, and each program that is started. There are two layers:
`layer.c`, which sees all calls of a Python process; and `audit.py`, for machines without a C compiler, which sees only
what Python itself does.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jobs.paths import python_path

FILE, FOLDERS, BY_AUDIT = "REFETCH_FAULTS", "REFETCH_FAULTS_UNDER", "REFETCH_FAULTS_AUDIT"
"""Environment variables: the control file, the folders, and whether the layer is `audit.py`."""
NUMBERS = struct.Struct("=4q")
"""Four numbers of the control file: operations counted; the number of the one that fails, 0 for none; the errno, or
KILL; 1 if a line is written for each operation.
"""
SIZE, KILL = 4096, -1
ERRORS: Mapping[str, int] = {
    "ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EACCES": errno.EACCES, "EINTR": errno.EINTR, "KILL": KILL,
}  # fmt: skip
LAYER = Path(__file__).with_name("layer.c")
SITE = Path(__file__).with_name("site")


@dataclass(frozen=True)
class Failed:
    """An operation that a layer failed or traced: the process, the kind of operation, and the path of its file."""

    process: int
    kind: str
    path: str


class Control:
    """The control file at a path."""

    def __init__(self, path: Path) -> None:
        """Map the file, which has to exist."""
        self.path = path
        with path.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), SIZE)

    @classmethod
    def made(cls, path: Path) -> Control:
        """A control file that is made anew."""
        path.write_bytes(bytes(SIZE))
        return cls(path)

    def arm(self, number: int, error: int) -> None:
        """Count from 0, and let this operation fail."""
        self._mapped[:] = NUMBERS.pack(0, number, error, 0) + bytes(SIZE - NUMBERS.size)

    def trace(self) -> None:
        """Count from 0, fail no operation, and write a line for each."""
        self.traces.write_text("")
        self._mapped[:] = NUMBERS.pack(0, 0, 0, 1) + bytes(SIZE - NUMBERS.size)

    def disarm(self) -> None:
        """From now on fail no operation, and write no lines."""
        self._mapped[8:32] = bytes(24)

    @property
    def count(self) -> int:
        """How many operations were counted."""
        return int(NUMBERS.unpack_from(self._mapped)[0])

    @property
    def traces(self) -> Path:
        """The file with a line for each operation."""
        return self.path.with_name(f"{self.path.name}.trace")

    @property
    def traced(self) -> list[Failed]:
        """The operations since `trace`, in order."""
        return [as_failed(line.split(" ", 1)[1]) for line in self.traces.read_text().splitlines()]

    @property
    def failed(self) -> Failed | None:
        """The operation that failed; None if it was not reached."""
        told = self._mapped[NUMBERS.size :].split(b"\0", 1)[0].decode(errors="replace")
        return as_failed(told) if told else None


def as_failed(told: str) -> Failed:
    """The operation that a layer wrote as `PROCESS KIND PATH`."""
    process, kind, path = told.split(" ", 2)
    return Failed(int(process), kind, path)


def environment(control: Control, folders: Sequence[Path], by_audit: bool) -> dict[str, str]:
    """The environment variables that install a layer in a command's processes."""
    told = {FILE: str(control.path), FOLDERS: ":".join(map(str, folders))}
    if not by_audit:
        return told | {"LD_PRELOAD": str(built_layer())}
    return told | {BY_AUDIT: "1", "PYTHONPATH": os.pathsep.join([str(SITE), python_path()])}


def has_compiler() -> bool:
    """Whether `layer.c` can be built on this machine."""
    return os.uname().sysname == "Linux" and shutil.which("cc") is not None


@cache
def built_layer() -> Path:
    """The path of the library built from `layer.c`."""
    library = Path(tempfile.mkdtemp(prefix="refetch-layer-")) / "layer.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(LAYER), "-ldl"], check=True)
    return library
