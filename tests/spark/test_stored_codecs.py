"""The topics of which a capture shows that brokers compress batches again."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.replays.batch_split.stored_codecs import stored_codecs
from schemas.tables.silver import RECORD_BATCHES
from tests.gate_rows import TIME, Row, frame


def batch(source: str, codec: str | None, at: int, **more: Any) -> Row:
    """A batch of the topic `t` with ten offsets from `at` on."""
    place = {"topic": "t", "partition": 0, "base_offset": at, "last_offset_delta": 9, "request_time": TIME}
    return place | {"source": source, "codec": codec} | more


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([batch("produce", "lz4", 0), batch("fetch", "gzip", 0)], {"t": "gzip"}),
        ([batch("produce", "lz4", 0), batch("fetch", "none", 0)], {"t": "none"}),
        ([batch("produce", "lz4", 0), batch("fetch", "lz4", 0), batch("fetch", None, 10)], {}),
        ([batch("produce", "lz4", 0), batch("fetch", "gzip", 10)], {}),
        ([batch("produce", "lz4", 0, error_code=6), batch("fetch", "gzip", 0)], {}),
        ([batch("produce", "lz4", 0), batch("fetch", "gzip", 0, partition=1)], {}),
        ([batch("produce", "lz4", 0), batch("fetch", "gzip", 0, topic="u")], {}),
        ([batch("produce", "gzip", 0), batch("produce", "zstd", 10), batch("fetch", "gzip", 0),
          batch("fetch", "gzip", 10)], {"t": "gzip"}),
        ([batch("produce", "none", at) for at in (0, 10)] + [batch("fetch", "gzip", 0), batch("fetch", "lz4", 10)],
         {"t": "lz4"}),
    ],
    ids=["compressed anew", "not compressed", "as produced", "by another producer", "refused", "another partition",
         "another topic", "some in the topic's codec", "it was changed"],
)  # fmt: skip
def test_a_batch_that_is_fetched_in_another_codec_shows_the_topics(
    spark: SparkSession, rows: list[Row], found: dict[str, str]
) -> None:
    assert stored_codecs(frame(spark, RECORD_BATCHES, rows)) == found
