"""The functions that decode columns of Kafka frames, registered by name for SQL."""

from __future__ import annotations

from pyspark.sql import SparkSession

from jobs.ready_session import compile_meanwhile_for
from jobs.session.driver import driver_of
from jobs.session.spark import set_sql_properties
from udfs.frames.spark_functions import NAMES, frame_function


def register_frame_functions(spark: SparkSession) -> tuple[str, ...]:
    """Register `request_header(frame)`, `fetch_request(version, frame)` and the others in this session's SQL.

    Sets the SQL properties that results depend on. Without them, Arrow UDFs of Spark 4.2.0 can crash on Delta and
    Parquet tables (SPARK-58241). Returns the names. Raises SetupError if the kernels cannot be compiled.
    """
    set_sql_properties(spark)
    driver_of(spark).ship()
    with compile_meanwhile_for(spark, ()):
        for name in NAMES:
            spark.udf.register(name, frame_function(name))
    return NAMES
