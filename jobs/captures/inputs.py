"""Finds the capture files that a user names (files, folders, patterns, local or by URI), and checks their time zone."""

from __future__ import annotations

import glob
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from types import MappingProxyType

import pyarrow as pa

from jobs.captures.remote_inputs import resolve_uri
from jobs.terminal.screen import printable_text
from udfs.capture.locations import NO_SECRETS, TO_CHECK, has_secret, is_uri, uri_options, without_secret
from udfs.capture.request_log_head import UTC, is_capture_or_log
from udfs.capture.storage import open_stored
from udfs.columns.arrow_columns import compute
from udfs.errors import ArgumentError, CaptureError

CAPTURE_NAME = re.compile(r"\.(p?cap|pcapng)\d*(\.gz|\.zst)?$|\.(parquet|arrow)$", re.IGNORECASE)
"""The ends of names of captures and frame dumps, with the number that `tcpdump -C` adds. Other files of a folder are
read if their content is a capture or a request log. A file that the user names may have any name."""
READ_FILES = "a capture, a frame dump (.parquet, .arrow) or a request log"
MOST_NAMED = 3
NOWHERE: Mapping[str, str] = MappingProxyType({})


def resolve_captures(named: Iterable[str], places: Mapping[str, str] = NOWHERE) -> tuple[Path | str, ...]:
    """The files meant by file names, folders (not their subfolders) and patterns (`**` goes down), each once, sorted.

    Paths are absolute; what was named by a URI is a URI. Raises ArgumentError, which lists every name that leads to
    nothing or to a file that cannot be read.

    places: the file and line that has each name, for the message about a name that leads to nothing.
    """
    named = tuple(named)
    if not named:
        raise ArgumentError(
            "No captures given: name files, folders or patterns with --captures, or under captures: in a scenario file."
        )
    faults: list[str] = []
    files, remote = set[Path](), set[str]()
    for name in named:
        problems: list[str] = []
        if is_uri(name):
            remote.update(_uris_named(name, problems))
        else:
            files.update(path.resolve() for path in _paths_named(name, problems))
        faults.extend(f"{places[name]}: {fault}" if name in places else fault for fault in problems)
    faults.extend(fault for path in sorted(files) if (fault := _why_unreadable(path)))
    if faults:
        raise ArgumentError("\n  ".join(["Captures cannot be read:", *faults]))
    return (*sorted(files), *sorted(remote))


def check_zone(zone: str | None) -> str:
    """The time zone of request logs; UTC if none is stated. Raises ArgumentError if Arrow knows no such zone."""
    try:
        compute.assume_timezone(pa.nulls(1, pa.timestamp("s")), zone or UTC)
    except pa.ArrowInvalid:
        raise ArgumentError(
            f"--log-zone {zone}: no such time zone; name it as the IANA data base does, such as Europe/Berlin, or "
            "by its offset, such as +02:00"
        ) from None
    return zone or UTC


def _paths_named(name: str, faults: list[str]) -> list[Path]:
    try:
        mode = Path(name).stat().st_mode
        if S_ISDIR(mode):
            return _paths_in_folder(name, faults)
        if S_ISREG(mode):
            return [Path(name)]
        faults.append(f"{name}: is a pipe or a device, and a capture is read twice. Write what it gives into a file.")
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return _matching_paths(name, faults)  # last, for a file may have [ or * in its own name
    except OSError as error:
        faults.append(f"{name}: cannot be read ({error.strerror}). Check the path and that you may read it.")
    return []


def _paths_in_folder(name: str, faults: list[str]) -> list[Path]:
    entries = {entry: _is_capture(str(entry)) for entry in sorted(Path(name).iterdir()) if entry.is_file()}
    inside = [entry for entry, is_capture in entries.items() if is_capture]
    if not inside:
        faults.append(_empty_folder_text(name))
    _tell_left_out(name, [entry.name for entry, is_capture in entries.items() if not is_capture])
    return inside


def _matching_paths(name: str, faults: list[str]) -> list[Path]:
    matched = [Path(match) for match in glob.glob(name, recursive=True) if Path(match).is_file()]
    if not matched:
        faults.append(_nothing_there_text(name))
    return matched


def _uris_named(name: str, faults: list[str]) -> list[str]:
    if has_secret(name):
        faults.append(f"{without_secret(name)}: {NO_SECRETS}")
        return []
    try:
        uris, is_folder = resolve_uri(name)
        inside = [uri for uri in uris if not is_folder or _is_capture(uri)]
        _tell_left_out(name, sorted(set(uris).difference(inside)))
    except OSError as error:
        faults.append(f"{name}: {error.strerror or f'{error}. {TO_CHECK}'}")
        return []
    if not inside:
        faults.append(_empty_folder_text(name) if is_folder else _nothing_there_text(name))
    return inside


def _is_capture(path: str) -> bool:
    """Whether a file is read if its folder is named."""
    name = path.removesuffix(uri_options(path)) if is_uri(path) else path
    if CAPTURE_NAME.search(name):
        return True
    try:
        return is_capture_or_log(path)
    except CaptureError:  # nobody knows whether a file is a capture that cannot be read
        return False


def _tell_left_out(folder: str, names: Sequence[str]) -> None:
    """Name on stderr the files of a folder that are not read, so that a capture among them is noticed."""
    if names:
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        left_out = ", ".join(map(printable_text, names[:MOST_NAMED])) + more
        sys.stderr.write(f"refetch: {printable_text(folder)}: left out, as not {READ_FILES}: {left_out}\n")


def _empty_folder_text(name: str) -> str:
    return f"{name}: no file in this folder is {READ_FILES}; name files themselves to have them read"


def _nothing_there_text(name: str) -> str:
    is_pattern = glob.has_magic(name.removesuffix(uri_options(name)))
    return f"{name}: " + ("no file matches this pattern" if is_pattern else "there is no such file or folder")


def _why_unreadable(path: Path) -> str | None:
    try:
        with open_stored(str(path)):
            return None
    except CaptureError as fault:
        return str(fault)
