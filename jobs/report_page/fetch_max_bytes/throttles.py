"""Which quotas of brokers throttled clients in the capture, as far as responses show that.

A response has one throttle time: the longer one if two quotas throttle the request (KafkaApis, Kafka 4.3). The quota of
request time (KIP-124) applies to every request and throttles for at most one window of time
(ClientRequestQuotaManager). So a longer throttle time comes from the request's other quota. If a request has no other
quota, every throttle time comes from the quota of request time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.report_page.question import Findings
from jobs.report_page.row_caps import IN_ALL, first_rows
from jobs.report_page.traffic import FETCH, PRODUCE
from jobs.terminal.wording import client_name, duration
from schemas.tables.silver import EXCHANGES
from udfs.columns.time_units import MS_PER_S
from udfs.replay.fetch_max_bytes.quotas import CONSUMER_QUOTA, PRODUCER_QUOTA, has_quota
from udfs.replay.fetch_max_bytes.settings import QUOTA_WINDOW_SECONDS

REQUEST_QUOTA = "request_percentage"
OTHER_QUOTAS: Mapping[str, str] = {
    FETCH: CONSUMER_QUOTA,
    "SHARE_FETCH": CONSUMER_QUOTA,
    PRODUCE: PRODUCER_QUOTA,
    **dict.fromkeys(("CREATE_TOPICS", "CREATE_PARTITIONS", "DELETE_TOPICS"), "controller_mutation_rate"),
}
"""The quota that applies to an API's requests in addition to that of request time, by API."""
MOST_THROTTLED = 20
AS_CAPTURED = "as captured"


def throttled_clients(own_rows: OwnRows) -> DataFrame:
    """(client_id, api_name, connections, total, long) of the clients and APIs that were throttled, the longest
    throttled first.

    connections: how many were throttled. total: ms, the sum over them. long: ms in responses whose throttle time is
    above 1 s.
    """
    x = EXCHANGES
    throttled = own_rows(x).where(F.col(x.throttle_time_ms) > 0)
    is_long = F.col(x.throttle_time_ms) > MS_PER_S
    by_api = throttled.groupBy(x.client_id, x.api_name).agg(
        F.count_distinct(x.connection_id).alias("connections"),
        F.sum(x.throttle_time_ms).alias("total"),
        F.sum(F.when(is_long, F.col(x.throttle_time_ms)).otherwise(0)).alias("long"),
    )  # fmt: skip
    return first_rows(by_api, MOST_THROTTLED, F.desc("total"), x.client_id, x.api_name)


def held_back_by_unstated_quota(findings: Findings, client_id: str) -> bool:
    """Whether the capture shows that a quota held a consumer's fetches back, and nobody stated a quota of consumers.

    client_id: empty for none.
    """
    is_stated = has_quota(key for key in findings.captured if key not in findings.assumed)
    held_back = ((row[EXCHANGES.client_id] or "", row[EXCHANGES.api_name]) for row in findings.of(throttled_clients))
    return not is_stated and (client_id, FETCH) in held_back


def captured_throttles(findings: Findings) -> Iterator[tuple[str, str]]:
    """(`as captured`, which client was throttled longest, and by which quota), if any client was."""
    rows = findings.of(throttled_clients)
    if not rows:
        return
    by_client: dict[str | None, dict[str, int]] = {}
    for row in rows:
        sums = by_client.setdefault(row[EXCHANGES.client_id], {})
        for quota, ms in times_by_quota(row, int(findings.captured.get(QUOTA_WINDOW_SECONDS, 1))).items():
            sums[quota] = sums.get(quota, 0) + ms
    first, of_first = max(by_client.items(), key=lambda of: sum(of[1].values()))
    most = " or more" if rows[0][IN_ALL] > len(rows) else ""
    are = "client was" if len(by_client) == 1 and not most else "clients were"
    whom = f"{len(by_client):,}{most} {are} throttled, {client_name(first)} for {duration(sum(of_first.values()))}"
    # Connections are throttled at the same time, so their sum may be longer than the capture.
    together = max(row["connections"] for row in rows if row[EXCHANGES.client_id] == first)
    whom += f", added up over {together:,} connections" if together > 1 else ""
    parts = [f"{duration(ms)} by {quota}" for quota, ms in sorted(of_first.items(), key=lambda of: -of[1])]
    yield AS_CAPTURED, f"{whom}: {', '.join(parts)}"


def times_by_quota(row: Row, window_s: int) -> dict[str, int]:
    """How long a client was throttled in an API (ms), by quota. The key is two quotas if either may be the cause.

    window_s: quota.window.size.seconds. If it is not 1 s, the throttle times of single responses do not count.
    """
    total, other = row["total"], OTHER_QUOTAS.get(row[EXCHANGES.api_name])
    if other is None:
        return {REQUEST_QUOTA: total}
    certain = row["long"] if window_s == 1 else 0
    both = {other: certain, f"{other} or {REQUEST_QUOTA}": total - certain}
    return {quota: ms for quota, ms in both.items() if ms}
