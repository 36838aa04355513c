"""Share groups (KIP-932): what their members fetch, and which replays leave their requests out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.session_cache.share_answers import are_sessions_possible, share_lanes, share_needs
from jobs.report_page.question import Findings
from jobs.report_page.row_caps import first_rows, left_out_note
from jobs.terminal.screen import share_text, size_text
from jobs.terminal.wording import client_name, quantity
from schemas.tables import algorithms
from schemas.tables.gold_shares import SHARE_LIMITS, SHARE_SESSIONS
from schemas.tables.silver_shares import SHARE_FETCHES
from schemas.tables.values import FETCH

SHARE_APIS = ("SHARE_FETCH", "SHARE_ACKNOWLEDGE")
MOST_SHARE_CLIENTS = 10


def share_clients(own_rows: OwnRows) -> DataFrame:
    """What the clients of share groups ask for and get in a ShareFetch; the client with most fetches comes first.

    `median_records` and `median_bytes` are over the fetches that acquire records. A fetch that asks for no record does
    not count: it only renews or closes.
    """
    s = SHARE_FETCHES
    asks = (F.col(s.kind) == FETCH) & (F.coalesce(s.max_bytes, F.lit(0)) > 0)
    got = F.col(s.acquired_records) > 0
    by_client = own_rows(s).where(asks).groupBy(s.group_id, s.client_id).agg(
        F.count("*").alias("fetches"), F.count_if(got).alias("served"),
        F.sum(s.acquired_records).alias("records"), F.sum(s.redelivered_records).alias("again"),
        F.sum(s.returned_bytes).alias("bytes"),
        F.percentile(F.when(got, F.col(s.acquired_records)), 0.5).cast("bigint").alias("median_records"),
        F.percentile(F.when(got, F.col(s.returned_bytes)), 0.5).cast("bigint").alias("median_bytes"),
        F.count_if(F.col(s.acquired_records) >= F.col(s.max_records)).alias("full"),
        F.max(s.max_records).alias(s.max_records), F.max(s.batch_size).alias(s.batch_size),
        F.max(s.max_bytes).alias(s.max_bytes),
    )  # fmt: skip
    return first_rows(by_client, MOST_SHARE_CLIENTS, F.desc("fetches"), s.group_id, s.client_id)


def share_client_notes(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each client of a share group."""
    s = SHARE_FETCHES
    for row in rows:
        got = f"{quantity(row['fetches'], 'fetch', 'fetches')}, {row['served']:,} with records"
        limits = [f"max_bytes {size_text(row[s.max_bytes])}"]
        if row[s.max_records] is not None:
            limits = [f"max_records {row[s.max_records]:,}", f"batch_size {row[s.batch_size]:,}", *limits]
        median = "" if row["median_records"] is None else f"; in the middle {row['median_records']:,} records"
        if median and row["median_bytes"] is not None:
            median += f" and {size_text(row['median_bytes'])}"
        again = f"; {row['again']:,} of {row['records']:,} records again" if row["again"] else ""
        of = f"share group {row[s.group_id] or '-'}, {client_name(row[s.client_id])}"
        yield f"  {of}: {got}{median} ({', '.join(limits)}){again}"
    yield from (f"  {line}" for line in left_out_note(rows, SHARE_FETCHES))


def share_groups_text(requests: Sequence[Row]) -> str:
    """Which replays leave out the requests of share groups; empty if there are no such requests. requests: by API."""
    shared = sum(row["count"] for row in requests if row["api_name"] in SHARE_APIS)
    if not shared:
        return ""
    are = f"{quantity(shared, 'request')} of share groups (KIP-932) {'is' if shared == 1 else 'are'}"
    return f"{are} in no lane of fetch_max_bytes and consumer_memory: neither in quotas, closed loop nor memory"


def share_sessions_text(findings: Findings) -> str:
    """How many share sessions are enough, and which share of those that want one is refused; empty without any."""
    rows, needs = findings.by_lane(share_lanes, algorithms.SESSION_CACHE), findings.of(share_needs)
    if not rows or not needs:
        return ""
    c, s, need = SHARE_SESSIONS, SHARE_LIMITS, needs[0]
    refused = share_text(rows[0][c.refused], rows[0][c.refused] + rows[0][c.created])
    text = (
        f" Share groups need {quantity(need[s.needed_sessions], 'share session')} per broker; as captured, {refused} "
        "of the ShareFetches that want one are refused."
    )
    if not are_sessions_possible(need):
        text += f" The capture does not allow {need[s.max_share_sessions]:,}: state group.share.max.share.sessions."
    return text
