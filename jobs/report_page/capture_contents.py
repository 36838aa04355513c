"""What the capture files hold and what they lack: the lines that come before all answers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.captures.log_agreement import REQUEST
from jobs.replays.algorithm import OwnRows
from jobs.report_page.other_brokers import other_broker_lines
from jobs.report_page.question import Findings
from jobs.report_page.row_caps import first_rows, left_out_note
from jobs.report_page.share_groups import share_groups_text
from jobs.report_page.useless_captures import no_traffic_text, one_sided_text, one_way_text
from jobs.terminal.screen import MOST_LINES, size_text, with_rest_count
from jobs.terminal.wording import quantity
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, QUARANTINE
from schemas.tables.silver_quality import CAPTURE_QUALITY, LOG_AGREEMENT
from udfs.capture.frame_dump import ARROW, PARQUET
from udfs.capture.request_log_head import REQUEST_LOG

CLOCKS_APART_US = 60_000_000
"""If a request log differs from packets by more than this (us), its lines are not just late: its times are local times,
or it is of another day.
"""
NO_BYTES = "Request logs do not show what traffic is missing"
MOST_FAULTS = 5
"""The most damaged places of a file that the screen names."""
MOST_LOGS, MOST_UNNAMED = 3, 3
"""The most request logs, and the most brokers without a node id, that the screen names."""


def captured_files(own_rows: OwnRows) -> DataFrame:
    """The rows of the first capture files."""
    return first_rows(own_rows(CAPTURES), MOST_LINES, CAPTURES.file_no)


def requests_by_api(own_rows: OwnRows) -> DataFrame:
    """(api_name, count, how many have a response); the most frequent comes first."""
    x = EXCHANGES
    counts = (F.count("*").alias("count"), F.count(x.response_time).alias("answered"))
    return own_rows(x).groupBy(x.api_name).agg(*counts).orderBy(F.desc("count"), x.api_name)


def quality_row(own_rows: OwnRows) -> DataFrame:
    """The row of `capture_quality` for the whole capture set."""
    q = CAPTURE_QUALITY
    return own_rows(q).where(F.col(q.connection_id).isNull())


def connections_by_protocol(own_rows: OwnRows) -> DataFrame:
    """(protocol, connections, packets seen twice, connections with only one direction and not known to be Kafka's)."""
    c = CONNECTIONS
    alone = F.col(c.one_sided) & (F.col(c.protocol) == "other")
    counts = (
        F.count("*").alias("connections"),
        F.sum(c.doubled_packets).alias(c.doubled_packets),
        F.count_if(alone).alias(c.one_sided),
    )
    return own_rows(c).groupBy(c.protocol).agg(*counts).orderBy(c.protocol)


def quarantine_by_reason(own_rows: OwnRows) -> DataFrame:
    """(reason, rows, bytes)."""
    q = QUARANTINE
    return own_rows(q).groupBy(q.reason).agg(F.count("*"), F.sum(q.bytes)).orderBy(q.reason)


def agreement_by_field(own_rows: OwnRows) -> DataFrame:
    """(field, in both, different, only in packets, only in the log, how late the log is), over all brokers."""
    a = LOG_AGREEMENT
    counts = [F.sum(column).alias(column) for column in (a.in_both, a.different, a.only_in_packets, a.only_in_log)]
    behind = F.max_by(a.log_behind_us, F.struct(F.abs(a.log_behind_us), a.log_behind_us)).alias(a.log_behind_us)
    return own_rows(a).groupBy(a.field).agg(*counts, behind).orderBy(F.desc(a.different), a.field)


def log_zones(own_rows: OwnRows) -> DataFrame:
    """(zone of times without an offset, request logs, paths of the first ones)."""
    t = CAPTURES
    paths = F.slice(F.array_sort(F.collect_list(t.path)), 1, MOST_LOGS)
    return own_rows(t).where(F.col(t.log_zone).isNotNull()).groupBy(t.log_zone).agg(F.count("*"), paths)


CONTENT_QUERIES = (
    captured_files,
    log_zones,
    requests_by_api,
    quality_row,
    connections_by_protocol,
    quarantine_by_reason,
    agreement_by_field,
)
"""The queries on the captures. They are made for every run."""


def missing_direction(findings: Findings) -> str | None:
    """Which direction the capture lacks completely, and what to do; None if it has both."""
    return one_way_text(findings.of(requests_by_api), findings.of(connections_by_protocol))


def is_of_logs(findings: Findings) -> bool:
    """Whether the captures are only request logs, which do not have the bytes of the traffic."""
    files = findings.of(captured_files)
    is_log = [row[CAPTURES.format] == REQUEST_LOG for row in files]
    return bool(files) and all(is_log) and not findings.of(quality_row)[0][CAPTURE_QUALITY.payload_bytes]


def missing_traffic(findings: Findings) -> str | None:
    """What a capture without Kafka traffic holds, and what to check; None if it has Kafka traffic."""
    if missing_direction(findings):
        return None
    return no_traffic_text(
        findings.of(captured_files), findings.of(requests_by_api), findings.of(connections_by_protocol)
    )


def read_lines(findings: Findings) -> Iterable[str]:
    """The summary's lines on what the captures hold."""
    t = CAPTURES
    for row in findings.of(captured_files):
        yield f"  {row[t.path]}: {file_contents_text(row)}"
        if row[t.clock_offset_us]:
            yield f"    capture point {row[t.point]}, its times {row[t.clock_offset_us] / 1000:+,.3f} ms"
        if row[t.doubled_packets]:
            yield f"    {row[t.doubled_packets]:,} packets twice in the file, counted once"
        yield from (
            f"    damaged: {fault}" for fault in with_rest_count(row[t.faults][:MOST_FAULTS], len(row[t.faults]))
        )
        if row[t.unread_bytes]:
            yield f"    not read: {size_text(row[t.unread_bytes])}"
    yield from (f"  {line}" for line in left_out_note(findings.of(captured_files), t))
    if doubled := sum(row[CONNECTIONS.doubled_packets] for row in findings.of(connections_by_protocol)):
        yield f"  {doubled:,} packets seen at two capture points, counted once"
    names = ", ".join(f"{row[1]:,} {row[0] or 'unknown'}" for row in findings.of(requests_by_api))
    yield f"  {quantity(sum(row[1] for row in findings.of(requests_by_api)), 'exchange')}{': ' if names else ''}{names}"
    if left_out := share_groups_text(findings.of(requests_by_api)):
        yield f"  {left_out}"


def file_contents_text(row: Row) -> str:
    """What a file holds, as text."""
    t = CAPTURES
    if row[t.log_lines]:
        again = f", {row[t.repeated_lines]:,} of them also in an earlier file" if row[t.repeated_lines] else ""
        return f"{row[t.log_lines]:,} lines of a request log{again}"
    if row[t.format] in (PARQUET, ARROW):
        wrong = f", {row[t.malformed_packets]:,} of them left out" if row[t.malformed_packets] else ""
        return f"{row[t.packets]:,} frames of a dump{wrong}, {size_text(row[t.tcp_captured_bytes])}"
    return f"{row[t.packets]:,} packets, {size_text(row[t.tcp_captured_bytes])} of TCP payload"


def lost_lines(findings: Findings) -> Iterable[str]:
    """The summary's lines on what could not be decoded."""
    q, (row,) = CAPTURE_QUALITY, findings.of(quality_row)
    parts = [f"{row['connections']:,} {row[CONNECTIONS.protocol]}" for row in findings.of(connections_by_protocol)]
    yield f"  connections: {', '.join(parts) or 'none'}"
    if alone := one_sided_text(findings.of(connections_by_protocol)):
        yield f"  {alone}"
    if lacks := missing_traffic(findings):
        yield f"  {lacks}"
    yield f"  {NO_BYTES if is_of_logs(findings) else lost_bytes_text(row)}"
    yield (
        f"  {row[q.unanswered_requests]:,} requests without response, {row[q.orphan_responses]:,} responses without "
        f"request, {row[q.cut_exchanges]:,} cut; {row[q.fetches_of_unknown_sessions]:,} of {row[q.fetches]:,} fetches "
        "in sessions from before the capture that may read more than it shows"
    )
    yield from unnamed_lines(row)
    yield from other_broker_lines(row)
    yield from (f"  quarantine: {row[1]:,} {row[0]} ({size_text(row[2])})" for row in findings.of(quarantine_by_reason))
    yield from agreement_lines(findings.of(agreement_by_field), findings.of(log_zones))


def unnamed_lines(row: Row) -> Iterable[str]:
    """Brokers whose node id is not known; the first ones with the reason and what to do. row: of `quality_row`."""
    q = CAPTURE_QUALITY
    if row[q.unnamed_connections]:
        yield (
            f"  {quantity(row[q.unnamed_connections], 'connection')} to brokers whose node id is not known, each of "
            "which counts as a broker of its own:"
        )
        yield from (f"    {line}" for line in row[q.unnamed_brokers][:MOST_UNNAMED])
        if len(row[q.unnamed_brokers]) > MOST_UNNAMED:
            yield "    ... and others, which silver/capture_quality has"


def lost_bytes_text(row: Row) -> str:
    """How many bytes are in no frame, and how many are missing. row: of `quality_row`."""
    q = CAPTURE_QUALITY
    return (
        f"{size_text(row[q.quarantined_bytes])} of {size_text(row[q.payload_bytes] - row[q.foreign_bytes])} in no "
        f"Kafka frame, {size_text(row[q.missing_bytes])} missing from the capture"
    )


def agreement_lines(rows: list[Row], zones: list[Row]) -> Iterable[str]:
    """Whether request logs agree with the packets; no lines if there is only one of the two. zones: of `log_zones`."""
    a = LOG_AGREEMENT
    late = sum(row[a.only_in_log] for row in rows if row[a.field] == EXCHANGES.status)
    for row in rows:
        if row[a.field] == REQUEST:
            differing = [f"{of[a.different]:,} {of[a.field]}" for of in rows if of is not row and of[a.different]]
            yield (
                f"  request logs: {row[a.in_both]:,} requests in both, {row[a.only_in_packets]:,} only in the packets, "
                f"{row[a.only_in_log]:,} only in the logs; different: {', '.join(differing) or 'nothing'}"
            )
            if late:
                yield f"    {late:,} of those in both were answered after the last packet of their connection"
            if abs(row[a.log_behind_us] or 0) > CLOCKS_APART_US:
                apart = f"{row[a.log_behind_us] / 1e6:+,.0f} s"
                taken = "; ".join(map(assumed_zone_text, zones))
                yield f"  a request log's clock is {apart} from that of the packets; {taken}"


def assumed_zone_text(of_zone: Row) -> str:
    """Which time zone was assumed for request logs, and how to state another one."""
    zone, files, paths = of_zone
    names = with_rest_count((PurePosixPath(path).name for path in paths), files)
    return (
        f"times without an offset in {', '.join(names)} are read in the zone {zone}, unless --log-zone states another"
    )
