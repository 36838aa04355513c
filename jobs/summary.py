"""The last screen of a run: what was read and lost, how far the replay can be trusted, and its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from jobs.algorithm import OwnRows
from jobs.algorithms import ALGORITHMS
from jobs.lake import rows_of, side_by_side, table_path
from jobs.log_agreement import REQUEST
from jobs.replay import Replayed
from jobs.run import Run
from jobs.screen import MOST_LINES, aligned, share, size
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import (
    CAPTURE_QUALITY,
    CAPTURES,
    CONNECTIONS,
    EXCHANGES,
    LOG_AGREEMENT,
    QUARANTINE,
    SILVER,
)
from schemas.tables.table import Table

CLOCKS_APART_US = 60_000_000
"""Farther apart, a request log is not just late: it is in local time, or of another day."""


@dataclass(frozen=True)
class Found:
    """What the tables hold of a run, in a few rows each."""

    answers: dict[str, dict[str, list[Row]]]
    captures: list[Row]
    apis: list[Row]
    quality: list[Row]
    connections: list[Row]
    quarantine: list[Row]
    agreement: list[Row]
    fidelity: list[Row]


def summary(spark: SparkSession, run: Run, capture_id: str, done: Replayed) -> str:
    """The screen as text, from the tables alone."""
    found = look_up(spark, run.lake, capture_id, done)
    tables = (
        *SILVER,
        FIDELITY,
        *(table for algorithm in done.algorithms for table in algorithm.tables),
        RUNS,
        GATE_RESULTS,
    )
    parts = [
        ["Read", *read_lines(found), *kafka_lines(done)],
        ["Lost", *lost_lines(found)],
        ["Fidelity: the replay of the captured settings against the capture", *fidelity_lines(found)],
    ]
    for algorithm in done.algorithms:
        lanes = [lane.name for lane in run.scenario.lanes(algorithm.name)]
        parts.append([algorithm.title, *algorithm.lines(found.answers[algorithm.name], lanes)])
    parts += [[ALGORITHMS[name].title, f"  {told}"] for name, told in done.refused.items()]
    paths = (f"  {table_path(run.lake, table)}" for table in tables)
    parts.append(["Tables", *paths, f"  run {done.run_id}, capture {capture_id}"])
    return "\n".join(line for part in parts for line in ("", *part)) + "\n"


def look_up(spark: SparkSession, lake: str, capture_id: str, done: Replayed) -> Found:
    """Ask every table once, side by side."""

    def own_rows(table: Table) -> DataFrame:
        return rows_of(spark, lake, table, done.run_id if table.layer == "gold" else capture_id)

    def answer(query: Callable[[OwnRows], DataFrame]) -> list[Row]:
        return query(own_rows).collect()

    always = (captures, apis, quality, connections, quarantine, agreement, fidelity)
    of_algorithms = [(algorithm.name, *asks) for algorithm in done.algorithms for asks in algorithm.queries.items()]
    queries = [*always, *(query for _, _, query in of_algorithms)]
    rows = side_by_side(spark, [partial(answer, query) for query in queries])
    answers: dict[str, dict[str, list[Row]]] = {algorithm.name: {} for algorithm in done.algorithms}
    for (name, asks, _), found in zip(of_algorithms, rows[len(always) :], strict=True):
        answers[name][asks] = found
    return Found(answers, *rows[: len(always)])


def captures(own_rows: OwnRows) -> DataFrame:
    """The first files."""
    return own_rows(CAPTURES).orderBy(CAPTURES.file_no).limit(MOST_LINES)


def apis(own_rows: OwnRows) -> DataFrame:
    """(api_name, count), the most frequent first."""
    x = EXCHANGES
    return own_rows(x).groupBy(x.api_name).count().orderBy(F.desc("count"), x.api_name)


def quality(own_rows: OwnRows) -> DataFrame:
    """The row of the capture set."""
    q = CAPTURE_QUALITY
    return own_rows(q).where(F.col(q.connection_id).isNull())


def connections(own_rows: OwnRows) -> DataFrame:
    """(protocol, connections, packets seen twice)."""
    c = CONNECTIONS
    counts = (F.count("*").alias("connections"), F.sum(c.doubled_packets).alias(c.doubled_packets))
    return own_rows(c).groupBy(c.protocol).agg(*counts).orderBy(c.protocol)


def quarantine(own_rows: OwnRows) -> DataFrame:
    """(reason, rows, bytes)."""
    q = QUARANTINE
    return own_rows(q).groupBy(q.reason).agg(F.count("*"), F.sum(q.bytes)).orderBy(q.reason)


def agreement(own_rows: OwnRows) -> DataFrame:
    """(field, in both, different, only in packets, only in the log, how far the log is behind), of all brokers."""
    a = LOG_AGREEMENT
    counts = [F.sum(column).alias(column) for column in (a.in_both, a.different, a.only_in_packets, a.only_in_log)]
    behind = F.max_by(a.log_behind_us, F.abs(a.log_behind_us)).alias(a.log_behind_us)
    return own_rows(a).groupBy(a.field).agg(*counts, behind).orderBy(F.desc(a.different), a.field)


def fidelity(own_rows: OwnRows) -> DataFrame:
    """A row per reader, broker and metric."""
    return own_rows(FIDELITY).orderBy(FIDELITY.algorithm, FIDELITY.reader, FIDELITY.metric)


def read_lines(found: Found) -> Iterable[str]:
    """What the captures held."""
    t = CAPTURES
    for row in found.captures:
        yield f"  {row[t.path]}: {read_of(row)}"
        if row[t.clock_offset_us]:
            yield f"    capture point {row[t.point]}, its times {row[t.clock_offset_us] / 1000:+,.3f} ms"
        if row[t.doubled_packets]:
            yield f"    {row[t.doubled_packets]:,} packets twice in the file, counted once"
        yield from (f"    damaged: {fault}" for fault in row[t.faults])
    if doubled := sum(row[CONNECTIONS.doubled_packets] for row in found.connections):
        yield f"  {doubled:,} packets seen at two capture points, counted once"
    names = ", ".join(f"{row[1]:,} {row[0] or 'unknown'}" for row in found.apis)
    yield f"  {sum(row[1] for row in found.apis):,} exchanges: {names}"


def kafka_lines(done: Replayed) -> Iterable[str]:
    """The release that is replayed, where the capture tells it."""
    if done.kafka is not None:
        yield f"  kafka: {done.kafka}"


def read_of(row: Row) -> str:
    """How much a file held."""
    t = CAPTURES
    if row[t.log_lines]:
        again = f", {row[t.repeated_lines]:,} of them in a file before it" if row[t.repeated_lines] else ""
        return f"{row[t.log_lines]:,} lines of a request log{again}"
    return f"{row[t.packets]:,} packets, {size(row[t.tcp_captured_bytes])} of TCP payload"


def lost_lines(found: Found) -> Iterable[str]:
    """What of it could not be decoded."""
    q, (row,) = CAPTURE_QUALITY, found.quality
    yield "  connections: " + ", ".join(f"{count:,} {protocol}" for protocol, count, _ in found.connections)
    yield (
        f"  {size(row[q.quarantined_bytes])} of {size(row[q.payload_bytes] - row[q.foreign_bytes])} in no Kafka frame, "
        f"{size(row[q.missing_bytes])} missing from the capture"
    )
    yield (
        f"  {row[q.unanswered_requests]:,} requests without response, {row[q.orphan_responses]:,} responses without "
        f"request, {row[q.cut_exchanges]:,} cut; {row[q.fetches_of_unknown_sessions]:,} of {row[q.fetches]:,} fetches "
        "in sessions from before the capture"
    )
    yield from (f"  quarantine: {row[1]:,} {row[0]} ({size(row[2])})" for row in found.quarantine)
    yield from agreement_lines(found.agreement)


def agreement_lines(agreement: list[Row]) -> Iterable[str]:
    """Whether request logs say what the packets do; nothing where there is one of both only."""
    a = LOG_AGREEMENT
    for row in agreement:
        if row[a.field] == REQUEST:
            differing = [f"{of[a.different]:,} {of[a.field]}" for of in agreement if of is not row and of[a.different]]
            yield (
                f"  request logs: {row[a.in_both]:,} requests in both, {row[a.only_in_packets]:,} only in the packets, "
                f"{row[a.only_in_log]:,} only in the logs; different: {', '.join(differing) or 'nothing'}"
            )
            if abs(row[a.log_behind_us] or 0) > CLOCKS_APART_US:
                apart = f"{row[a.log_behind_us] / 1e6:+,.0f} s"
                yield f"  a request log's clock is {apart} from that of the packets; its times are taken to be UTC"


def fidelity_lines(found: Found) -> Iterable[str]:
    """How often the captured settings give what was captured."""
    t = FIDELITY
    by_kind: dict[tuple[str, str], Counter[str]] = {}
    for row in found.fidelity:
        counts = by_kind.setdefault((row[t.reader], row[t.metric]), Counter())
        counts.update({name: row[name] for name in (t.checked, t.agreed, t.unknown)})
        counts.update({f"reason {reason}": count for reason, count in row[t.reasons].items()})
    table = [
        [
            reader or "-", metric.replace("_", " "), f"{counts[t.checked]:,}",
            share(counts[t.agreed], counts[t.checked]), f"{counts[t.unknown]:,}",
            ", ".join(f"{count:,} {name[7:]}" for name, count in sorted(counts.items()) if name.startswith("reason ")),
        ]
        for (reader, metric), counts in by_kind.items()
    ]  # fmt: skip
    return aligned(["reader", "what", "checked", "equal", "unknown", "reasons"], table, ("reader", "what", "reasons"))
