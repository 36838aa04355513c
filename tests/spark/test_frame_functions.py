"""The functions over columns of frames in Spark: from Python and from SQL, on a table that is stored in files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from jobs.frame_functions import register_frame_functions
from tests.unit.frames.kafka_frames import request, response
from tests.unit.wire.reference import be
from udfs.frames.spark_functions import NAMES, fetch_request, metadata_response, request_header


def fetch(version: int, *partitions: int) -> bytes:
    """A Fetch request for partitions of one topic."""
    topics = be("i", 1) + be("h", 6) + b"orders" + be("i", len(partitions))
    wanted = b"".join(be("iqi", partition, 10 * partition, 1048576) for partition in partitions)
    limits = be("iiiib", -1, 500, 1, 8388608, 0) if version == 4 else be("iii", -1, 500, 1)
    return request(1, version, limits + topics + wanted)


def test_a_column_of_frames_is_decoded_by_select_and_by_sql(spark: SparkSession, tmp_path: Path) -> None:
    brokers = be("i", 1) + be("ih", 3, 4) + b"host" + be("i", 9092)
    rows = [
        (0, 4, fetch(4, 0, 1, 2)), (1, 2, fetch(2, 5)), (2, 4, fetch(4, 7)[:-2]), (3, None, None),
        (4, 0, response(brokers + be("i", 0))),
    ]  # fmt: skip
    names = ("place", "version", "frame")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    pq.write_table(table, tmp_path / "frames.parquet")
    frames = spark.read.parquet(str(tmp_path / "frames.parquet"))

    header, request_of = request_header("frame").alias("header"), fetch_request("version", "frame").alias("fetch")
    told = frames.where("place < 4").select("place", header, request_of).orderBy("place").collect()
    assert [(row.header.api_name, row.header.api_version) for row in told[:2]] == [("FETCH", 4), ("FETCH", 2)]
    assert [row.fetch and (row.fetch.max_bytes, row.fetch.decode_fault) for row in told] == [
        (8388608, None), (2147483647, None), (None, "truncated"), None,
    ]  # fmt: skip
    brokers_of = frames.where("place = 4").select(metadata_response("version", "frame").brokers.alias("brokers"))
    (row,) = brokers_of.collect()
    assert [broker.host for broker in row.brokers] == ["host"]

    assert register_frame_functions(spark) == NAMES
    frames.createOrReplaceTempView("frames")
    asked = spark.sql("""
        WITH decoded AS (SELECT place, fetch_request(version, frame) AS fetch FROM frames WHERE place < 4)
        SELECT place, topic.topic, wanted.partition, wanted.fetch_offset
        FROM decoded LATERAL VIEW explode(fetch.topics) AS topic LATERAL VIEW explode(topic.partitions) AS wanted
        WHERE fetch.decode_fault IS NULL ORDER BY ALL
    """)
    assert [tuple(row) for row in asked.collect()] == [
        (0, "orders", 0, 0), (0, "orders", 1, 10), (0, "orders", 2, 20), (1, "orders", 5, 50),
    ]  # fmt: skip
