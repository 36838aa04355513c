"""Java's classes as an earlier start of Spark has loaded them: mapped into memory instead of loaded and verified again.

A Spark job loads some 20,000 classes. Java writes them to an archive when it ends (JEP 350) and takes them from there
when it starts. Java itself checks whether an archive fits its build, its class path and the jars on it, and does
without one that does not fit.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_BEING_WRITTEN_SECONDS = 600
_UNUSED_SECONDS = 30 * 24 * 3600
_LOWEST_PRIORITY = 19
WRITES_AN_ARCHIVE = "-XX:ArchiveClassesAtExit"
_CHOSEN_BY_THE_USER = ("-Xshare", "SharedArchiveFile", WRITES_AN_ARCHIVE)


def archive_option(folder: Path, spark_home: Path, java: str, options: str) -> str:
    """Java's option that uses the archive in `folder`, or has one written when Java ends.

    Empty where `options`, which Java is given as well, decide about archives; while another Java is to write one; and
    where the folder cannot be written, or is somebody else's, whose classes must not be run. An archive only saves
    seconds: nothing fails without it. Each folder of Spark has one of 200 MB; one that no start has used for a month is
    deleted when another is to be written. java: the banner of `java -version`.
    """
    if any(chosen in options for chosen in _CHOSEN_BY_THE_USER):
        return ""
    with suppress(OSError):
        jars_changed_ns = (spark_home / "jars").stat().st_mtime_ns
        build = [line for line in java.splitlines() if not line.startswith("Picked up ")]
        archive = folder / f"classes-{_short_digest(str(spark_home))}-{_short_digest(*build, str(jars_changed_ns))}.jsa"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            return ""
        _adopt_written(archive)
        if archive.exists():
            os.utime(archive)  # it is in use; Java does not look at its time
            return f'"-XX:SharedArchiveFile={archive}"'
        if not any(_unfinished_archives(archive)):
            _delete_unused(folder)
            part = archive.with_name(f"{archive.name}.{os.getpid()}")
            part.touch()  # so that no other Java does the same meanwhile; this one puts its file there when it ends
            return f'"{WRITES_AN_ARCHIVE}={part}"'
    return ""


def write_behind_others(java: int) -> None:
    """Lower the priority of a Java that is about to end: it writes for a quarter of a minute, and the next command may
    have begun. java: its process.
    """
    threads = Path(f"/proc/{java}/task")  # where there is none, a process has one priority for all
    for thread in [int(entry.name) for entry in threads.iterdir()] if threads.is_dir() else [java]:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, _LOWEST_PRIORITY)


def _adopt_written(archive: Path) -> None:
    """Give an archive that was written since then its name, and delete what it takes the place of: archives of another
    Java or other jars, and what a Java that was killed has left.
    """
    for part in sorted(_unfinished_archives(archive)):
        if _is_whole(part):
            part.replace(archive)
    for other in archive.parent.glob(f"{archive.name.rpartition('-')[0]}-*"):
        is_left = time.time() - other.stat().st_mtime > _BEING_WRITTEN_SECONDS
        if other != archive and (is_left or other.suffix == archive.suffix):
            other.unlink(missing_ok=True)


def _delete_unused(folder: Path) -> None:
    """Delete archives of any Spark that were neither used nor written for long. A Java that has one open keeps it."""
    for archive in folder.glob("classes-*.jsa*"):
        with suppress(FileNotFoundError):  # another start may do the same
            if time.time() - archive.stat().st_mtime > _UNUSED_SECONDS:
                archive.unlink()


def _is_whole(part: Path) -> bool:
    """Whether an archive was written to its end: Java writes the magic number last of all."""
    with part.open("rb") as content:
        return any(content.read(4))


def _unfinished_archives(archive: Path) -> Iterator[Path]:
    """The files that processes have written or are writing for this archive, each with its process's number in the
    name.
    """
    return archive.parent.glob(f"{archive.name}.*")


def _short_digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
