"""Which captures the replay of fetch sessions refuses."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from jobs.replays.session_cache.job import check_sessions
from schemas.tables.silver import EXCHANGES
from schemas.wire.fetch import FETCH_REQUEST
from tests.gate_rows import frame
from udfs.errors import CaptureError

FETCH = {"api_key": FETCH_REQUEST.api_key, "api_name": "FETCH", "fetch_session_epoch": 0, "fetch_replica_id": -1}


def test_fetches_older_than_sessions_are_refused_and_others_are_not(spark: SparkSession) -> None:
    check_sessions(frame(spark, EXCHANGES, []))
    check_sessions(frame(spark, EXCHANGES, [FETCH | {"api_version": version} for version in (3, 7)]))
    with pytest.raises(CaptureError, match=r"\(KIP-227, Kafka 1.1\), and the newest captured is 6"):
        check_sessions(frame(spark, EXCHANGES, [FETCH | {"api_version": version} for version in (3, 6)]))
