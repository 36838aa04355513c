"""What a capture set of request logs alone does not tell."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.lake.delta_tables import rows_of
from schemas.tables.silver import CAPTURES
from udfs.capture.request_log_head import REQUEST_LOG
from udfs.errors import CaptureError


def check_packets(spark: SparkSession, lake: str, capture_id: str, needed: str) -> None:
    """Raises CaptureError where the capture set is of request logs alone. needed: what is lacking then."""
    others = rows_of(spark, lake, CAPTURES, capture_id).where(F.col(CAPTURES.format) != REQUEST_LOG)
    if others.first() is None:
        raise CaptureError(
            f"{lake}: capture {capture_id} is of request logs, which do not tell {needed}: capture packets with "
            "`tcpdump -s 0` for it. The silver tables are whole"
        )
