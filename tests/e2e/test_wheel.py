"""refetch as pip installs it: one name among the packages, and a command that needs no clone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import NamedTuple

import pytest

from jobs.paths import CONF
from jobs.session.spark_properties import JAVA_OPTIONS, QUICK_JAVA, read_properties
from tests.class_archive import option_to_read

ENDS_WITHIN_S = 240
QUICKSTART = """
import json
from refetch import open_lake  # which puts the packages on the path
from jobs.cli import parse_arguments
from jobs.quickstart import quickstart_arguments
from jobs.resolve import resolve_run
run = resolve_run(parse_arguments(quickstart_arguments()))
print(json.dumps([run.job, [path.name for path in run.captures], run.lake, str(run.output.page)]))
"""
IN_A_SESSION_OF_SOMEBODY_ELSE = """
import os, sys
from pyspark.sql import SparkSession
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(*sys.argv[1:]).getOrCreate()
from refetch import register_frame_functions
register_frame_functions(spark)
print(*spark.sparkContext.range(1).map(lambda _: __import__("udfs").__file__).collect())
"""


class Installed(NamedTuple):
    """An environment with refetch's wheel, and with the packages of the environment that runs the tests."""

    packages: Path
    programs: Path

    def run(self, cwd: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "REFETCH_P"))}
        return subprocess.run(
            [str(self.programs / program), *arguments],
            cwd=cwd, env=environment, capture_output=True, text=True, timeout=ENDS_WITHIN_S, check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def installed(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=repository, check=True, capture_output=True)
    (wheel,) = folder.glob("refetch-*.whl")
    venv.create(folder / "env", with_pip=True)
    pip = [str(folder / "env/bin/python"), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder / "env")}))
    others = [entry for entry in sys.path if entry.endswith("-packages")]
    (packages / "others.pth").write_text("\n".join(others))
    return Installed(packages, folder / "env" / "bin")


def test_the_wheel_adds_one_name_to_the_packages(installed: Installed) -> None:
    (record,) = installed.packages.glob("refetch-*.dist-info/RECORD")
    names = {line.split("/")[0] for line in record.read_text().splitlines()}
    assert names == {"refetch", record.parent.name, ".."}
    assert not (installed.packages / "refetch/_repository/tests/captures/scrub.py").exists()


def test_a_capture_becomes_a_report_outside_of_a_clone(installed: Installed, tmp_path: Path) -> None:
    capture = installed.packages / "refetch/_repository/tests/captures/starve.pcap.zst"
    arguments = (f"--captures={capture}", "--set=consumer.fetch.max.bytes=1MiB", "--run-at=2026-01-31T12:00:00Z")
    answer = installed.run(tmp_path, "refetch", "pipeline", *arguments)
    assert answer.returncode == 0, answer.stderr
    assert "Report    lake/report.html" in answer.stdout
    assert (tmp_path / "lake/report.html").is_file()
    assert "spark-submit.sh" not in answer.stdout + answer.stderr


def test_without_arguments_the_samples_in_the_wheel_are_replayed_into_this_folder(
    installed: Installed, tmp_path: Path
) -> None:
    answer = installed.run(tmp_path, "python", "-c", QUICKSTART)
    assert answer.returncode == 0, answer.stderr
    names = [f"{name}.pcap.zst" for name in ("crowded", "mixed", "split", "starve")]
    assert json.loads(answer.stdout) == ["pipeline", names, f"{tmp_path}/lake", f"{tmp_path}/lake/report.html"]


def test_help_names_the_installed_command(installed: Installed, tmp_path: Path) -> None:
    answers = [installed.run(tmp_path, "refetch", *arguments) for arguments in (["--help"], ["replay", "--help"])]
    text = "".join(answer.stdout for answer in answers)
    assert "usage: refetch replay" in text
    assert "refetch alone runs" in text
    assert "spark-submit.sh" not in text


def test_pages_that_messages_point_to_are_installed(installed: Installed, tmp_path: Path) -> None:
    answer = installed.run(tmp_path, "refetch", "replay", "--set=zzz=1MiB")
    page = re.search(r"[^ (]*/docs/settings\.md", answer.stderr)
    assert page, answer.stderr
    assert "fetch.max.bytes" in Path(page[0]).read_text()


def test_workers_of_an_existing_session_have_the_packages(installed: Installed, tmp_path: Path) -> None:
    java = f"{option_to_read()} {read_properties(CONF / QUICK_JAVA)[JAVA_OPTIONS]}"
    answer = installed.run(tmp_path, "python", "-c", IN_A_SESSION_OF_SOMEBODY_ELSE, JAVA_OPTIONS, java)
    assert re.search(r"/refetch-\w+\.zip/udfs/__init__\.py$", answer.stdout.strip()), answer.stderr[-3000:]
