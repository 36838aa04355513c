"""Kafka's own jars and classes: fetched once by Maven, or taken from the folder in REFETCH_ORACLE_JARS."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from udfs.kernels.one_at_a_time import one_at_a_time

KAFKA_NEWEST = "4.4.0"
# The last release that speaks the versions removed in 4.0 (KIP-896).
KAFKA_BEFORE_REMOVALS = "3.9.1"
SHORT_RUN = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Java's options for a program that runs for a few seconds. The second compiler and a garbage collector with many
threads do not pay in that time.
"""
SLF4J = "org.slf4j:slf4j-api:1.7.36"

Jars = Callable[..., list[Path]]
RunJava = Callable[..., str]


@pytest.fixture(scope="session")
def jars() -> Jars:
    """A function from Maven artifacts `group:name:version` to their files, in the same order."""
    return find_jars


def find_jars(*artifacts: str) -> list[Path]:
    """The files of Maven artifacts, in the same order. Fetches those that are missing.

    Only one process fetches at a time, because two would damage Maven's own repository. It fetches all of them at once,
    because Maven takes seconds to start.
    """
    given = os.environ.get("REFETCH_ORACLE_JARS")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "refetch" / "oracle-jars"
    folder = Path(given) if given else cache
    paths = {artifact: folder / "{1}-{2}.jar".format(*artifact.split(":")) for artifact in artifacts}
    if missing := _not_there(paths):
        maven = shutil.which("mvn")
        if maven is None:
            pytest.skip(f"no mvn to fetch {', '.join(missing)}, and REFETCH_ORACLE_JARS does not have them")
        with one_at_a_time(folder / ".lock"):
            if still_missing := _not_there(paths):
                _fetch(maven, still_missing, folder)
    return list(paths.values())


def _not_there(paths: Mapping[str, Path]) -> list[str]:
    return [artifact for artifact, path in paths.items() if not path.exists()]


def _fetch(maven: str, artifacts: Sequence[str], folder: Path) -> None:
    with TemporaryDirectory(dir=folder) as work:
        Path(work, "pom.xml").write_text(_project(artifacts))
        command = [maven, "-q", "dependency:copy", "-DoutputDirectory=jars"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.fail(f"mvn could not fetch {', '.join(artifacts)}: {done.stdout[-500:]}")
        for fetched in Path(work, "jars").glob("*.jar"):
            # An atomic move, so that no process finds a part of the file.
            fetched.replace(folder / fetched.name)


def _project(artifacts: Sequence[str]) -> str:
    """The pom.xml of a project without code that copies these artifacts."""
    items = "".join(
        "<artifactItem><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></artifactItem>".format(
            *artifact.split(":")
        )
        for artifact in artifacts
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>jars</groupId><artifactId>jars</artifactId>"
        "<version>1</version><packaging>pom</packaging><build><plugins><plugin>"
        "<artifactId>maven-dependency-plugin</artifactId>"
        f"<configuration><artifactItems>{items}</artifactItems></configuration></plugin></plugins></build></project>"
    )


@pytest.fixture(scope="session", params=[KAFKA_NEWEST, KAFKA_BEFORE_REMOVALS])
def kafka_clients(request: pytest.FixtureRequest, jars: Jars) -> Path:
    """kafka-clients.jar of the newest release, and of the last release that has the versions removed in 4.0."""
    [found] = jars(f"org.apache.kafka:kafka-clients:{request.param}")
    return found


@pytest.fixture(scope="session")
def run_java(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> RunJava:
    """Run a Java source file of this folder: run_java("Source.java", *jars, stdin=..., arguments=...) -> its output."""
    if shutil.which("javac") is None or shutil.which("java") is None:
        pytest.skip("no JDK: java and javac are needed to run Kafka's own classes")

    @cache
    def compiled(source: str, *of_kafka: Path) -> list[str]:
        """The command that runs a source file. It is compiled once for all tests with the same source and jars."""
        classes = tmp_path_factory.mktemp("classes")
        java, *rest = java_command(Path(__file__).parent / source, (*of_kafka, *jars(SLF4J)), classes)
        return [java, *SHORT_RUN, *rest]

    def run(source: str, *of_kafka: Path, stdin: str = "", arguments: Sequence[str] = ()) -> str:
        command = [*compiled(source, *of_kafka), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return run


def java_command(source: Path, jars: Sequence[Path], classes: Path) -> list[str]:
    """The command that runs a source file's main. Compiles the file, and those that it uses, into `classes`."""
    classpath, folders = (os.pathsep.join(map(str, of)) for of in (jars, {source.parent, Path(__file__).parent}))
    compiler = [
        "javac",
        *(f"-J{option}" for option in SHORT_RUN),
        "-nowarn",
        "-d",
        str(classes),
        "-sourcepath",
        folders,
        "-cp",
        classpath,
        str(source),
    ]
    done = subprocess.run(compiler, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return ["java", "-cp", os.pathsep.join((str(classes), classpath)), source.stem]
