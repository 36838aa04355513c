"""Which Java Spark would start, and whether Spark runs on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.session.java import check_java, java_command, major_version
from udfs.errors import SetupError


def fake_java(folder: Path, banner: str, code: int = 0) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{banner}' >&2\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("banner", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19', 21),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_the_version_is_read_from_what_java_prints(banner: str, major: int | None) -> None:
    assert major_version(banner) == major


def test_java_home_overrides_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "path", "")
    at_home = fake_java(tmp_path / "home", "")
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java_command() == str(at_home)


def test_a_java_home_without_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        SetupError, match=r"JAVA_HOME is .*, and there is no bin/java in it\. refetch needs Java 17 to 25"
    ):
        check_java()


@pytest.mark.parametrize(("version", "told"), [("11.0.2", "is Java 11"), ("26", "is Java 26")])
def test_a_java_on_which_spark_does_not_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, told: str
) -> None:
    fake_java(tmp_path, f'openjdk version "{version}" 2019-01-15')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=f"Wrong Java: .* {told}. refetch needs Java 17 to 25"):
        check_java()


def test_a_program_that_is_no_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "Unable to locate a Java Runtime", code=1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"does not say which Java it is \(exit 1\)"):
        check_java()


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.1"])
def test_a_java_on_which_spark_runs_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    fake_java(tmp_path, f'openjdk version "{version}"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()
