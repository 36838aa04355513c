"""When Java gets the option to use the archive of classes, and when the option to write one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs.session.class_archive import archive_option, write_behind_others

JAVA = 'openjdk version "17.0.15" 2025-04-15'
WRITTEN, BEGUN = b"\xf0\x0b\xaa\xb8 and so on", bytes(64)


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return tmp_path / "spark"


def told_to_write(option: str) -> Path:
    found = re.fullmatch(r'"-XX:ArchiveClassesAtExit=(.*)"', option)
    assert found, option
    return Path(found[1])


def told_to_use(option: str) -> Path:
    found = re.fullmatch(r'"-XX:SharedArchiveFile=(.*)"', option)
    assert found, option
    return Path(found[1])


def test_the_archive_that_the_first_start_writes_is_used_by_the_next_one(tmp_path: Path, spark_home: Path) -> None:
    cache = tmp_path / "a cache"
    told_to_write(archive_option(cache, spark_home, JAVA, "")).write_bytes(WRITTEN)
    assert told_to_use(archive_option(cache, spark_home, JAVA, "")).read_bytes() == WRITTEN
    assert told_to_use(archive_option(cache, spark_home, JAVA, "")).read_bytes() == WRITTEN


def test_an_archive_that_is_being_written_is_neither_used_nor_written_twice(tmp_path: Path, spark_home: Path) -> None:
    begun = told_to_write(archive_option(tmp_path, spark_home, JAVA, ""))
    begun.write_bytes(BEGUN)
    assert archive_option(tmp_path, spark_home, JAVA, "") == ""
    assert begun.exists()


def test_of_two_starts_at_the_same_time_only_one_writes(tmp_path: Path, spark_home: Path) -> None:
    told_to_write(archive_option(tmp_path, spark_home, JAVA, ""))
    assert archive_option(tmp_path, spark_home, JAVA, "") == ""


def test_what_a_killed_java_left_is_deleted(tmp_path: Path, spark_home: Path) -> None:
    of_this_process = told_to_write(archive_option(tmp_path, spark_home, JAVA, ""))
    left = of_this_process.rename(of_this_process.with_suffix(".1"))
    left.write_bytes(BEGUN)
    os.utime(left, (0, 0))
    told_to_write(archive_option(tmp_path, spark_home, JAVA, ""))
    assert not left.exists()


@pytest.mark.parametrize("changed", ["java", "jars"])
def test_another_java_or_other_jars_get_an_archive_that_replaces_the_old_one(
    tmp_path: Path, spark_home: Path, changed: str
) -> None:
    told_to_write(archive_option(tmp_path, spark_home, JAVA, "")).write_bytes(WRITTEN)
    old = told_to_use(archive_option(tmp_path, spark_home, JAVA, ""))
    if changed == "jars":
        os.utime(spark_home / "jars", (0, 0))
    told_to_write(archive_option(tmp_path, spark_home, JAVA.replace("17", "21") if changed == "java" else JAVA, ""))
    assert not old.exists()


def test_another_sparks_archive_is_left_alone(tmp_path: Path, spark_home: Path) -> None:
    told_to_write(archive_option(tmp_path, spark_home, JAVA, "")).write_bytes(WRITTEN)
    archive = told_to_use(archive_option(tmp_path, spark_home, JAVA, ""))
    (tmp_path / "another" / "jars").mkdir(parents=True)
    told_to_write(archive_option(tmp_path, tmp_path / "another", JAVA, ""))
    assert archive.exists()


def test_archives_that_no_start_has_used_for_a_month_are_deleted_when_another_is_written(
    tmp_path: Path, spark_home: Path
) -> None:
    """Such archives are of clones that are gone. If a clone is still there, its next start writes another one."""
    month_ago = time.time() - 31 * 24 * 3600
    used, unused = archive_of(tmp_path, tmp_path / "used"), archive_of(tmp_path, tmp_path / "unused")
    not_taken = unused.with_suffix(".jsa.17")
    not_taken.write_bytes(WRITTEN)
    for archive in (used, unused, not_taken):
        os.utime(archive, (month_ago, month_ago))
    told_to_use(archive_option(tmp_path, tmp_path / "used", JAVA, ""))
    assert unused.exists()
    told_to_write(archive_option(tmp_path, spark_home, JAVA, ""))
    assert (used.exists(), unused.exists(), not_taken.exists()) == (True, False, False)


def archive_of(cache: Path, home: Path) -> Path:
    """The archive for Spark in a folder."""
    (home / "jars").mkdir(parents=True)
    told_to_write(archive_option(cache, home, JAVA, "")).write_bytes(WRITTEN)
    return told_to_use(archive_option(cache, home, JAVA, ""))


@pytest.mark.parametrize("options", ["-Xshare:off", "-XX:SharedArchiveFile=mine.jsa"])
def test_no_option_is_added_if_given_options_of_java_name_an_archive(
    tmp_path: Path, spark_home: Path, options: str
) -> None:
    assert archive_option(tmp_path, spark_home, JAVA, f"-Xmx1g {options}") == ""


def test_without_a_writable_cache_there_is_no_archive(tmp_path: Path, spark_home: Path) -> None:
    (tmp_path / "file").write_text("")
    assert archive_option(tmp_path / "file" / "cache", spark_home, JAVA, "") == ""


def test_no_archive_is_used_from_another_users_folder(
    tmp_path: Path, spark_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_to_write(archive_option(tmp_path, spark_home, JAVA, "")).write_bytes(WRITTEN)
    mine = os.getuid()
    monkeypatch.setattr("os.getuid", lambda: mine + 1)
    assert archive_option(tmp_path, spark_home, JAVA, "") == ""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads have no priorities of their own here")
def test_all_threads_of_a_java_that_writes_an_archive_have_the_lowest_priority() -> None:
    code = "import threading, sys; threading.Thread(target=sys.stdin.read).start(); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        write_behind_others(process.pid)
        threads = [int(thread) for thread in os.listdir(f"/proc/{process.pid}/task")]
        priorities = [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads]
        process.communicate()
    assert priorities == [19, 19]
