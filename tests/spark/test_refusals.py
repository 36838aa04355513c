"""Which clients' refused changes the report shows if many are refused."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from jobs.lake.delta_tables import rows_of_driver
from jobs.report_page.partition_limits import BROKER_LIMIT, MAX_IN_A_LANE, refused_changes
from schemas.tables.gold_limits import PARTITION_LIMIT_REFUSALS
from udfs.facts.arrow_tables import arrow_schema


def test_what_kafka_refuses_of_many_clients_does_not_hide_whom_a_limit_refuses(spark: SparkSession) -> None:
    r = PARTITION_LIMIT_REFUSALS
    by_kafka = [(f"team-{n}", "controller_mutation_rate") for n in range(MAX_IN_A_LANE + 1) for _ in range(3)]
    rows: list[dict[str, str]] = [
        {r.scenario: "lane", r.client_id: client, r.refused_by: limit, r.topic: "t"}
        for client, limit in [*by_kafka, ("ops", BROKER_LIMIT)]
    ]
    gold = rows_of_driver(spark, pa.Table.from_pylist(rows, schema=arrow_schema(r)))
    told = refused_changes(lambda _: gold).collect()
    assert len(told) == MAX_IN_A_LANE
    assert (told[0][r.client_id], told[0]["refused"]) == ("ops", 1)
    assert {row["refused"] for row in told[1:]} == {3}
