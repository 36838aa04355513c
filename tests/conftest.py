"""Fixtures for every lane."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parent.parent

# The same examples on every machine and in every run. There is no deadline, because a first call compiles kernels.
settings.register_profile(
    "refetch", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("refetch")


# pyspark treats a main module without a file as its own doctests and ends the process; a worker of xdist has no file.
if not hasattr(sys.modules["__main__"], "__file__"):
    sys.modules["__main__"].__file__ = __file__


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernels before workers start, since each of them would compile the same, and write the archive of
    Java's classes.
    """
    if session.config.getoption("numprocesses", default=None):
        from jobs.ready_session import compile_meanwhile
        from jobs.replays.algorithms import ALGORITHMS

        with compile_meanwhile(tuple(ALGORITHMS)):
            # Nothing fails without the archive, for example if there is no Java.
            subprocess.run([sys.executable, "-m", "tests.class_archive"], cwd=REPOSITORY, check=False)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The clone."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_captures() -> Path:
    """The folder of the large captures beside the clone. A test that needs them is skipped if it is missing."""
    folder = REPOSITORY.parent / "shared" / "captures"
    if not folder.is_dir():
        pytest.skip("no ../shared/captures beside the clone")
    return folder


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores for all lanes, with the product's own properties, but fewer and smaller tasks."""
    # Imported here because the unit lane does not need Spark.
    from jobs.paths import CONF
    from jobs.session.spark import spark_session
    from jobs.session.spark_properties import QUICK_JAVA, SMALL, read_properties

    warehouse: Path = tmp_path_factory.mktemp("warehouse")
    small = {
        **read_properties(CONF / QUICK_JAVA),
        **read_properties(CONF / SMALL),
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.warehouse.dir": warehouse.as_uri(),
        # With this, a worker that hangs fails its test instead of the whole lane. The time allows for kernels that are
        # not cached and have to be compiled.
        "spark.sql.execution.pyspark.udf.idleTimeoutSeconds": "600",
        "spark.sql.execution.pyspark.udf.killOnIdleTimeout": "true",
    }
    session = spark_session("local[2]", "refetch tests", small)
    yield session
    session.stop()
