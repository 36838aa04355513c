"""Packets and request logs of the same traffic, request by request: what the log adds, and where the two disagree.

A request is the same in both if server, client and correlation id are the same. The content of its messages comes from
the packets. The log adds what only a broker knows; the rest of it is compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.lake.declared_columns import spark_schema
from schemas.tables.silver import CONNECTIONS, EXCHANGES, QUARANTINE
from schemas.tables.silver_quality import LOG_AGREEMENT
from schemas.tables.table import Column as TableColumn
from schemas.tables.values import UNANSWERED
from udfs.facts.exchange_rows import LOG_COLUMNS

PACKETS, LOG = "packets", "log"
"""Columns of a joined request: the exchange as packets show it, and as the log shows it. Null if it is not there."""

COMPARED = (
    EXCHANGES.api_name, EXCHANGES.api_version, EXCHANGES.client_id, EXCHANGES.client_software_name,
    EXCHANGES.client_software_version, EXCHANGES.status, EXCHANGES.error_code, EXCHANGES.throttle_time_ms,
    EXCHANGES.fetch_max_bytes, EXCHANGES.fetch_replica_id, EXCHANGES.fetch_session_id, EXCHANGES.fetch_session_epoch,
)  # fmt: skip
SOFTWARE = (EXCHANGES.client_software_name, EXCHANGES.client_software_version)
"""Columns that the log completes if the packets do not show them."""
REQUEST = "request"
COUNTS = (
    LOG_AGREEMENT.in_both, LOG_AGREEMENT.different, LOG_AGREEMENT.only_in_packets, LOG_AGREEMENT.only_in_log,
)  # fmt: skip
# A log's times are cut to milliseconds. With this added, a line never comes before the request that it is about.
LINE_AFTER = "INTERVAL 0.000999 SECOND"
SASL_HANDSHAKE, SASL_AUTHENTICATE, API_VERSIONS = "SASL_HANDSHAKE", "SASL_AUTHENTICATE", "API_VERSIONS"
AUTHENTICATES = "authenticates"
SERVER, CLIENT, TIME = "server", "client", "time"
LAST_PACKET = "last_packet"
"""When the last packet of the request's connection was captured; null for a request that no packets show."""


@dataclass(frozen=True)
class RequestsOfSource:
    """Rows of `exchanges` and of `connections` by packets alone, or by request logs alone."""

    exchanges: DataFrame
    connections: DataFrame

    def rows(self, side: str, time: Column) -> DataFrame:
        """(server, client, correlation_id, time, connection_id, exchange_no, LAST_PACKET, PACKETS, LOG).

        The exchange is in the column `side`; the other of the last two is null.
        """
        c, x = CONNECTIONS, EXCHANGES
        last = F.when(F.lit(side == PACKETS), F.col(c.last_time)).alias(LAST_PACKET)
        ends = self.connections.select(c.connection_id, c.server, c.client, last)
        nothing = F.lit(None).cast(spark_schema(EXCHANGES))
        sides = {side: F.struct(*x.columns), **{other: nothing for other in (PACKETS, LOG) if other != side}}
        exchanges = self.exchanges.join(ends, str(c.connection_id))
        columns = (SERVER, CLIENT, x.correlation_id, time.alias(TIME), x.connection_id, x.exchange_no, LAST_PACKET)
        return exchanges.select(*columns, *(sides[name].alias(name) for name in (PACKETS, LOG)))


def join_requests(packets: RequestsOfSource, logs: RequestsOfSource) -> DataFrame:
    """(packets, log, server, LAST_PACKET): every request that either has, joined.

    If server, client and correlation id belong to a single request in both, times do not matter. If they belong to
    several, since the client connected again or does not count correlation ids up, a line belongs to the last request
    before the line was written. Requests or lines of the same time are in the order of their exchange numbers.
    """
    x = EXCHANGES
    request_or_response_time = F.coalesce(F.col(x.request_time), F.col(x.response_time))
    written = F.coalesce(F.col(x.response_time), F.col(x.request_time)) + F.expr(LINE_AFTER)
    rows = packets.rows(PACKETS, request_or_response_time).unionByName(logs.rows(LOG, written))
    same = Window.partitionBy(SERVER, CLIENT, str(x.correlation_id))
    in_time = same.orderBy(F.col(TIME), F.col(LOG).isNotNull(), x.connection_id, x.exchange_no)
    is_lone = (F.count(PACKETS).over(same) == 1) & (F.count(LOG).over(same) == 1)
    line = F.when(is_lone, F.first(LOG, ignorenulls=True).over(same)).otherwise(F.lead(LOG).over(in_time))
    is_taken = is_lone | F.lag(PACKETS).over(in_time).isNotNull()
    by_packets = F.col(PACKETS).isNotNull()
    told = F.when(by_packets, line).otherwise(F.col(LOG)).alias(LOG)
    joined = rows.select(PACKETS, told, SERVER, LAST_PACKET, is_taken.alias("taken"))
    return joined.where(F.col(PACKETS).isNotNull() | ~F.col("taken")).drop("taken")


def with_log_columns(joined: DataFrame) -> DataFrame:
    """The exchanges of the packets, with the columns that only the log has.

    A client reports its software when it connects. If that was before the capture began, the log still has it.
    """
    columns = [_merged_column(column).alias(column) for column in EXCHANGES.columns]
    return joined.where(F.col(PACKETS).isNotNull()).select(*columns)


def _merged_column(column: TableColumn) -> Column:
    if column in LOG_COLUMNS:
        return _side_column(LOG, column)
    by_packets = _side_column(PACKETS, column)
    return F.coalesce(by_packets, _side_column(LOG, column)) if column in SOFTWARE else by_packets


def agreement_rows(joined: DataFrame, capture_id: str) -> DataFrame:
    """Rows of the table `log_agreement`."""
    t, x = LOG_AGREEMENT, EXCHANGES
    joined = _without_unlogged(joined)
    broker = F.coalesce(_side_column(PACKETS, x.broker), _side_column(LOG, x.broker)).alias(t.broker)
    behind = F.unix_micros(_side_column(LOG, x.response_time)) - F.unix_micros(_side_column(PACKETS, x.response_time))
    sums = [_sums_of_column(column).alias(column) for column in COMPARED]
    requests = _sums_of_requests().alias(REQUEST)
    by_broker = joined.groupBy(broker).agg(
        requests, *sums, F.percentile(behind, 0.5).cast("bigint").alias(t.log_behind_us)
    )
    fields = F.array(*(F.struct(F.lit(name).alias(t.field), f"{name}.*") for name in (REQUEST, *map(str, COMPARED))))
    flat = by_broker.select(t.broker, t.log_behind_us, F.explode(fields).alias("of")).select(
        F.lit(capture_id).alias(t.capture_id),
        t.broker,
        "of.*",
        F.when(F.col(f"of.{t.field}") == REQUEST, F.col(t.log_behind_us)).alias(t.log_behind_us),
    )
    return flat.select(*t.columns)


def _without_unlogged(joined: DataFrame) -> DataFrame:
    """The requests without those that SaslServerAuthenticator of a broker answers itself: no log has them. A client may
    ask for versions on a listener with SASL, and then go away before it authenticates.
    """
    api = _side_column(PACKETS, EXCHANGES.api_name)
    with_sasl = joined.where(api == SASL_HANDSHAKE).select(F.col(SERVER).alias(AUTHENTICATES)).distinct()
    rows = joined.join(with_sasl, F.col(SERVER) == F.col(AUTHENTICATES), "left")
    is_sasl = api.isin(SASL_HANDSHAKE, SASL_AUTHENTICATE) | ((api == API_VERSIONS) & F.col(AUTHENTICATES).isNotNull())
    return rows.where(F.col(LOG).isNotNull() | ~F.coalesce(is_sasl, F.lit(False))).drop(AUTHENTICATES)


def _side_column(side: str, column: TableColumn) -> Column:
    return F.col(f"{side}.{column}")


def _shown_by_packets(column: TableColumn) -> Column:
    """What the packets show of this column. If the connection's last packet came before the log's line, they do not
    show whether the request was answered: the client had gone, or the capture had ended.
    """
    shown, x = _side_column(PACKETS, column), EXCHANGES
    if column != x.status:
        return shown
    is_late = _side_column(LOG, x.response_time) + F.expr(LINE_AFTER) >= F.col(LAST_PACKET)
    return F.when(~((shown == UNANSWERED) & F.coalesce(is_late, F.lit(False))), shown)


def _is_different(column: TableColumn) -> Column:
    """Whether packets and log both have a value of this column, and these differ."""
    return F.coalesce(_shown_by_packets(column) != _side_column(LOG, column), F.lit(False))


def _sums_of_column(column: TableColumn) -> Column:
    """The counts of one column, and the first exchange in which it differs."""
    packets, log = _shown_by_packets(column), _side_column(LOG, column)
    is_both = F.col(PACKETS).isNotNull() & F.col(LOG).isNotNull()
    return _counts_and_first(
        packets.isNotNull() & log.isNotNull(),
        _is_different(column),
        is_both & packets.isNotNull() & log.isNull(),
        is_both & packets.isNull() & log.isNotNull(),
    )


def _sums_of_requests() -> Column:
    """The counts of requests as a whole, and the first that differs in any column."""
    packets, log = F.col(PACKETS), F.col(LOG)
    differs = F.lit(False)
    for column in COMPARED:
        differs = differs | _is_different(column)
    return _counts_and_first(packets.isNotNull() & log.isNotNull(), differs, log.isNull(), packets.isNull())


def _counts_and_first(in_both: Column, different: Column, only_in_packets: Column, only_in_log: Column) -> Column:
    t, x = LOG_AGREEMENT, EXCHANGES
    conditions = (in_both, different, only_in_packets, only_in_log)
    counts = [F.count_if(condition).alias(name) for condition, name in zip(conditions, COUNTS, strict=True)]
    place = F.struct(
        *(_side_column(PACKETS, column).alias(column) for column in (x.request_time, x.connection_id, x.exchange_no))
    )
    first = F.min(F.when(different, place))
    return F.struct(
        *counts,
        first[x.connection_id].alias(t.different_connection_id),
        first[x.exchange_no].alias(t.different_exchange_no),
    )


def quarantine_of_lines(quarantine: DataFrame) -> DataFrame:
    """Rows of `quarantine` about lines of logs, for logs that are read together with packets: the exchanges then come
    from the packets.
    """
    t = QUARANTINE
    changed = {
        str(t.connection_id): F.lit(0).cast("bigint"),
        str(t.exchange_no): F.lit(None).cast("bigint"),
    }
    return quarantine.withColumns(changed).select(*t.columns)
