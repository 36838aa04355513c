"""The last screen of a run: what was read and lost, how far the replay can be trusted, and its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from jobs.lake import read_table, side_by_side, table_path
from jobs.units import format_bytes
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FIDELITY, GOLD, RUNS
from schemas.tables.silver import CAPTURE_QUALITY, CAPTURES, CONNECTIONS, EXCHANGES, QUARANTINE, SILVER
from schemas.tables.table import Table

MOST_LINES = 20
ANSWERS = "fetch.max.bytes (KIP-74), open loop: each captured fetch answered under other limits"
ANSWER_NOTES = (
    "  * reads that gave nothing though there was something. p99, largest: of record bytes in a response, the",
    "    worst reader's. bound: min(brokers x fetch.max.bytes, partitions x max.partition.fetch.bytes), the largest's.",
)
RowsOf = Callable[[Table], DataFrame]
"""A table's rows that belong to the run."""


@dataclass(frozen=True)
class Found:
    """What the tables hold of a run, in a few rows each."""

    captures: list[Row]
    apis: list[Row]
    quality: list[Row]
    connections: list[Row]
    quarantine: list[Row]
    fidelity: list[Row]
    lanes: list[Row]
    runs: list[Row]


def summary(spark: SparkSession, lake: str, capture_id: str, run_id: str) -> str:
    """The screen as text, from the tables alone."""
    found = look_up(spark, lake, capture_id, run_id)
    paths = (f"  {table_path(lake, table)}" for table in (*SILVER, *GOLD))
    parts = (
        ["Read", *read_lines(found)],
        ["Lost", *lost_lines(found)],
        ["Fidelity: the replay of the captured settings against the capture", *fidelity_lines(found)],
        [ANSWERS, *answer_lines(found)],
        ["Tables", *paths, f"  run {run_id}, capture {capture_id}"],
    )
    return "\n".join(line for part in parts for line in ("", *part)) + "\n"


def look_up(spark: SparkSession, lake: str, capture_id: str, run_id: str) -> Found:
    """Ask every table once, side by side."""

    def rows_of(table: Table) -> DataFrame:
        key = run_id if table.layer == "gold" else capture_id
        return read_table(spark, lake, table).where(F.col(table.replaced_by) == key)

    def answer(query: Callable[[RowsOf], DataFrame]) -> list[Row]:
        return query(rows_of).collect()

    queries = (captures, apis, quality, connections, quarantine, fidelity, lanes, runs)
    return Found(*side_by_side(spark, [partial(answer, query) for query in queries]))


def captures(rows_of: RowsOf) -> DataFrame:
    """The first files."""
    return rows_of(CAPTURES).orderBy(CAPTURES.file_no).limit(MOST_LINES)


def apis(rows_of: RowsOf) -> DataFrame:
    """(api_name, count), the most frequent first."""
    x = EXCHANGES
    return rows_of(x).groupBy(x.api_name).count().orderBy(F.desc("count"), x.api_name)


def quality(rows_of: RowsOf) -> DataFrame:
    """The row of the capture set."""
    q = CAPTURE_QUALITY
    return rows_of(q).where(F.col(q.connection_id).isNull())


def connections(rows_of: RowsOf) -> DataFrame:
    """(protocol, connections, packets seen twice)."""
    c = CONNECTIONS
    counts = (F.count("*").alias("connections"), F.sum(c.doubled_packets).alias(c.doubled_packets))
    return rows_of(c).groupBy(c.protocol).agg(*counts).orderBy(c.protocol)


def quarantine(rows_of: RowsOf) -> DataFrame:
    """(reason, rows, bytes)."""
    q = QUARANTINE
    return rows_of(q).groupBy(q.reason).agg(F.count("*"), F.sum(q.bytes)).orderBy(q.reason)


def fidelity(rows_of: RowsOf) -> DataFrame:
    """A row per reader, broker and metric."""
    return rows_of(FIDELITY)


def runs(rows_of: RowsOf) -> DataFrame:
    """The run's own row."""
    return rows_of(RUNS)


def lanes(rows_of: RowsOf) -> DataFrame:
    """A row per reader and lane."""
    c, f = FETCH_CONSUMERS, FETCH_FAIRNESS
    by_lane = rows_of(c).groupBy(c.reader, c.scenario).agg(
        F.max(c.response_bytes_p99).alias("p99"), F.max(c.response_bytes_max).alias("largest"),
        F.min(c.jain_index).alias("jain"), F.sum(c.empty_though_available).alias("empty"),
        F.sum(c.cut_tail_bytes).alias("cut"), F.max(c.memory_bound_bytes).alias("bound"),
        F.sum(c.unknown_requests).alias("unknown"),
    )  # fmt: skip
    waits = rows_of(f).groupBy(f.reader, f.scenario).agg(F.max(f.longest_wait_ms).alias("wait"))
    return by_lane.join(waits, [str(c.reader), str(c.scenario)])


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


def read_of(row: Row) -> str:
    """How much a file held."""
    t = CAPTURES
    if row[t.log_lines]:
        return f"{row[t.log_lines]:,} lines of a request log"
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
            reader, metric.replace("_", " "), f"{counts[t.checked]:,}", share(counts[t.agreed], counts[t.checked]),
            f"{counts[t.unknown]:,}",
            ", ".join(f"{count:,} {name[7:]}" for name, count in sorted(counts.items()) if name.startswith("reason ")),
        ]
        for (reader, metric), counts in sorted(by_kind.items())
    ]  # fmt: skip
    return aligned(["reader", "fetches", "checked", "equal", "unknown", "reasons"], table)


def answer_lines(found: Found) -> Iterable[str]:
    """What each lane would do to consumers and to followers."""
    c, order = FETCH_CONSUMERS, found.runs[0][RUNS.lanes]
    rows = sorted(found.lanes, key=lambda row: (row[c.reader], order.index(row[c.scenario])))
    return aligned(
        ["reader", "lane", "p99", "largest", "empty*", "longest wait", "Jain", "cut tails", "bound", "unknown"],
        distinct_lanes([answer_row(row) for row in rows]),
        ANSWER_NOTES,
    )


def answer_row(row: Row) -> list[str]:
    """One lane's cells; the reader's own settings without saying again whose they are."""
    lane = row["scenario"].replace(f"{row['reader']}.", "").replace(",", "  ")
    jain = "-" if row["jain"] is None else f"{row['jain']:.2f}"
    return [
        row["reader"], lane, size(row["p99"]), size(row["largest"]), f"{row['empty']:,}", f"{row['wait']:,.0f} ms",
        jain, size(row["cut"]), size(row["bound"]), f"{row['unknown']:,}",
    ]  # fmt: skip


def distinct_lanes(table: list[list[str]]) -> list[list[str]]:
    """Without lanes that change nothing for their reader: followers under consumers' settings, and vice versa."""
    captured = {row[0]: row[2:] for row in table if row[1] == "captured"}
    return [row for row in table if row[1] == "captured" or row[2:] != captured.get(row[0])]


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> list[str]:
    """The rows as lines of columns; numbers to the right, and no more lines than a screen has."""
    cells = [head, *rows[:MOST_LINES]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    texts = {i for i in range(len(head)) if head[i] in ("reader", "fetches", "lane", "reasons")}

    def line(row: Sequence[str]) -> str:
        padded = (c.ljust(widths[i]) if i in texts else c.rjust(widths[i]) for i, c in enumerate(row))
        return ("  " + "  ".join(padded)).rstrip()

    lines = [line(row) for row in cells]
    more = [f"  ... {len(rows) - MOST_LINES:,} more in the tables"] if len(rows) > MOST_LINES else []
    return [*lines, *more, *notes]


def share(part: int, whole: int) -> str:
    """A share in percent that says 100 only when all are."""
    if whole == 0:
        return "-"
    return "100 %" if part == whole else f"{min(100 * part / whole, 99.99):.2f} %"


def size(value: int | None) -> str:
    """Bytes with a unit, rounded for reading."""
    if value is None:
        return "-"
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            return f"{value / unit:,.1f} {name}"
    return format_bytes(value) if value == 0 else f"{value:,} B"
