"""The sequence numbers of produced batches, where they have any."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from schemas.tables.silver import RECORD_BATCHES

NO_SEQUENCE = -1


def sequence() -> Column:
    """A batch's base_sequence, or NO_SEQUENCE without a producer id.

    Only with one is it a number (DefaultRecordBatch.hasProducerId): aiokafka writes 0 into every batch without.
    """
    b = RECORD_BATCHES
    return F.when(F.col(b.producer_id) >= 0, F.col(b.base_sequence)).otherwise(F.lit(NO_SEQUENCE))
