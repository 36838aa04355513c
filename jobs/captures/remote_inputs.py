"""Captures named by URIs: files, folders and patterns on any file system that pyarrow opens."""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Iterable, Iterator

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from udfs.capture.locations import file_system_and_path, quote_path, uri_options

DEEP = "**"


def resolve_uri(name: str) -> tuple[list[str], bool]:
    """(URIs of the files meant by a URI of a file, folder or pattern, whether it names a folder).

    Raises OSError if the file system cannot be reached, or has no such bucket.
    """
    query = uri_options(name)
    path = name.removesuffix(query)
    system, at = file_system_and_path(name)
    file_info = system.get_file_info(at)
    if file_info.type == FileType.File:
        return [quote_path(path) + query], False
    if file_info.type == FileType.Directory:
        return [_uri_of_file(path, at, info, query) for info in _files_inside(system, at) if info.is_file], True
    if not glob.has_magic(path):
        _check_bucket(system, at)
        return [], False
    root, pattern = _split_at_pattern(path)
    system, at = file_system_and_path(root + query)
    matched = {info.path: info for info in _matching_files(system, at, pattern.split("/")) if info.is_file}
    return [_uri_of_file(root, at, info, query) for info in matched.values()], False


def _check_bucket(system: FileSystem, path: str) -> None:
    """Raises OSError if the path is on S3 and its bucket does not exist: S3 would only say that there is no such
    object.
    """
    bucket = path.partition("/")[0]
    if system.type_name == "s3" and bucket and system.get_file_info(bucket).type == FileType.NotFound:
        raise OSError(0, f"there is no bucket {bucket}")


def _split_at_pattern(path: str) -> tuple[str, str]:
    """(the folder above the first part that is a pattern, the rest)."""
    parts = path.split("/")
    first = next(n for n, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:first]), "/".join(parts[first:])


def _uri_of_file(root: str, at: str, info: FileInfo, query: str) -> str:
    """The URI of a file. root: the URI of a folder above it. at: that folder's path on its file system."""
    below = info.path[len(at.rstrip("/")) :].lstrip("/").replace("%", "%25")
    return f"{quote_path(root.rstrip('/'))}/{quote_path(below)}{query}"


def _files_inside(system: FileSystem, folder: str, *, deep: bool = False) -> Iterable[FileInfo]:
    return sorted(system.get_file_info(FileSelector(folder, recursive=deep)), key=lambda info: info.path)


def _matching_files(system: FileSystem, folder: str, parts: list[str]) -> Iterator[FileInfo]:
    """What the parts of a pattern match below a folder; `**` matches any number of folders, also none."""
    first, rest = parts[0], parts[1:]
    if first == DEEP and rest:
        yield from _matching_files(system, folder, rest)
        for info in _files_inside(system, folder, deep=True):
            if info.type == FileType.Directory:
                yield from _matching_files(system, info.path, rest)
        return
    for info in _files_inside(system, folder, deep=first == DEEP):
        if first != DEEP and not fnmatch.fnmatchcase(info.base_name, first):
            continue
        if not rest:
            yield info
        elif info.type == FileType.Directory:
            yield from _matching_files(system, info.path, rest)
