"""A Spark Connect server: how it is reached, and what a job needs there."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from pyspark.errors import PySparkException, PySparkImportError
from pyspark.sql import SparkSession

from jobs.paths import ROOT, SHOWN_CONF
from udfs import CODE
from udfs.errors import SetupError, SparkError

_REMOTE = "SPARK_REMOTE"
_PORT = 15002
_ANSWERS_WITHIN_S = 10
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_NO_DELTA = "DATA_SOURCE_NOT_FOUND"
_NEEDED = ("llvmlite", "numba", "numpy", "pyarrow", "zstandard")
"""What ingest and replay import in workers."""


def is_server_named() -> bool:
    """Whether the environment names a server."""
    return bool(os.environ.get(_REMOTE))


def connected_session(master: str | None) -> SparkSession:
    """A session of the server that the environment names. Raises SetupError if this Python has no client of Spark
    Connect, or if a master is named, too, and SparkError if nobody answers.
    """
    server = os.environ[_REMOTE]
    if master is not None:
        raise SetupError(f"--master={master} and {_REMOTE}={server} name two Sparks: leave one out")
    _check_answers(server)
    try:
        return SparkSession.builder.remote(server).getOrCreate()
    except PySparkImportError as fault:
        raise SetupError(
            f"{_REMOTE} is {server}, and this Python lacks the client of Spark Connect: install refetch[connect], or "
            f"grpcio and grpcio-status ({fault})"
        ) from fault


def _check_answers(server: str) -> None:
    """Raises SparkError if nobody listens at the server's address. The client itself would try for ten minutes."""
    parts = urlsplit(server)
    if not parts.hostname or any(name in os.environ for name in _PROXIES):
        return
    try:
        socket.create_connection((parts.hostname, parts.port or _PORT), _ANSWERS_WITHIN_S).close()
    except OSError as fault:
        raise SparkError(f"No Spark Connect server answers at {_REMOTE}={server}: {fault.strerror or fault}") from fault


def check_delta(spark: SparkSession) -> None:
    """Raises SetupError if the server cannot read Delta tables."""
    try:
        spark.read.format("delta").load("/").schema  # noqa: B018  # only the request matters, not its answer
    except PySparkException as fault:
        if _NO_DELTA in str(fault):
            raise SetupError(
                "The Spark Connect server has no Delta. Start it with "
                f"--properties-file {SHOWN_CONF}/spark-defaults.conf"
            ) from fault


def code_of_workers(spark: SparkSession) -> str | None:
    """The version of refetch's packages that the workers import; None if they have none.

    Raises SetupError if the workers lack packages that refetch needs, or have another version of refetch than this
    process: they would use their own version instead of the one that is shipped to them.
    """
    needed = _NEEDED

    def look(batches: Iterable[Any]) -> Iterator[Any]:
        # Workers may not have this module, so the whole function is sent, with its imports inside it.
        from importlib.util import find_spec

        import pyarrow as pa

        for _ in batches:
            missing = [name for name in needed if find_spec(name) is None]
            code = None
            if not missing and find_spec("udfs") is not None:
                import udfs

                code = udfs.CODE
            yield pa.RecordBatch.from_arrays(
                [pa.array([missing], pa.list_(pa.string())), pa.array([code], pa.string())], ["missing", "code"]
            )

    missing, code = spark.range(1).repartition(1).mapInArrow(look, "missing array<string>, code string").collect()[0]
    if missing:
        raise SetupError(
            f"The Python workers of the Spark Connect server lack {', '.join(missing)}. Install requirements.txt in "
            "the server's Python (PYSPARK_PYTHON where it is started); reading a lake needs none of it"
        )
    if code not in (None, CODE):
        raise SetupError(
            f"The Python workers of the Spark Connect server import refetch {code}, and this is {CODE}. Start the "
            f"server with PYTHONPATH={ROOT} of the same version, or without any, so that it is sent to them"
        )
    return None if code is None else str(code)


def check_rows_are_kept(spark: SparkSession) -> None:
    """Raises SetupError if Spark refuses to keep rows that are read several times, as serverless compute does:
    captures would be decoded once for every table.
    """
    try:
        spark.range(1).persist().unpersist()
    except PySparkException as fault:
        reason = (str(fault).splitlines() or ["no reason given"])[0]
        raise SetupError(
            "This Spark keeps no rows between two queries, as serverless compute does not, and ingest and replay read "
            f"what they decode several times: run them on a cluster. `gate`, `report` and open_lake work here "
            f"({reason})"
        ) from fault
