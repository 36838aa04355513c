"""A command in unusual surroundings: a pipe that nobody reads, a closed stdout, a locale without UTF-8, and another
temporary folder for Java."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ENDS_WITHIN_S = 240


def ingest(repository: Path, folder: Path, redirected: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Ingest a sample into `folder`/lake, by a shell that redirects output."""
    folder.mkdir(exist_ok=True)
    capture = repository / "tests" / "captures" / "mixed.pcap.zst"
    command = f'"$0" ingest --captures="{capture}" --lake="{folder}/lake" {redirected}'
    environment = {
        **os.environ,
        "REFETCH_PYTHON": sys.executable,
        **variables,
    }
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command, str(repository / "spark-submit.sh")],
        env=environment, capture_output=True, text=True, timeout=ENDS_WITHIN_S, check=False,
    )  # fmt: skip


def check_is_written(answer: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert (answer.returncode, "Traceback" in answer.stderr, "fail" in answer.stderr) == (0, False, False)
    assert (folder / "lake" / "silver" / "exchanges" / "_delta_log").is_dir()


@pytest.mark.parametrize(("locale", "redirected"), [("C", ">&-"), ("xx_YY.UTF-8", "2>&1 | head -n 1")])
def test_a_run_finds_its_files_needs_no_reader_and_leaves_no_files_of_java(
    repository: Path, tmp_path: Path, locale: str, redirected: str
) -> None:
    """The locale cannot encode the folder's name, stdout is closed or nobody reads it, and Java has its own temporary
    folder.
    """
    folder = tmp_path / "größe 大"
    with TemporaryDirectory() as java:  # a short path, since the name of a socket has at most 107 bytes
        variables = {"LC_ALL": locale, "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={java}"}
        check_is_written(ingest(repository, folder, redirected, **variables), folder)
        until = time.monotonic() + 30  # Java ends after the command
        while (left := list(Path(java).iterdir())) and time.monotonic() < until:
            time.sleep(0.1)
    assert left == []
