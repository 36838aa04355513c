"""The layer that needs no compiler: Python asks its audit hooks before it opens a file or starts a program (PEP 578).

It sees neither what Arrow and delta-rs do by themselves nor reads and writes; `layer.c` does.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
import sys
from collections.abc import Callable
from threading import local

from tests.faults.control import FILE, FOLDERS, KILL, NUMBERS, SIZE

KINDS = {
    "open": "open", "os.rename": "rename", "os.link": "link", "os.remove": "unlink", "os.mkdir": "mkdir",
    "os.rmdir": "rmdir", "os.truncate": "truncate", "os.listdir": "list", "os.scandir": "list",
    "subprocess.Popen": "exec", "os.exec": "exec",
}  # fmt: skip
"""By audit event, the kind of operation. The first argument of an event is the path, except for those in TARGET."""
TARGET = {"os.rename", "os.link"}
"""The events whose second argument is the path of the new file, which is the one that counts."""


def install() -> None:
    """Install the layer in this process."""
    sys.addaudithook(hook(os.environ[FILE], tuple(os.environ[FOLDERS].split(":"))))


def hook(control: str, folders: tuple[str, ...]) -> Callable[[str, tuple[object, ...]], None]:
    """The hook that counts operations, and fails the chosen one."""
    with open(control, "r+b") as file:
        mapped = mmap.mmap(file.fileno(), SIZE)
    at_work = local()

    def heard(event: str, told: tuple[object, ...]) -> None:
        if event not in KINDS or getattr(at_work, "counts", False):
            return
        at_work.counts = True
        try:
            path = path_of(told[1 if event in TARGET else 0])
            if path is not None and (KINDS[event] == "exec" or is_under(path, folders)):
                count(control, mapped, KINDS[event], path)
        finally:
            at_work.counts = False

    return heard


def path_of(told: object) -> str | None:
    """The absolute path that an event names; None if it names none."""
    return os.path.abspath(os.fsdecode(told)) if isinstance(told, str | bytes | os.PathLike) else None


def is_under(path: str, folders: tuple[str, ...]) -> bool:
    """Whether a file is in one of the folders, and is not Python code."""
    return path.startswith(tuple(f"{folder}/" for folder in folders)) and not path.endswith((".py", ".pyc"))


def count(control: str, mapped: mmap.mmap, kind: str, path: str) -> None:
    """Count an operation, one process at a time. If it is the one to fail, raises OSError or kills this process."""
    with open(control, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        number, fail_at, error, traced = NUMBERS.unpack_from(mapped)
        number += 1
        NUMBERS.pack_into(mapped, 0, number, fail_at, error, traced)
        told = f"{os.getpid()} {kind} {path}"
        if traced:
            with open(f"{control}.trace", "a") as trace:
                trace.write(f"{number} {told}\n")
        if number != fail_at:
            return
        content = told.encode()[: SIZE - NUMBERS.size - 1]
        mapped[NUMBERS.size : NUMBERS.size + len(content)] = content
    if error == KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    raise OSError(error, os.strerror(error), path)
