"""A capture set without traffic to replay is refused before anything is replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.replay import check_replayable
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES
from tests.gate_rows import TIME, whole
from tests.lakes import plant
from udfs.errors import GateError

CAPTURE = "a-capture"
REQUEST = {"api_name": "FETCH", "request_time": TIME, "response_time": None}


def lake_of(folder: Path, *exchanges: dict[str, Any], protocol: str = "kafka") -> str:
    """A lake with a capture of one connection with these exchanges."""
    of_set = {"capture_id": CAPTURE}
    rows = {
        CAPTURES: [{**of_set, "path": "a.pcap", "packets": 9}],
        CONNECTIONS: [{**of_set, "connection_id": 1, "protocol": protocol}],
        EXCHANGES: [{**of_set, "connection_id": 1, **exchange} for exchange in exchanges],
    }
    for table, of_table in rows.items():
        plant(str(folder), table, whole(table, of_table))
    return str(folder)


def test_one_answered_request_is_enough(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, REQUEST, {**REQUEST, "exchange_no": 2, "response_time": TIME})
    check_replayable(spark, lake, CAPTURE)


def test_requests_without_any_response_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(GateError, match="no response of a broker to any: capture both directions"):
        check_replayable(spark, lake_of(tmp_path, REQUEST), CAPTURE)


def test_captures_without_kafkas_traffic_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(GateError, match=r"No Kafka traffic was found in a.pcap \(9 packets; connections: 1 tls\)"):
        check_replayable(spark, lake_of(tmp_path, protocol="tls"), CAPTURE)
