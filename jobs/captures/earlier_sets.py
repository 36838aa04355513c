"""The capture set that another one continues (`--continue`): which one it is, and what is taken over from it.

All that is taken over comes from the earlier set's silver tables, so nothing else is stored for it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.captures.capture_plan import CapturePlan
from jobs.captures.capture_quality import KAFKA_PROTOCOL
from jobs.flags import LATEST
from jobs.lake.capture_sets import CaptureSet, capture_sets, decoder_of_set
from jobs.lake.delta_tables import has_table, stored_rows
from jobs.terminal.screen import with_rest_count
from jobs.terminal.wording import utc_time
from jobs.version import pseudonym_key_in
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.values import FULL, INCREMENTAL, UNANSWERED
from udfs.errors import ArgumentError, LakeError
from udfs.facts.continued_connections import (
    EARLIER_CONNECTIONS,
    EARLIER_PARTITIONS,
    TOPIC_IDS_FROM,
    EarlierSet,
)

MOST_OVERLAP = timedelta(minutes=1)
"""By how much a set may begin before the earlier one ends: capture points do not begin a new file at the same time."""
MOST_SETS = 20
MOST_PARTITIONS = 1_000_000
"""The most session partitions that are taken over: those of the connections that were used last. There is a limit
because every task gets them; this many take some tens of megabytes."""
_C, _X, _F = CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
_KEY = "connection_id"
_MARKS = (_F.high_watermark, _F.last_stable_offset, _F.log_start_offset)


@dataclass(frozen=True)
class Earlier:
    """A capture set that another one continues. decoder: what decoded it, as in the table `captures`."""

    capture_id: str
    decoder: str


def choose_earlier(spark: SparkSession, lake: str, named: str, plan: CapturePlan) -> Earlier | None:
    """The set that the planned one continues: the named one, or for `latest` the last one that ends before it begins.

    None if there is none for `latest`, as on the first night; stderr then says so. Raises ArgumentError if the named
    one does not exist, or does not end before the planned one begins.
    """
    begin = _begin_of(plan)
    sets = capture_sets(spark, lake) if has_table(spark, lake, CAPTURES) else []
    if named == LATEST:
        before = [capture_set for capture_set in sets if _is_before(capture_set, begin)]
        if not before:
            sys.stderr.write(
                f"refetch: --continue: {lake} has no capture set that ends before {utc_time(begin)}, where these "
                "captures begin: nothing is continued\n"
            )
            return None
        chosen = max(before, key=lambda capture_set: (str(capture_set.last_time), capture_set.capture_id))
    else:
        chosen = _named_set(lake, named, sets, begin)
    sys.stderr.write(f"refetch: goes on from capture set {chosen}\n")
    return Earlier(chosen.capture_id, decoder_of_set(spark, lake, chosen.capture_id))


def _begin_of(plan: CapturePlan) -> datetime:
    """The time of the first packet or line of the planned set, UTC. Raises ArgumentError if it has none."""
    times = [index.first_ts_ns for index in plan.indexes if index.first_ts_ns is not None]
    if not times:
        raise ArgumentError("--continue: the captures have no packet, so that nothing goes on in them; leave it out")
    return datetime.fromtimestamp(min(times) / 1e9, UTC)


def _is_before(capture_set: CaptureSet, begin: datetime) -> bool:
    """Whether a set begins before a time and ends by then, or shortly after."""
    first, last = capture_set.first_time, capture_set.last_time
    return first is not None and last is not None and first < begin and last - begin <= MOST_OVERLAP


def _named_set(lake: str, named: str, sets: Sequence[CaptureSet], begin: datetime) -> CaptureSet:
    chosen = next((capture_set for capture_set in sets if capture_set.capture_id == named), None)
    if chosen is None:
        lines = with_rest_count(map(str, sets[:MOST_SETS]), len(sets))
        there = ["it has", *lines] if lines else ["it has none: ingest the earlier captures first"]
        raise ArgumentError(
            "\n  ".join([f"--continue={named}: {lake} has no such capture set; {there[0]}", *there[1:]])
        )
    if chosen.last_time is None:
        raise ArgumentError(f"--continue={named}: that capture set has no packet, so that nothing goes on from it")
    if not _is_before(chosen, begin):
        raise ArgumentError(
            f"--continue={named}: that capture set ends {utc_time(chosen.last_time)}, after these captures begin "
            f"({utc_time(begin)}). Name one that ends before, as `runs` lists them, or give captures of the same time "
            "together by --captures"
        )
    return chosen


def continuing(plan: CapturePlan, earlier: Earlier) -> CapturePlan:
    """The planned set as one that continues an earlier one. It gets another id, because its rows differ."""
    digest = hashlib.sha256(f"{plan.capture_id} continues {earlier.capture_id}".encode())
    return replace(plan, capture_id=digest.hexdigest()[:16], continues=earlier.capture_id)


def read_earlier(spark: SparkSession, lake: str, earlier: Earlier) -> EarlierSet:
    """What an earlier set shows of its Kafka connections and of their fetch sessions at its end."""
    fetches = last_fetches(stored_rows(spark, lake, _F, earlier.capture_id), pseudonym_key_in(earlier.decoder) != "")
    ends = last_connections(stored_rows(spark, lake, _C, earlier.capture_id))
    partitions = fetches.join(ends.select("own", _KEY, "used"), fetches[_F.connection_id] == F.col("own"))
    requests = last_requests(stored_rows(spark, lake, _X, earlier.capture_id))
    under_way = fetches.groupBy(F.col(_F.connection_id).alias("own")).agg(F.max(_F.exchange_no).alias("fetch_no"))
    exchanges = stored_rows(spark, lake, _X, earlier.capture_id).where(F.col(_X.status) == UNANSWERED)
    waiting = exchanges.join(
        under_way, (exchanges[_X.connection_id] == F.col("own")) & (exchanges[_X.exchange_no] == F.col("fetch_no"))
    ).select("own", F.col(_X.correlation_id).cast("bigint").alias("fetch_correlation_id"))
    connections = ends.join(requests, "own").join(waiting, "own", "left").select(*EARLIER_CONNECTIONS.names)
    kept = partitions.drop(fetches[_F.connection_id]).orderBy(F.desc("used"), _KEY).limit(MOST_PARTITIONS)
    return EarlierSet(
        connections.toArrow().cast(EARLIER_CONNECTIONS).sort_by(_KEY),
        _whole_sessions(kept.select(*EARLIER_PARTITIONS).toArrow()).sort_by(_KEY),
    )


def check_still_there(spark: SparkSession, lake: str, earlier: Earlier) -> None:
    """Raises LakeError if the earlier set is no longer listed as it was: `prune` and `ingest` take a set out of
    `captures` before they change its other rows, so what was read of it may be incomplete.
    """
    row = stored_rows(spark, lake, CAPTURES, earlier.capture_id).select(CAPTURES.decoder).first()
    if row is None or row[0] != earlier.decoder:
        raise LakeError(
            f"{lake}: capture set {earlier.capture_id} was removed or written again while these captures went on from "
            "it: run the command again when that has ended"
        )


def _whole_sessions(partitions: pa.Table) -> pa.Table:
    """The partitions; without those of the last connection if the limit may have cut off some of them."""
    if partitions.num_rows < MOST_PARTITIONS:
        return partitions
    sys.stderr.write(
        f"refetch: --continue: sessions of {MOST_PARTITIONS:,} partitions are continued, those of connections that "
        "were used last; the others begin anew\n"
    )
    last = partitions[_KEY][-1]
    return partitions.filter(pa.compute.not_equal(partitions[_KEY], last))


def last_connections(connections: DataFrame) -> DataFrame:
    """The last connection between each two endpoints.

    own: its id. connection_id: the id of the first connection between these endpoints, which the next set gives to a
    connection that began before its capture. used: when the last connection was used last. The other columns are those
    of its client's software.
    """
    of_ends = connections.where(F.col(_C.protocol) == KAFKA_PROTOCOL).groupBy(_C.server, _C.client)
    by_time = F.struct(_C.first_time, _C.connection_id)
    columns = [_C.connection_id, _C.client_software_name, _C.client_software_version, _C.last_time]
    last = F.max_by(F.struct(*columns), by_time).alias("last")
    rows = of_ends.agg(F.min_by(_C.connection_id, by_time).alias(_KEY), last)
    return rows.select(
        F.col(f"last.{_C.connection_id}").alias("own"),
        _KEY,
        F.col(f"last.{_C.client_software_name}").alias("client_software_name"),
        F.col(f"last.{_C.client_software_version}").alias("client_software_version"),
        F.col(f"last.{_C.last_time}").alias("used"),
    )


def last_requests(exchanges: DataFrame) -> DataFrame:
    """(own, correlation_id): of each connection's last request."""
    of_requests = exchanges.where(F.col(_X.exchange_no) >= 0)
    last = F.max_by(F.col(_X.correlation_id).cast("bigint"), _X.exchange_no).alias("correlation_id")
    return of_requests.groupBy(F.col(_X.connection_id).alias("own")).agg(last)


def last_fetches(partitions: DataFrame, is_pseudonymised: bool) -> DataFrame:
    """The rows of `fetch_partitions` of each connection's last fetch that the broker did not refuse.

    A fetch without its response has no high watermarks. It gets those of the last fetch with a response, if that was in
    the same session. is_pseudonymised: topics have other names than on the wire, so only fetches that name topics by
    id are kept.
    """
    is_answered = F.col(_F.response_record_bytes).isNotNull()
    is_refused = (F.col(_F.kind) == INCREMENTAL) & (F.coalesce(_F.response_error_code, F.lit(0)) != 0)
    accepted = partitions.where(~is_refused)
    if is_pseudonymised:
        accepted = accepted.where(F.col(_F.api_version) >= TOPIC_IDS_FROM)
    numbers = accepted.groupBy(_F.connection_id).agg(
        F.max(_F.exchange_no).alias("last_no"),
        F.max(F.when(is_answered, F.col(_F.exchange_no))).alias("answered_no"),
    )
    both = accepted.join(numbers, str(_F.connection_id))
    last = both.where(F.col(_F.exchange_no) == F.col("last_no"))
    earlier = both.where((F.col(_F.exchange_no) == F.col("answered_no")) & (F.col("answered_no") < F.col("last_no")))
    session = F.when(F.col(_F.kind) == FULL, F.col(_F.response_session_id)).otherwise(F.col(_F.session_id))
    marks = earlier.select(
        F.struct(_F.connection_id, session.alias("session"), *_TOPIC).alias("of"),
        *(F.col(c).alias(f"earlier_{c}") for c in _MARKS),
    )
    same = F.struct(_F.connection_id, F.col(_F.session_id).alias("session"), *_TOPIC)
    filled = {str(c): F.coalesce(c, F.col(f"earlier_{c}")) for c in _MARKS}
    return last.join(marks, same.eqNullSafe(F.col("of")), "left").withColumns(filled).select(*partitions.columns)


_TOPIC: tuple[Column | str, ...] = (_F.topic, _F.topic_id, _F.partition)
