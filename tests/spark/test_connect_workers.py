"""What a server's Python workers are asked before captures are decoded there. Workers of any Spark can answer."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from jobs.session import connect_server
from udfs import CODE
from udfs.errors import SetupError


def test_workers_tell_which_version_they_import(spark: SparkSession) -> None:
    assert connect_server.code_of_workers(spark) == CODE


def test_workers_of_another_version_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect_server, "CODE", "0123456789abcdef")
    with pytest.raises(SetupError, match=f"import refetch {CODE}, and this is 0123456789abcdef"):
        connect_server.code_of_workers(spark)


def test_workers_without_a_package_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect_server, "_NEEDED", ("numpy", "not_there", "nor_this"))
    with pytest.raises(SetupError, match=r"lack not_there, nor_this\. Install requirements\.txt"):
        connect_server.code_of_workers(spark)
