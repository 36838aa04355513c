"""Batches that are split, and the estimate that fills them (KIP-126): questions 4 and 13."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.batch_split.answers import (
    MOST_SPLIT_RATE,
    is_safe,
    lanes,
    lanes_table,
    largest_safe_sizes,
    splits_nothing,
)
from jobs.replays.batch_split.ranges import SPLIT_RATE, split_ranges
from jobs.replays.ranged import Ranged, range_column, value_with_range, with_range
from jobs.report_page.question import (
    Axis,
    Findings,
    Plot,
    Question,
    Unanswered,
    lanes_table_maker,
    rows_to_compare,
    rows_to_plot,
)
from jobs.report_page.row_caps import IN_ALL, first_rows, left_out_note
from jobs.report_page.traffic import produced_codecs
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.screen import Grid, size_text
from jobs.terminal.wording import capitalized, changed_settings, client_name, duration, percent, quantity
from jobs.units import parse_bytes
from schemas.tables import algorithms
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_TIMELINE

MOST_PRODUCERS, MOST_CURVES, MOST_SPANS = 20, 4, 256
BATCH_SIZE = "batch.size"
BATCHES = ("batches", "splits")
NOT_STATED = "*"
"""The mark after a value that nobody states."""
ESTIMATE_COLUMNS = {
    "limit": "the topic's max.message.bytes",
    "ratio": "the compression ratio of the producer's batches: compressed / uncompressed bytes",
    "last estimate": "the producer's own estimate of that ratio at the end",
    "recoveries": "how often the estimate equalled the ratio again after splits",
    "mean": "the mean time from a split until then",
    "longest": "the longest such time",
}
NO_PRODUCER = (
    "The capture shows no batch that a producer sent: capture the broker's side of producers' connections with "
    "`tcpdump -s 0`."
)
NONE_REPLAYED = (
    "The capture shows no produce request of a Java client, and only the Java client's estimate and splits are "
    "replayed. Capture the broker's side of producers' connections with `tcpdump -s 0`."
)


def splitting_producers(own_rows: OwnRows) -> DataFrame:
    """The producers and topics that split most in any lane: a row for each lane, with its ranges."""
    t = BATCH_SPLIT
    key = [str(column) for column in (t.client_id, t.client_address, t.topic)]
    splits, batches = F.max(t.splits).alias("worst"), F.max(t.batches).alias("sent")
    order = (F.desc("worst"), F.desc("sent"), *map(F.col, key))
    worst = first_rows(own_rows(t).groupBy(*key).agg(splits, batches), MOST_PRODUCERS, *order)
    rows = own_rows(t).join(F.broadcast(worst), key)
    return rows.join(split_ranges(own_rows, *key, str(t.scenario)), [*key, str(t.scenario)], "left").orderBy(*order)


def worst_estimates(own_rows: OwnRows) -> DataFrame:
    """Estimate and ratio over the captured batches, for the producers and topics where they are farthest apart.

    Each producer and topic has at most MOST_SPANS rows, however many batches there are. All its rows cover about the
    same number of batches.
    """
    t = BATCH_SPLIT_TIMELINE
    key = [str(column) for column in (t.client_id, t.client_address, t.topic)]
    rows = own_rows(t).where(F.col(t.scenario) == CAPTURED_LANE)
    apart = F.sum(F.abs(F.col(t.estimated_ratio) - F.col(t.observed_ratio)) * F.col(t.batches)).alias("apart")
    worst = rows.groupBy(*key).agg(apart, F.max(t.first_batch).alias("end")).orderBy(F.desc("apart"), *key)
    farthest = rows.join(F.broadcast(worst.limit(MOST_CURVES)), key)
    span = F.floor(F.col(t.first_batch) * MOST_SPANS / (F.col("end") + 1)).alias("span")
    means = [
        (F.sum(F.col(ratio) * F.col(t.batches)) / F.sum(t.batches)).alias(ratio)
        for ratio in (t.estimated_ratio, t.observed_ratio)
    ]
    counts = [F.min(t.first_batch).alias(t.first_batch), F.sum(t.splits).alias(t.splits)]
    spans = farthest.groupBy(*key, "apart", span).agg(*counts, *means)
    return spans.orderBy(F.desc("apart"), *key, t.first_batch)


def captured_limits(own_rows: OwnRows) -> DataFrame:
    """max.message.bytes in the captured lane: one row if all topics have the same value, else two."""
    t = BATCH_SPLIT
    return own_rows(t).where(F.col(t.scenario) == CAPTURED_LANE).select(t.max_message_bytes).distinct().limit(2)


def captured_producers(findings: Findings) -> list[Row]:
    """The worst producers and topics in the captured lane."""
    return [row for row in findings.of(splitting_producers) if row[BATCH_SPLIT.scenario] == CAPTURED_LANE]


def safe_batch_size_answer(findings: Findings) -> str:
    """Question 4: the largest batch.size of the grid with few splits, and how it changes batches."""
    rows = findings.by_lane(lanes, algorithms.BATCH_SPLIT)
    if not rows:
        raise Unanswered(NONE_REPLAYED)
    captured, safest, unlike = rows[0], largest_safe_sizes(rows), unlike_captured_refusals(findings)
    bound = f"{MOST_SPLIT_RATE:.0%}".replace("%", " %")
    now = (
        f"with the captured settings the worst producer splits {split_rate_text(captured)} of its "
        f"{quantity(captured['rate_of'], 'batch', 'batches')} to a topic{unlike}"
    )
    if not safest:
        return f"{capitalized(now)}. --set=producer.batch.size=16KiB,64KiB replays which batch.size is safe."
    if unlike:
        return f"The replayed lanes show no safe batch.size: {now}."
    largest = max(safest.values())
    if not largest:
        return (
            f"None of those replayed: each splits more than {bound} of a producer's batches to a topic, or has some "
            f"fail. {capitalized(now)}."
        )
    best = next(row for row in rows if batch_size_of_lane(row) == largest and is_safe(row))
    return (
        f"Of those replayed, batch.size={largest:,}{other_settings_text(best)} is the largest with no more than "
        f"{bound} of the batches split at whatever pace. The worst producer splits {split_rate_text(best)} of "
        f"those to a topic. Batches are filled to {percent(best['fill'])} on average. {capitalized(now)}."
    )


def unlike_captured_refusals(findings: Findings) -> str:
    """Says that brokers refused batches in the capture, but the captured lane splits none; empty if that is not so."""
    refused = sum(row["refused"] for row in findings.of(produced_codecs))
    if not refused or not splits_nothing(findings.by_lane(lanes, algorithms.BATCH_SPLIT)[:1]):
        return ""
    return (
        f", though the capture has {quantity(refused, 'batch', 'batches')} refused as too large: state the batch.size, "
        "linger.ms and max.message.bytes that were in force with --captured"
    )


def split_rate_text(row: Row) -> str:
    """The split rate of a lane as text, with its range at other paces."""
    return value_with_range(row["rate"] or 0.0, row[range_column(SPLIT_RATE)], percent)


def other_settings_text(row: Row) -> str:
    """The settings of a lane other than batch.size, as text."""
    others = [
        f"{key}={value}" for key, value in changed_settings(row[BATCH_SPLIT.scenario]).items() if key != BATCH_SIZE
    ]
    return f" with {' and '.join(others)}" if others else ""


def producer_and_topic(row: Row) -> str:
    """A producer and the topic that it sends to; all tables of the replay have these columns."""
    t = BATCH_SPLIT
    return f"{client_name(row[t.client_id])} to {row[t.topic]}"


def batch_size_of_lane(row: Row) -> int | None:
    """batch.size in a lane; None if it is as captured."""
    text = changed_settings(row[BATCH_SPLIT.scenario]).get(BATCH_SIZE)
    return None if text is None else parse_bytes(text)


def rates_by_size(findings: Findings) -> Plot:
    """Split rate over batch.size, with a curve for each producer and topic."""
    t = BATCH_SPLIT
    rates: dict[tuple[str, int], Ranged] = {}
    for row in findings.of(splitting_producers):
        if (size := batch_size_of_lane(row)) is not None:
            key, rate = (
                (producer_and_topic(row), size),
                with_range(row[t.split_rate] or 0.0, row[range_column(SPLIT_RATE)]),
            )
            rates[key] = max(rates.get(key, rate), rate)
    most = list(dict.fromkeys(producer for producer, _ in rates))[:MOST_CURVES]
    rows = [
        {"size": size, "rate": rate.value, "low": rate.low, "high": rate.high, "producer": producer}
        for (producer, size), rate in rates.items()
        if producer in most
    ]
    sizes = rows_to_compare(rows, "fewer than two values of batch.size were replayed", "size")
    beside = any(other_settings_text(row) for row in findings.by_lane(lanes, algorithms.BATCH_SPLIT))
    return Plot(
        "Share of a producer's batches to a topic that are split, by "
        f"batch.size{', the highest over all other settings' if beside else ''}: the line at the captured pace, the "
        "band at other paces",
        "line", rows_to_plot(sizes, "no lane of batch.size splits any", "high"), Axis("size", "batch.size", "bytes"),
        Axis("rate", "split", "percent"), Axis("producer", "producer and topic", "name"),
    )  # fmt: skip


def estimates_answer(findings: Findings) -> str:
    """Question 13: how wrong estimates are, and how long they take to recover after a split."""
    t, rows = BATCH_SPLIT, captured_producers(findings)
    spans = findings.of(worst_estimates)
    if not rows or not spans:
        raise Unanswered(NONE_REPLAYED)
    e = BATCH_SPLIT_TIMELINE
    worst = max(worst_spans(spans), key=lambda row: abs(row[e.estimated_ratio] - row[e.observed_ratio]))
    sentence = (
        f"The estimate is farthest off for {producer_and_topic(worst)}: {worst[e.estimated_ratio]:.2f} where its "
        f"batches had {worst[e.observed_ratio]:.2f}"
    )
    back = [row for row in rows if row[t.recovery_ms_max] is not None]
    if not back:
        unlike = unlike_captured_refusals(findings)
        return f"{sentence}. With the captured settings there is no split to recover from{unlike}."
    slowest = max(back, key=lambda row: row[t.recovery_ms_max])
    still = sum(row[t.is_recovering] for row in rows)
    some = f"the {len(rows):,} that split most" if rows[0][IN_ALL] > len(rows) else f"{len(rows):,}"
    open_end = f", and {quantity(still, 'estimate')} of {some} had not recovered by the end" if still else ""
    return (
        f"{sentence}. After a split it takes up to {duration(slowest[t.recovery_ms_max])} to recover "
        f"({producer_and_topic(slowest)}){open_end}."
    )


def worst_spans(spans: Sequence[Row]) -> list[Row]:
    """The spans of the first producer and topic in `spans`: those whose estimate and ratio are farthest apart."""
    t = BATCH_SPLIT_TIMELINE
    key = (t.client_id, t.client_address, t.topic)
    return [row for row in spans if all(row[column] == spans[0][column] for column in key)]


def estimate_curves(findings: Findings) -> Plot:
    """Estimate and ratio over batches, of the producer and topic where they are farthest apart."""
    t, spans = BATCH_SPLIT_TIMELINE, rows_to_plot(findings.of(worst_estimates), "no batch was replayed")
    first = worst_spans(spans)
    rows = [
        {"batch": row[t.first_batch], "ratio": ratio, "of": of}
        for row in first
        for of, ratio in (("estimated", row[t.estimated_ratio]), ("of the batches", row[t.observed_ratio]))
    ]
    few = "it sent too few batches for a curve"
    return Plot(
        f"Compression ratio (compressed / uncompressed) over the batches of {producer_and_topic(first[0])}",
        "line", rows_to_compare(rows, few, "batch"),
        Axis("batch", "batches sent before", "count"), Axis("ratio", "compression ratio", "ratio"),
        Axis("of", "ratio", "name"),
    )  # fmt: skip


def estimates_table(findings: Findings) -> Grid:
    """A row for each producer and topic in the captured lane."""
    t = BATCH_SPLIT
    cells = [
        [
            client_name(row[t.client_id]), row[t.topic],
            size_text(row[t.batch_size]) + NOT_STATED * row[t.is_batch_size_told],
            size_text(row[t.max_message_bytes]) + NOT_STATED * row[t.is_limit_told], f"{row[t.batches]:,}",
            f"{row[t.splits]:,}",
            "-" if row[t.compression_ratio] is None else f"{row[t.compression_ratio]:.2f}",
            f"{row[t.final_estimate]:.2f}",
            f"{row[t.recoveries]:,}", duration(row[t.recovery_ms_mean]), duration(row[t.recovery_ms_max]),
        ]
        for row in captured_producers(findings)
    ]  # fmt: skip
    head = (
        "producer", "topic", "batch.size", "limit", "batches", "splits", "ratio", "last estimate", "recoveries", "mean",
        "longest",
    )  # fmt: skip
    notes = (
        "These are results of the captured lane, which is a replay too.",
        f"{NOT_STATED} after a value: nobody stated it. It is inferred from batches and brokers' responses to them.",
        *left_out_note(captured_producers(findings), t),
    )
    return Grid(head, cells, ("producer", "topic"), notes, ESTIMATE_COLUMNS)


SAFE = Question(
    number=4,
    text="What batch.size is safe for this topic's max.message.bytes?",
    about="KIP-126",
    algorithms=(algorithms.BATCH_SPLIT,),
    queries=(lanes, splitting_producers, produced_codecs),
    sentence=safe_batch_size_answer,
    plots=(rates_by_size,),
    table=lanes_table_maker(algorithms.BATCH_SPLIT, lanes, lanes_table),
    trust=BATCHES,
)
ESTIMATE = Question(
    number=13,
    text="Is my compression estimate right when topics with different data share a producer?",
    about="KIP-126",
    algorithms=(algorithms.BATCH_SPLIT,),
    queries=(lanes, splitting_producers, worst_estimates, produced_codecs),
    sentence=estimates_answer,
    plots=(estimate_curves,),
    table=estimates_table,
    trust=BATCHES,
)
