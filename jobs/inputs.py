"""From what a user names (files, folders, patterns) to the capture files to read."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

from udfs.errors import ArgumentError

PACKED_SUFFIXES = tuple(f"{name}{packed}" for name in (".pcap", ".pcapng", ".cap") for packed in ("", ".gz", ".zst"))
SUFFIXES = (*PACKED_SUFFIXES, ".parquet", ".arrow")
"""How the names of captures in a folder end; a file that is named itself may have any name."""


def resolve_captures(named: Iterable[str]) -> tuple[Path, ...]:
    """The files meant by file names, folders (not their subfolders) and patterns (`**` goes down), each once, sorted.

    Raises ArgumentError that lists every name that leads to nothing or to a file that cannot be read.
    """
    named = tuple(named)
    if not named:
        raise ArgumentError(
            "No captures given: name files, folders or patterns by --captures, or under captures: in a scenario file."
        )
    faults: list[str] = []
    found = {path.resolve() for name in named for path in _paths(name, faults)}
    faults.extend(fault for path in sorted(found) if (fault := _unreadable(path)))
    if faults:
        raise ArgumentError("\n  ".join(["Captures cannot be read:", *faults]))
    return tuple(sorted(found))


def _paths(name: str, faults: list[str]) -> list[Path]:
    path = Path(name)
    if path.is_dir():
        inside = [entry for entry in path.iterdir() if entry.is_file() and entry.name.lower().endswith(SUFFIXES)]
        if not inside:
            faults.append(f"{name}: no capture in this folder; looked for names ending in {', '.join(SUFFIXES)}")
        return inside
    # A file may have [ or * in its own name, so it is looked for as written first.
    if path.exists():
        return [path]
    matched = [Path(match) for match in glob.glob(name, recursive=True) if Path(match).is_file()]
    if not matched:
        pattern = glob.has_magic(name)
        faults.append(f"{name}: " + ("no file matches this pattern" if pattern else "there is no such file or folder"))
    return matched


def _unreadable(path: Path) -> str | None:
    try:
        path.open("rb").close()
    except OSError as fault:
        return f"{path}: {fault.strerror}"
    return None
