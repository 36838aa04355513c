"""Failures of Spark are shown in one line."""

from __future__ import annotations

import pytest
from py4j.java_gateway import GatewayClient
from py4j.protocol import ERROR_ON_RECEIVE, Py4JNetworkError

from jobs.session.spark import why_not_started
from jobs.terminal.failures import ReadableSparkFailures, root_cause
from udfs.errors import SparkError

PYTHON_WORKER = """\
An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/worker.py", line 7, in read
    raise ValueError("inner")
ValueError: inner

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/x/worker.py", line 9, in read
    raise CaptureError("mixed.pcap: cut at byte 7") from fault
udfs.errors.CaptureError: mixed.pcap: cut at byte 7
"""

OTHER_NAME = """\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/x/worker.py", line 9, in read
    table.cast(schema)
    ^^^^^^^^^^^^^^^^^^
  File "pyarrow/error.pxi", line 92, in pyarrow.lib.check_status
pyarrow.lib.ArrowInvalid: cannot cast
 SQLSTATE: 38000
\tat org.apache.spark.X.y(X.scala:1)
"""

JAVA = """\
An error occurred while calling o136.save.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.X.y(X.scala:1)
Caused by: java.io.IOException: Mkdirs failed to create file:/lake
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (PYTHON_WORKER, "CaptureError: mixed.pcap: cut at byte 7"),
        (OTHER_NAME, "ArrowInvalid: cannot cast"),
        (JAVA, "IOException: Mkdirs failed to create file:/lake"),
        (
            "[PATH_NOT_FOUND] Path does not exist: /x. SQLSTATE: 42K03",
            "[PATH_NOT_FOUND] Path does not exist: /x. SQLSTATE: 42K03",
        ),
        ("An error occurred while calling o1.x.\n: java.lang.OutOfMemoryError\n\tat y", "OutOfMemoryError"),
        ("", "no reason given"),
    ],
)
def test_the_cause_is_the_innermost_line_that_names_one(text: str, cause: str) -> None:
    assert root_cause(text) == cause


def test_a_cause_is_short() -> None:
    assert len(root_cause("x" * 10_000)) < 510


@pytest.mark.parametrize("fault", [ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("no answer")])
def test_the_message_says_that_java_has_ended(fault: Exception) -> None:
    told = r"Spark failed: its Java process has ended: .* Try the same command again"
    with pytest.raises(SparkError, match=told), ReadableSparkFailures():
        raise fault


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (
            "WARN Utils: a name\n2026-01-31T12:00:00Z ERROR SparkContext: Error initializing SparkContext.\n"
            "org.apache.spark.SparkIllegalArgumentException: [INVALID_DRIVER_MEMORY] System memory 1 is below 2\n"
            "\tat org.apache.spark.X.y(X.scala:1)\n",
            "SparkIllegalArgumentException: [INVALID_DRIVER_MEMORY] System memory 1 is below 2",
        ),
        (
            'Exception in thread "main" org.apache.spark.SparkException: Master must be local\n',
            "SparkException: Master must be local",
        ),
        (
            "Invalid maximum heap size: -Xmxlots\nError: Could not create the Java Virtual Machine.\n",
            "Invalid maximum heap size: -Xmxlots",
        ),
        ("Error: no such class\n", "Error: no such class"),
        ("", "it gave no reason"),
    ],
)
def test_a_spark_that_does_not_start_says_why(output: str, why: str) -> None:
    assert why_not_started(output) == why


class BrokenConnection:
    """A connection that breaks because Java ends while an answer is awaited."""

    def send_command(self, command: str) -> str:
        raise Py4JNetworkError("Error while sending or receiving", ConnectionResetError(), ERROR_ON_RECEIVE)

    def close(self, reset: bool) -> None:
        """Do nothing."""


def test_a_connection_that_breaks_with_java_gives_one_message_without_a_stack_trace(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = GatewayClient()
    monkeypatch.setattr(client, "_get_connection", BrokenConnection)
    with ReadableSparkFailures():
        client.send_command("a command")
    assert caplog.records == []
    client.send_command("another")
    assert len(caplog.records) == 1, "outside of a job Py4J's log stays as it is"
