"""A Spark Connect server: how it is reached, and whether it has Delta."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlsplit

from pyspark.errors import PySparkException, PySparkImportError
from pyspark.sql import SparkSession

from jobs.paths import SHOWN_CONF
from udfs.errors import SetupError, SparkError

_REMOTE = "SPARK_REMOTE"
_PORT = 15002
_ANSWERS_WITHIN_S = 10
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_NO_DELTA = "DATA_SOURCE_NOT_FOUND"


def is_asked_for() -> bool:
    """Whether the environment names a server to work on."""
    return bool(os.environ.get(_REMOTE))


def connected_session(master: str | None) -> SparkSession:
    """A session of the server that the environment names. Raises SetupError where this Python has no client of Spark
    Connect, or another master is named as well, and SparkError where nobody answers.
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
    """Raises SparkError where nobody listens, which the client would find out for ten minutes."""
    parts = urlsplit(server)
    if not parts.hostname or any(name in os.environ for name in _PROXIES):
        return
    try:
        socket.create_connection((parts.hostname, parts.port or _PORT), _ANSWERS_WITHIN_S).close()
    except OSError as fault:
        raise SparkError(f"No Spark Connect server answers at {_REMOTE}={server}: {fault.strerror or fault}") from fault


def check_delta(spark: SparkSession) -> None:
    """Raises SetupError where the server cannot read Delta tables."""
    try:
        spark.read.format("delta").load("/").schema  # noqa: B018  # of which nothing but that it is asked for matters
    except PySparkException as fault:
        if _NO_DELTA in str(fault):
            raise SetupError(
                "The Spark Connect server has no Delta. Start it with "
                f"--properties-file {SHOWN_CONF}/spark-defaults.conf"
            ) from fault
