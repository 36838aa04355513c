"""One Spark session for the whole lane, with the product's own properties and fewer, smaller tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.spark import spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores."""
    warehouse: Path = tmp_path_factory.mktemp("warehouse")
    small = {
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.warehouse.dir": warehouse.as_uri(),
        # Queries of a test are over before Java's second compiler would pay.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # A worker that hangs fails its test instead of the whole lane.
        "spark.sql.execution.pyspark.udf.idleTimeoutSeconds": "120",
        "spark.sql.execution.pyspark.udf.killOnIdleTimeout": "true",
    }
    session = spark_session("local[2]", "refetch tests", small)
    yield session
    session.stop()
