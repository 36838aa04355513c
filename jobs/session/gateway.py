"""Starts a Java process for Spark that ends when this process ends, and connects to it.

pyspark's own `launch_gateway` is not used: its Java survives if this process ends before Java is ready, and it waits
for ever if Java ends by itself with exit code 0.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socketserver import BaseServer
from typing import Any

from py4j.java_gateway import JVMView
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from jobs.session.child_process import bound_command, end_at_exit
from jobs.session.java import utf8_locale

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_LOOK_EVERY_S = 0.02
_NAMED_OFTEN = (
    "functions", "org", "PythonSQLUtils", "PythonUtils",
    "org.apache.spark.sql.classic.SparkSession", "org.apache.spark.sql.functions",
)  # fmt: skip
"""Names of Java's classes and packages that pyspark and refetch use for every expression of a query."""


def start_gateway(conf: SparkConf, home: Path, log: Path) -> Any:
    """Py4J's gateway to a Java process that is started here; the attribute `proc` is the process.

    home: Spark's folder. log: the file for Java's own output. Next to it, for a moment, is a file in which Java says
    where its gateway is. Raises PySparkRuntimeError if Java ends instead of starting a gateway.
    """
    options = [part for key, value in conf.getAll() for part in ("--conf", f"{key}={value}")]
    rest = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    command = [str(home / "bin" / "spark-submit"), *options, *rest]
    address_file = log.with_suffix(".gateway")
    address_file.unlink(missing_ok=True)
    environment = (
        os.environ | utf8_locale() | {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address_file)}
    )
    with log.open("ab") as output:
        # Where Linux does not end Java with its parent, Java ends when its standard input is closed.
        java = subprocess.Popen(
            bound_command(command), stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment
        )
    end_at_exit(java)
    with ExitStack() as if_start_fails:
        if_start_fails.callback(java.kill)  # no failure of the start, nor an interrupt, may leave Java running
        try:
            with _use_gateway(*_wait_for_address(java, address_file)):
                gateway: Any = launch_gateway(conf)  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
        finally:
            address_file.unlink(missing_ok=True)
        if_start_fails.pop_all()
    gateway.proc = java
    remember_classes(gateway.jvm)
    return gateway


def remember_classes(java: JVMView) -> None:
    """Store the classes and packages that queries name often. Py4J would search all jars for them at each use."""
    for name in _NAMED_OFTEN:
        setattr(java, name, getattr(java, name))


def keep_quiet_at_its_end(updates: BaseServer) -> None:
    """Make pyspark's accumulator server print nothing if Java ends during a connection, because the job itself reports
    that. The server prints other failures as before.
    """
    printed = updates.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            printed(request, client_address)

    updates.handle_error = handle_error  # type: ignore[method-assign]


def _wait_for_address(java: subprocess.Popen[bytes], address_file: Path) -> tuple[int, str]:
    """The port and the secret of Java's gateway, once Java has written them."""
    while not address_file.is_file():
        if java.poll() is not None:
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        time.sleep(_LOOK_EVERY_S)
    with address_file.open("rb") as content:
        port: int = read_int(content)  # type: ignore[no-untyped-call]  # pyspark leaves both untyped
        secret: str = UTF8Deserializer().loads(content)  # type: ignore[no-untyped-call]
    return port, secret


@contextmanager
def _use_gateway(port: int, secret: str) -> Iterator[None]:
    """While the block runs, pyspark connects to this gateway. Afterwards the environment no longer names it, so nobody
    takes it for a gateway that was there before.
    """
    os.environ |= {_PORT: str(port), _SECRET: secret}
    try:
        yield
    finally:
        del os.environ[_PORT], os.environ[_SECRET]
