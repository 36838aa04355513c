"""Which replays need packets, because request logs do not show what they need."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.lake.delta_tables import stored_rows
from schemas.tables import algorithms
from schemas.tables.silver import CAPTURES
from udfs.capture.request_log_head import REQUEST_LOG
from udfs.errors import CaptureError

TOLD_BY_PACKETS: Mapping[str, str] = {
    algorithms.FETCH_MAX_BYTES: "the sizes of record batches",
    algorithms.CONSUMER_MEMORY: "the sizes of messages",
    algorithms.BATCH_SPLIT: "the record batches",
}
"""What a replay needs and only packets show, by the replay's name."""


def lacks_packets(name: str) -> str:
    """Why request logs alone are not enough for a replay of TOLD_BY_PACKETS, and what to do."""
    return (
        f"The captures are request logs, which lack {TOLD_BY_PACKETS[name]} that the replay of {name} needs: capture "
        "packets with `tcpdump -s 0` for it. The silver tables are complete."
    )


def check_packets(spark: SparkSession, lake: str, capture_id: str, name: str) -> None:
    """Raises CaptureError if the capture set has request logs alone. name: a replay's, one of TOLD_BY_PACKETS."""
    others = stored_rows(spark, lake, CAPTURES, capture_id).where(F.col(CAPTURES.format) != REQUEST_LOG)
    if others.first() is None:
        raise CaptureError(lacks_packets(name))
