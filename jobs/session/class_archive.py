"""An archive of the Java classes that an earlier Spark has loaded: Java maps it into memory instead of loading and
verifying the classes again.

A Spark job loads some 20,000 classes. Java writes them to an archive when it ends (JEP 350) and reads the archive when
it starts. Java itself checks whether an archive fits its build, its class path and the jars on it, and ignores one that
does not.
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
    """Java's option to use the archive in `folder`, or to write one when Java ends.

    Empty if `options`, Java's other options, already say something about archives; while another Java is going to write
    one; and if the folder cannot be written, or belongs to somebody else, whose classes must not run here. An archive
    only saves seconds: nothing fails without it. There is one of 200 MB for each folder of Spark. An archive that no
    start has used for a month is deleted before another one is written. java: the banner of `java -version`.
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
            os.utime(archive)  # marks it as used; Java ignores its time
            return f'"-XX:SharedArchiveFile={archive}"'
        if not any(_unfinished_archives(archive)):
            _delete_unused(folder)
            part = archive.with_name(f"{archive.name}.{os.getpid()}")
            part.touch()  # so that no other Java does the same meanwhile; this one puts its file there when it ends
            return f'"{WRITES_AN_ARCHIVE}={part}"'
    return ""


def write_behind_others(java: int) -> None:
    """Lower the priority of a Java that is about to end: it writes the archive for a quarter of a minute, and the next
    command may already run. java: its process id.
    """
    threads = Path(f"/proc/{java}/task")  # without this folder, all threads of a process have one priority
    for thread in [int(entry.name) for entry in threads.iterdir()] if threads.is_dir() else [java]:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, _LOWEST_PRIORITY)


def _adopt_written(archive: Path) -> None:
    """Give an archive that has been written meanwhile its final name, and delete what it replaces: archives of another
    Java or of other jars, and parts that a killed Java has left.
    """
    for part in sorted(_unfinished_archives(archive)):
        if _is_whole(part):
            part.replace(archive)
    for other in archive.parent.glob(f"{archive.name.rpartition('-')[0]}-*"):
        is_left = time.time() - other.stat().st_mtime > _BEING_WRITTEN_SECONDS
        if other != archive and (is_left or other.suffix == archive.suffix):
            other.unlink(missing_ok=True)


def _delete_unused(folder: Path) -> None:
    """Delete archives of any Spark that were neither used nor written for a month. A Java may keep an open one."""
    for archive in folder.glob("classes-*.jsa*"):
        with suppress(FileNotFoundError):  # another start may have deleted it
            if time.time() - archive.stat().st_mtime > _UNUSED_SECONDS:
                archive.unlink()


def _is_whole(part: Path) -> bool:
    """Whether an archive is complete: Java writes the magic number last."""
    with part.open("rb") as content:
        return any(content.read(4))


def _unfinished_archives(archive: Path) -> Iterator[Path]:
    """The files that processes have written or are writing for this archive. Each has its process id in its name."""
    return archive.parent.glob(f"{archive.name}.*")


def _short_digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
