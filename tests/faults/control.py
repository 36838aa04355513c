"""The file by which a test tells the layers under all processes which operation is to fail, and they what they counted.

A layer counts each operation on files below some folders, and each program that is started. There are two: `layer.c`,
under all that a Python process calls, and where there is no C compiler `audit.py`, under what Python itself does.
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
"""The variables that name the control file and the folders, and that choose Python's own layer."""
NUMBERS = struct.Struct("=4q")
"""Operations counted; the one that fails, 0 for none; the errno, or KILL; whether a line is written for each."""
SIZE, KILL = 4096, -1
ERRORS: Mapping[str, int] = {
    "ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EACCES": errno.EACCES, "EINTR": errno.EINTR, "KILL": KILL,
}  # fmt: skip
LAYER = Path(__file__).with_name("layer.c")
SITE = Path(__file__).with_name("site")


@dataclass(frozen=True)
class Failed:
    """An operation that a layer has failed: the process, what it was to do, and to which file."""

    process: int
    kind: str
    path: str


class Control:
    """The control file at a path."""

    def __init__(self, path: Path) -> None:
        """Take the file that is there."""
        self.path = path
        with path.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), SIZE)

    @classmethod
    def made(cls, path: Path) -> Control:
        """One in a new file."""
        path.write_bytes(bytes(SIZE))
        return cls(path)

    def arm(self, number: int, error: int) -> None:
        """Count anew, and have this operation fail."""
        self._mapped[:] = NUMBERS.pack(0, number, error, 0) + bytes(SIZE - NUMBERS.size)

    def trace(self) -> None:
        """Count anew, fail none, and have a line written for each."""
        self.traces.write_text("")
        self._mapped[:] = NUMBERS.pack(0, 0, 0, 1) + bytes(SIZE - NUMBERS.size)

    def disarm(self) -> None:
        """Fail no operation any more, and write no lines."""
        self._mapped[8:32] = bytes(24)

    @property
    def count(self) -> int:
        """The operations counted."""
        return int(NUMBERS.unpack_from(self._mapped)[0])

    @property
    def traces(self) -> Path:
        """The file of lines."""
        return self.path.with_name(f"{self.path.name}.trace")

    @property
    def traced(self) -> list[Failed]:
        """The operations counted since `trace`, in their order."""
        return [as_failed(line.split(" ", 1)[1]) for line in self.traces.read_text().splitlines()]

    @property
    def failed(self) -> Failed | None:
        """The operation that has failed; None where it was not reached."""
        told = self._mapped[NUMBERS.size :].split(b"\0", 1)[0].decode(errors="replace")
        return as_failed(told) if told else None


def as_failed(told: str) -> Failed:
    """What a layer has told of an operation: `PROCESS KIND PATH`."""
    process, kind, path = told.split(" ", 2)
    return Failed(int(process), kind, path)


def environment(control: Control, folders: Sequence[Path], by_audit: bool) -> dict[str, str]:
    """The variables that put a layer under a command."""
    told = {FILE: str(control.path), FOLDERS: ":".join(map(str, folders))}
    if not by_audit:
        return told | {"LD_PRELOAD": str(built_layer())}
    return told | {BY_AUDIT: "1", "PYTHONPATH": os.pathsep.join([str(SITE), python_path()])}


def has_compiler() -> bool:
    """Whether `layer.c` can be built here."""
    return os.uname().sysname == "Linux" and shutil.which("cc") is not None


@cache
def built_layer() -> Path:
    """The library made from `layer.c`."""
    library = Path(tempfile.mkdtemp(prefix="refetch-layer-")) / "layer.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(LAYER), "-ldl"], check=True)
    return library
