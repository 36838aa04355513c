"""Which line of a request log belongs to which exchange of the packets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.captures.log_agreement import (
    LAST_PACKET,
    LOG,
    PACKETS,
    SERVER,
    RequestsOfSource,
    agreement_rows,
    join_requests,
    with_log_columns,
)
from jobs.lake.declared_columns import spark_schema
from schemas.tables.silver import CONNECTIONS, EXCHANGES
from schemas.tables.silver_quality import LOG_AGREEMENT
from schemas.tables.table import Table

START = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
Seen = list[dict[str, Any]]


def frame(spark: SparkSession, table: Table, rows: Seen) -> DataFrame:
    whole = [tuple(row.get(column) for column in table.columns) for row in rows]
    return spark.createDataFrame(whole, spark_schema(table))


def seen(spark: SparkSession, *exchanges: dict[str, Any], port: int = 5, last: float = 3600) -> RequestsOfSource:
    """Exchanges of one connection. Their key `at`, if given, is the time in seconds after START; the connection's last
    packet comes at `last`.
    """
    x = EXCHANGES
    rows = []
    for number, told in enumerate(exchanges):
        time = START + timedelta(seconds=told.pop("at", number))
        rows.append(
            {x.connection_id: 1, x.exchange_no: number, x.broker: "b:1", x.request_time: time, x.response_time: time}
            | told
        )
    c = CONNECTIONS
    ends: dict[str, Any] = {c.connection_id: 1, c.server: "b:1", c.client: f"c:{port}"}
    ends[c.last_time] = START + timedelta(seconds=last)
    return RequestsOfSource(frame(spark, EXCHANGES, rows), frame(spark, CONNECTIONS, [ends]))


def pairs(joined: DataFrame) -> set[tuple[int | None, int | None]]:
    """(exchange number in the packets, exchange number in the log) of every request."""
    return {tuple(row) for row in joined.select(f"{PACKETS}.exchange_no", f"{LOG}.exchange_no").collect()}


def asked(*numbers: int) -> list[dict[str, Any]]:
    return [{EXCHANGES.correlation_id: number} for number in numbers]


def test_server_client_and_correlation_id_name_a_request_whatever_the_clocks_say(spark: SparkSession) -> None:
    packets = seen(spark, *asked(7, 8, 9))
    log = seen(spark, *({**told, "at": 3600} for told in asked(8, 9, 10)))
    assert pairs(join_requests(packets, log)) == {(0, None), (1, 0), (2, 1), (None, 2)}
    assert pairs(join_requests(packets, seen(spark, *asked(7), port=6))) == {
        (0, None), (1, None), (2, None), (None, 0),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((0, 10, 20), {(0, 0), (1, 1), (2, 2)}),
        ((10, 20), {(0, None), (1, 0), (2, 1)}),
        ((0, 5, 20), {(0, 0), (None, 1), (1, None), (2, 2)}),
    ],
    ids=["all", "first lost", "another and one lost"],
)
def test_where_an_id_comes_again_a_line_tells_the_request_before_it(
    spark: SparkSession, lines: tuple[int, ...], expected: set[tuple[int | None, int | None]]
) -> None:
    (told,) = asked(0)
    packets = seen(spark, *({**told, "at": at} for at in (0.0005, 10.0005, 20.0005)))
    log = seen(spark, *({**told, "at": at} for at in lines))
    assert pairs(join_requests(packets, log)) == expected


def test_a_log_tells_the_software_of_a_client_that_connected_before_the_capture(spark: SparkSession) -> None:
    x = EXCHANGES
    of_packets: list[dict[str, Any]] = [{}, {x.client_software_name: "seen", x.client_software_version: "1"}]
    of_log: dict[str, Any] = {x.client_software_name: "logged", x.client_software_version: "2", x.status: "answered"}
    numbers = asked(0, 1)
    packets = seen(spark, *(number | told for number, told in zip(numbers, of_packets, strict=True)))
    log = seen(spark, *(number | of_log for number in numbers))
    rows = with_log_columns(join_requests(packets, log)).orderBy(x.exchange_no).collect()
    shown = [(row[x.client_software_name], row[x.client_software_version], row[x.status]) for row in rows]
    assert shown == [("logged", "2", None), ("seen", "1", None)]


def test_what_differs_is_named_and_the_first_exchange_that_does(spark: SparkSession) -> None:
    x, t = EXCHANGES, LOG_AGREEMENT
    both: list[dict[str, Any]] = [{x.correlation_id: n, x.client_id: "app", x.api_version: 3} for n in range(4)]
    packets = seen(spark, *both, {x.correlation_id: 9})
    others: list[dict[str, Any]] = [{}, {x.client_id: "other"}, {x.client_id: "other"}, {x.api_version: None}]
    log = seen(spark, *(told | other | {"at": n + 2} for n, (told, other) in enumerate(zip(both, others, strict=True))))
    rows = {row[t.field]: row for row in agreement_rows(join_requests(packets, log), "set").collect()}
    counts = (t.in_both, t.different, t.only_in_packets, t.only_in_log, t.different_exchange_no, t.log_behind_us)
    assert [rows["request"][c] for c in counts] == [4, 2, 1, 0, 1, 2_000_000]
    assert [rows[x.client_id][c] for c in counts] == [4, 2, 0, 0, 1, None]
    assert [rows[x.api_version][c] for c in counts] == [3, 0, 1, 0, None, None]
    assert {row[t.broker] for row in rows.values()} == {"b:1"}


@pytest.mark.parametrize(
    ("status", "last", "different", "only_in_log"),
    [
        ("unanswered", 1.5, 0, 1),
        ("unanswered", 2.0, 0, 1),
        ("unanswered", 2.001, 1, 0),
        ("no_response", 1.5, 1, 0),
        ("answered", 1.5, 0, 0),
    ],
)
def test_a_response_after_the_last_packet_of_its_connection_is_no_difference(
    spark: SparkSession, status: str, last: float, different: int, only_in_log: int
) -> None:
    """The log has its line from the second 2 on: the client had gone, or the capture had ended."""
    x, t = EXCHANGES, LOG_AGREEMENT
    (told,) = asked(7)
    packets = seen(spark, told | {x.status: status, x.response_time: None}, last=last)
    joined = join_requests(packets, seen(spark, told | {x.status: "answered", "at": 2}))
    rows = {row[t.field]: row for row in agreement_rows(joined, "set").collect()}
    counted = [rows[x.status][column] for column in (t.in_both, t.different, t.only_in_log)]
    assert counted == [1 - only_in_log, different, only_in_log]
    assert (rows["request"][t.in_both], rows["request"][t.different]) == (1, different)


def test_what_a_listener_with_sasl_answers_before_a_client_authenticates_is_in_no_log(spark: SparkSession) -> None:
    """Even if the client then goes away. After that, a request that no log has is only in the packets."""
    x, t = EXCHANGES, LOG_AGREEMENT
    names = ("API_VERSIONS", "SASL_HANDSHAKE", "SASL_AUTHENTICATE", "FETCH")
    rows: Seen = [{x.correlation_id: number, x.api_name: name} for number, name in enumerate(names)]
    shakes = seen(spark, *rows)
    goes = seen(spark, {x.correlation_id: 0, x.api_name: "API_VERSIONS", x.connection_id: 2}, port=6)
    other = goes.connections.withColumn(CONNECTIONS.connection_id, F.lit(2).cast("bigint"))
    packets = RequestsOfSource(shakes.exchanges.union(goes.exchanges), shakes.connections.union(other))
    joined = join_requests(packets, seen(spark, port=7))
    (requests,) = agreement_rows(joined, "set").where(F.col(t.field) == "request").collect()
    assert requests[t.only_in_packets] == 1


def test_the_first_line_of_one_time_tells_the_last_request_of_one_time_in_whatever_order_they_come(
    spark: SparkSession,
) -> None:
    """A client that does not count up its correlation ids may send several requests in one packet, and a log has times
    in milliseconds.
    """

    def turned(of: RequestsOfSource) -> RequestsOfSource:
        rows = [row.asDict() for row in of.exchanges.collect()][::-1]
        return RequestsOfSource(frame(spark, EXCHANGES, rows), of.connections)

    (told,) = asked(0)
    packets, log = (seen(spark, *({**told, "at": at} for at in (0, 0, 0, 1, 1, 1))) for _ in range(2))
    found = [pairs(join_requests(packets, log)), pairs(join_requests(turned(packets), turned(log)))]
    alone = {(n, None) for n in (0, 1, 3, 4)} | {(None, n) for n in (1, 2, 4, 5)}
    assert found[0] == found[1] == {(2, 0), (5, 3)} | alone


def test_how_far_a_log_is_behind_does_not_depend_on_how_its_lines_are_spread(spark: SparkSession) -> None:
    x = EXCHANGES
    both = F.struct(*(F.lit(None).cast(spark_schema(EXCHANGES)[str(c)].dataType).alias(c) for c in x.columns))
    rows = spark.range(200_000).withColumn("behind", F.pmod(F.xxhash64("id"), F.lit(1_000_003)))
    told = rows.select(
        both.withField(x.response_time, F.timestamp_micros(F.lit(0))).withField(x.broker, F.lit("b:1")).alias(PACKETS),
        both.withField(x.response_time, F.timestamp_micros("behind")).withField(x.broker, F.lit("b:1")).alias(LOG),
        F.lit("b:1").alias(SERVER),
        F.lit(None).cast("timestamp").alias(LAST_PACKET),
    )
    exact = rows.agg(F.percentile("behind", 0.5)).first()
    for tasks in (1, 3, 7):
        t = LOG_AGREEMENT
        found = agreement_rows(told.repartition(tasks), "set").where(F.col(t.field) == "request").first()
        assert exact is not None
        assert found is not None
        assert found[t.log_behind_us] == int(exact[0])
