"""Kafka's own jars and classes: fetched once by Maven, or taken from the folder in REFETCH_ORACLE_JARS."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from udfs.one_at_a_time import one_at_a_time

KAFKA_NEWEST = "4.4.0"
# The last release that speaks the versions removed in 4.0 (KIP-896).
KAFKA_BEFORE_REMOVALS = "3.9.1"
SLF4J = "org.slf4j:slf4j-api:1.7.36"

Jar = Callable[[str], Path]
RunJava = Callable[..., str]


@pytest.fixture(scope="session")
def jar() -> Jar:
    """The file of a Maven artifact `group:name:version`."""
    return find_jar


def find_jar(artifact: str) -> Path:
    """The file of a Maven artifact, fetched where it is not there yet: by one process at a time, as Maven's own
    repository stands no two that fill it.
    """
    given = os.environ.get("REFETCH_ORACLE_JARS")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "refetch" / "oracle-jars"
    folder = Path(given) if given else cache
    _, name, version = artifact.split(":")
    path = folder / f"{name}-{version}.jar"
    if not path.exists():
        maven = shutil.which("mvn")
        if maven is None:
            pytest.skip(f"no mvn to fetch {artifact}, and REFETCH_ORACLE_JARS does not have it")
        with one_at_a_time(folder / ".lock"):
            if not path.exists():
                _fetch(maven, artifact, path)
    return path


def _fetch(maven: str, artifact: str, path: Path) -> None:
    with TemporaryDirectory(dir=path.parent) as folder:
        command = [maven, "-q", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
        # Away from any pom.xml, which would decide about plugins and repositories.
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.fail(f"mvn could not fetch {artifact}: {done.stdout[-500:]}")
        # At once, so that nobody finds a part of it.
        Path(folder, path.name).replace(path)


@pytest.fixture(scope="session", params=[KAFKA_NEWEST, KAFKA_BEFORE_REMOVALS])
def kafka_clients(request: pytest.FixtureRequest, jar: Jar) -> Path:
    """kafka-clients.jar of the newest release and of the last one with the removed versions."""
    return jar(f"org.apache.kafka:kafka-clients:{request.param}")


@pytest.fixture(scope="session")
def run_java(jar: Jar, tmp_path_factory: pytest.TempPathFactory) -> RunJava:
    """Run a Java source file of this folder: run_java("Source.java", *jars, stdin=..., arguments=...) -> its output."""
    if shutil.which("javac") is None or shutil.which("java") is None:
        pytest.skip("no JDK: java and javac are needed to run Kafka's own classes")

    def run(source: str, *jars: Path, stdin: str = "", arguments: Sequence[str] = ()) -> str:
        classes = tmp_path_factory.mktemp("classes")
        command = java_command(Path(__file__).parent / source, (*jars, jar(SLF4J)), classes)
        done = subprocess.run([*command, *arguments], input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return run


def java_command(source: Path, jars: Sequence[Path], classes: Path) -> list[str]:
    """The command that runs a source file's main; the file and those that it uses are compiled into `classes`."""
    classpath, folders = (os.pathsep.join(map(str, of)) for of in (jars, {source.parent, Path(__file__).parent}))
    compiler = [
        "javac",
        "-J-XX:TieredStopAtLevel=1",
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
