"""What bounds memory while a backlog is read (KIP-74): question 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.fetch_max_bytes.answers import closed_lanes
from jobs.replays.fetch_max_bytes.ranges import catch_up_time, held_caveats, held_text, table_caveats
from jobs.replays.ranged import NO_DIFFERENCE, NOT_READ, are_apart, time_with_range
from jobs.report_page.fetch_max_bytes.fairness import (
    MOST_PLOTTED,
    NO_OTHER_LIMITS,
    captured_row_with_records,
    consumers_in_closed_loop,
    consumers_under_limits,
)
from jobs.report_page.lane_labels import own_labels
from jobs.report_page.question import Axis, Findings, Plot, Question, Unplotted, rows_to_compare, rows_to_plot
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import TRIES
from jobs.terminal.screen import Grid, size_text
from jobs.terminal.wording import capitalized, client_name, lane_heading, lane_label, lane_phrase, quantity
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_MEMORY, FETCH_TIMELINE
from schemas.tables.values import CONSUMER
from udfs.replay.fetch_max_bytes.rows import CLOSED_LOOP

MOST_LANES, MOST_ROWS = 6, 20_000
NO_LAG = "no consumer lagged for longer than one time bucket"
NOT_ALWAYS_READ = "no lane reads a backlog to its end at every pace"
HELD_NOTE = "Each column shows the worst consumer. In brackets is the range, p10 to p90, at other paces."
HELD_COLUMNS = {
    "catch-up": "the time from the first fetch of a partition, which may be later than its consumer's first fetch, "
    "until its backlog is read",
    "held": "the most record bytes that the consumer has received and the application has not taken yet",
}
OWN_TIME = Axis("since", "time since its first fetch, long breaks left out", "ms")


def backlog_over_time(own_rows: OwnRows) -> DataFrame:
    """The bytes that the consumer that lags most in the captured lane has not yet read, in every lane of the closed
    loop, and whether it read all.
    """
    t, c = FETCH_TIMELINE, FETCH_CONSUMERS
    key = [str(t.client_id), str(t.client_address)]
    rows = own_rows(t).where(F.col(t.reader) == CONSUMER).join(F.broadcast(lagging_consumer(own_rows)), key)
    by_time = rows.groupBy(*key, t.scenario, t.bucket, t.bucket_ms).agg(F.sum(t.lag_bytes).alias("lag"))
    in_closed_loop = own_rows(c).where((F.col(c.mode) == CLOSED_LOOP) & (F.col(c.reader) == CONSUMER))
    read_all = in_closed_loop.select(*key, c.scenario, c.read_all)
    lanes_whole = (F.col(t.scenario) != CAPTURED_LANE, F.col(t.scenario), F.col(t.bucket))
    return by_time.join(read_all, [*key, str(t.scenario)]).orderBy(*lanes_whole).limit(MOST_ROWS)


def held_over_time(own_rows: OwnRows) -> DataFrame:
    """What the consumer that lags most in the captured lane holds: a row for each lane, with the most bytes in each
    bucket of time.
    """
    m = FETCH_MEMORY
    key = [str(m.client_id), str(m.client_address)]
    rows = own_rows(m).where(F.col(m.reader) == CONSUMER).join(F.broadcast(lagging_consumer(own_rows)), key)
    return rows.select(*key, m.scenario, m.held_bytes)


def lagging_consumer(own_rows: OwnRows) -> DataFrame:
    """(client_id, client_address) of the consumer that lags most in the captured lane; no row if none ever lags."""
    t = FETCH_TIMELINE
    key = [str(t.client_id), str(t.client_address)]
    captured = own_rows(t).where((F.col(t.reader) == CONSUMER) & (F.col(t.scenario) == CAPTURED_LANE))
    lags = captured.groupBy(*key, t.bucket).agg(F.sum(t.lag_bytes).alias("lag"))
    return lags.groupBy(*key).agg(F.max("lag").alias("most")).orderBy(F.desc("most"), *key).limit(1).select(*key)


def catch_up_answer(findings: Findings) -> str:
    """Question 6: what bounds memory while a backlog is read."""
    rows = consumers_under_limits(findings)
    captured = captured_row_with_records(rows)
    took = "not read to its end" if captured["never"] else f"read in {catch_up_time_text(captured)}"
    caveats = "".join(f". {capitalized(caveat)}" for caveat in held_caveats(rows))
    text = (
        f"Replayed as captured, the slowest backlog is {took}{given_up_backlogs_text(captured)}. A consumer holds up "
        f"to {held_text(captured)} of records meanwhile{caveats}. It can hold at most "
        f"{size_text(captured['own_bound'])}, unless one batch is larger than that or it is a Java client before 4.0"
    )
    done = [row for row in rows if not row["never"]]
    fastest = min(done, key=lambda row: (row["took"], row["held"]), default=captured)
    if len(rows) < 2:
        return f"{text}. --set={TRIES[algorithms.FETCH_MAX_BYTES]} tries other limits."
    if fastest["scenario"] == CAPTURED_LANE:
        return f"{text}. No other replayed lane is faster."
    other = capitalized(lane_phrase(fastest["scenario"]))
    alike = "" if are_apart(catch_up_time(fastest), catch_up_time(captured)) else f", {NO_DIFFERENCE}"
    return f"{text}. {other} it takes {catch_up_time_text(fastest)}{alike}, and {held_text(fastest)}."


def catch_up_time_text(row: Row) -> str:
    """How long the slowest backlog of a lane takes, as text, with its range at other paces."""
    return time_with_range(row["took"], row["catch_up_ms_range"])


def catch_up_by_lane(findings: Findings) -> Plot:
    """How long the slowest backlog takes in each lane, with the range at other paces."""
    rows = [row for row in consumers_under_limits(findings) if catch_up_time(row).high < inf][:MOST_PLOTTED]
    marks = [
        {"lane": lane_label(row["scenario"]), "took": took.value, "low": took.low, "high": took.high}
        for row, took in zip(rows, map(catch_up_time, rows), strict=True)
    ]
    return Plot(
        "Time until the slowest backlog of a consumer is read: the mark at the captured pace, the band at other paces",
        "interval", rows_to_compare(rows_to_plot(marks, NOT_ALWAYS_READ, "high"), NO_OTHER_LIMITS, "lane"),
        Axis("took", "catch-up", "ms"), Axis("lane", lane_heading([row["scenario"] for row in rows]), "name"),
    )  # fmt: skip


def given_up_backlogs_text(row: Row) -> str:
    """Which backlogs do not count in the time of a lane, as text."""
    if not row["given_up"]:
        return ""
    return f" (without {quantity(row['given_up'], 'backlog')} that a consumer left before the end)"


def lag_curves(findings: Findings) -> Plot:
    """A curve for each lane: bytes at the end of each bucket, until all is read in every lane, or it was cut off."""
    t, names = FETCH_TIMELINE, list(findings.lanes.get(algorithms.FETCH_MAX_BYTES, ()))
    spans = lagging_spans(findings)
    lags = {(row[t.scenario], row[t.bucket]): row["lag"] for row in spans}
    whole = dict.fromkeys((row[t.scenario] for row in spans), buckets_until_read(findings))
    cut_off = {row[t.scenario]: row[t.bucket] + 1 for row in spans if row["lag"] and not row[FETCH_CONSUMERS.read_all]}
    ends = whole | cut_off
    # A bucket in which there was nothing to read has no row.
    curves = {lane: [lags.get((lane, bucket), 0) for bucket in range(ends[lane])] for lane in names if lane in ends}
    label = own_labels(findings, lanes_with_distinct_curves(curves), "consumers")
    rows = marks_over_time(
        {label[lane]: [(at + 1, lag) for at, lag in enumerate(curves[lane])] for lane in label}, findings
    )
    return Plot(
        f"Record bytes not yet read by {client_name(spans[0][t.client_id])}, the consumer that lags most, "
        "in closed loop",
        "line", rows, OWN_TIME, Axis("bytes", "bytes not yet read", "bytes"),
        Axis("lane", lane_heading([*label.values()]), "name"),
    )  # fmt: skip


def held_curves(findings: Findings) -> Plot:
    """A curve for each lane: the most bytes held in each bucket, until the backlog is read in every lane."""
    m, names = FETCH_MEMORY, list(findings.lanes.get(algorithms.FETCH_MAX_BYTES, ()))
    lagging_spans(findings)
    held = {row[m.scenario]: row for row in findings.of(held_over_time)}
    end = buckets_until_read(findings)
    curves = {lane: [*held[lane][m.held_bytes], *[0] * (end + 1)][: end + 1] for lane in names if lane in held}
    label = own_labels(findings, lanes_with_distinct_curves(curves), "consumers")
    rows = marks_over_time({label[lane]: list(enumerate(curves[lane])) for lane in label}, findings)
    whose = client_name(next(iter(held.values()))[m.client_id])
    return Plot(
        f"Record bytes that {whose} holds meanwhile: received, not yet taken by the application",
        "step", rows, OWN_TIME, Axis("bytes", "bytes held", "bytes"),
        Axis("lane", lane_heading([*label.values()]), "name"),
    )  # fmt: skip


def lagging_spans(findings: Findings) -> list[Row]:
    """The rows of the backlog over time. Raises Unplotted if they are too few for a curve."""
    if last_lagging_bucket(findings) < 1:
        raise Unplotted(NO_LAG)
    return findings.of(backlog_over_time)


def last_lagging_bucket(findings: Findings) -> int:
    """The last bucket at whose end the consumer that lags most still has something to read in any lane; -1 for none."""
    return max((row[FETCH_TIMELINE.bucket] for row in findings.of(backlog_over_time) if row["lag"]), default=-1)


def buckets_until_read(findings: Findings) -> int:
    """The number of buckets after which the consumer that lags most has read everything in every lane."""
    return last_lagging_bucket(findings) + 2


def marks_over_time(curves: Mapping[str, Sequence[tuple[int, int]]], findings: Findings) -> list[dict[str, object]]:
    """Marks of (bucket, bytes) by lane."""
    (bucket_ms,) = {row[FETCH_TIMELINE.bucket_ms] for row in findings.of(backlog_over_time)}
    return [
        {"lane": lane_label(lane), "since": bucket * bucket_ms, "bytes": count}
        for lane, curve in curves.items()
        for bucket, count in curve
    ]


def lanes_with_distinct_curves(curves: Mapping[str, Sequence[object]]) -> list[str]:
    """The first lanes with different curves. Limits that nothing reaches give equal curves."""
    first = {tuple(curve): lane for lane, curve in reversed(list(curves.items()))}
    return [lane for lane in curves if lane in first.values()][:MOST_LANES]


def held_table(findings: Findings) -> Grid:
    """The lanes of the closed loop, with the times to catch up and the memory."""
    rows = consumers_in_closed_loop(findings)
    cells = [
        [
            lane_label(row["scenario"]), NOT_READ if row["never"] else catch_up_time_text(row), held_text(row),
            size_text(row["bound"]), f"{row['requests']:,}",
        ]
        for row in rows
    ]  # fmt: skip
    head = (lane_heading(findings.lanes[algorithms.FETCH_MAX_BYTES]), "catch-up", "held", "KIP-74 bound", "fetches")
    return Grid(head, cells, head[:1], (HELD_NOTE, *table_caveats(rows)), HELD_COLUMNS)


CATCH_UP = Question(
    number=6,
    text="Lag grows and memory explodes at catch-up: what bounds it?",
    about="KIP-74",
    algorithms=(algorithms.FETCH_MAX_BYTES,),
    queries=(closed_lanes, backlog_over_time, held_over_time),
    sentence=catch_up_answer,
    plots=(lag_curves, held_curves, catch_up_by_lane),
    table=held_table,
    trust=("closed_loop_bytes", "closed_loop_catch_up"),
)
