"""A command in unusual surroundings: a pipe that nobody reads, a closed stdout, a locale without UTF-8, and another
temporary folder for Java."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from deltalake import DeltaTable

ENDS_WITHIN_S = 240


def command(
    repository: Path, folder: Path, arguments: str, redirected: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command on `folder`/lake, by a shell that redirects output."""
    line = f'"$0" {arguments} --lake="{folder}/lake" {redirected}'
    environment = {
        **os.environ,
        "REFETCH_PYTHON": sys.executable,
        **variables,
    }
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line, str(repository / "spark-submit.sh")],
        env=environment, capture_output=True, text=True, timeout=ENDS_WITHIN_S, check=False,
    )  # fmt: skip


def test_a_run_finds_its_files_needs_no_reader_and_leaves_no_files_of_java(repository: Path, tmp_path: Path) -> None:
    """No locale can encode the folder's name, stdout is closed or nobody reads it, and Java has its own temporary
    folder.
    """
    folder = tmp_path / "größe 大"
    folder.mkdir()
    ingest = f'ingest --captures="{repository}/tests/captures/mixed.pcap.zst"'
    with TemporaryDirectory() as java:  # a short path, since the name of a socket has at most 107 bytes
        for arguments, locale, redirected in (
            (ingest, "C", ">&-"),
            ("compact", "xx_YY.UTF-8", "2>&1 | head -n 1"),  # which says more on stderr, after its first line
        ):
            variables = {"LC_ALL": locale, "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={java}"}
            answer = command(repository, folder, arguments, redirected, **variables)
            assert (answer.returncode, "Traceback" in answer.stderr, "fail" in answer.stderr) == (0, False, False)
            until = time.monotonic() + 30  # Java ends after the command
            while (left := list(Path(java).iterdir())) and time.monotonic() < until:
                time.sleep(0.1)
            assert left == []
    exchanges = folder / "lake/silver/exchanges"
    assert (exchanges / "_delta_log").is_dir()
    assert DeltaTable(exchanges).history(1)[0]["operation"] == "OPTIMIZE"
