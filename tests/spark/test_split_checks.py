"""Which captures the replay of batches refuses."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from jobs.replays.batch_split.job import check_topics_of_limits
from schemas.tables.silver import RECORD_BATCHES
from tests.gate_rows import frame
from udfs.errors import CaptureError
from udfs.replay.batch_split.settings import TopicLimits


def test_a_topic_that_nobody_produces_to_has_no_limit_of_its_own(spark: SparkSession) -> None:
    batches, one = frame(spark, RECORD_BATCHES, [{"source": "produce", "topic": "t"}]), np.zeros(1, np.int64)
    check_topics_of_limits(batches, TopicLimits(({"t": 1},), one, one, 1))
    with pytest.raises(CaptureError, match="is given of orders, tt, to which the capture shows no batch"):
        check_topics_of_limits(batches, TopicLimits(({"t": 1, "tt": 1, "orders": 1},), one, one, 1))
