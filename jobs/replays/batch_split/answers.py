"""The summary's lines on KIP-126: which batches each lane would split, and the largest batch.size that is safe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.batch_split.ranges import SPLIT_RATE, split_ranges
from jobs.replays.ranged import Ranged, range_column, value_with_range, with_range
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import BETWEEN, grid_by_lane, settings_in_name
from jobs.terminal.screen import grid_lines, rounded_size, size_text
from jobs.terminal.wording import whole_number_text
from jobs.units import parse_bytes
from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.split_reasons import SPLITS
from udfs.replay.batch_split.fidelity import Metric
from udfs.replay.batch_split.settings import BATCH_SIZE, TOPIC_LIMIT

TITLE = "batch.size and max.message.bytes (KIP-126): each producer's records sent under other settings"
MOST_SPLIT_RATE = 0.01
"""A batch.size is called safe if no producer splits a larger share of its batches of any topic than this."""
NOTES = (
    "In brackets is the range, p10 to p90, at other paces; the ranges of several producers are added up. In the lab "
    "such ranges contained 83 % of live runs with lz4 and 76 % with gzip; they should contain 80 %. A batch.size is "
    "called safe by the upper end of its range.",
    "With a shorter linger.ms than captured, the number of batches is uncertain: it depends on how long the client's "
    "threads are kept waiting.",
)
HEAD = (
    "lane", "batches", "splits", "split rate", "> limit", "recovery", "sent", "resent", "fill", "failed", "size error",
)  # fmt: skip
COLUMNS = {
    "batches": "batches sent for the first time",
    "split rate": "splits / batches, of the producer and topic with the highest rate",
    "> limit": "the share of batches that are too large when they are first sent, of the worst producer and topic",
    "recovery": "the longest time from a split until the estimate equals the batches' compression ratio again",
    "sent": "bytes of all batches, including those sent again",
    "resent": "bytes of the batches that splits make",
    "fill": "the mean size of a batch, relative to batch.size",
    "failed": "batches that are too large and are not, or cannot be, split",
    "size error": "how far the estimated sizes of batches with other records are off on average, of the worst producer "
    "and topic",
}
INFERRED_FROM = {BATCH_SIZE: "the batches sent", TOPIC_LIMIT: "brokers' responses"}
"""What shows a setting that nobody states."""
MOST_INFERRED = 6
"""The number of values of such settings that the summary names, the most frequent ones."""


def lanes(own_rows: OwnRows) -> DataFrame:
    """A row for each lane, with its ranges. rate: the highest split rate of any producer and topic; rate_of: the number
    of batches of that producer and topic.
    """
    t = BATCH_SPLIT
    worst = F.max(F.struct(t.split_rate, t.batches))
    fill = F.sum(F.col(t.fill) * F.col(t.batches)) / F.sum(F.when(F.col(t.fill).isNotNull(), F.col(t.batches)))
    rows = own_rows(t).groupBy(t.scenario).agg(
        F.sum(t.batches).alias("batches"), F.sum(t.splits).alias("splits"),
        worst[t.split_rate].alias("rate"), worst[t.batches].alias("rate_of"),
        F.max(t.over_limit_share).alias("over"), F.max(t.recovery_ms_max).alias("recovery"),
        F.sum(t.bytes_sent).alias("sent"), F.sum(t.bytes_resent).alias("resent"), fill.alias("fill"),
        F.sum(t.failed_batches).alias("failed"), F.max(t.size_error).alias("size_error"),
    )  # fmt: skip
    return rows.join(split_ranges(own_rows, str(t.scenario)), str(t.scenario), "left")


def inferred_settings(own_rows: OwnRows) -> DataFrame:
    """Settings that nobody states and the capture shows. A row for each value has the number of producers or topics
    with that value, and the first of them.
    """
    t = BATCH_SPLIT
    producer = F.concat_ws(" at ", t.client_id, t.client_address)
    captured = own_rows(t).where(F.col(t.scenario) == CAPTURED_LANE)
    settings = (
        (BATCH_SIZE, t.batch_size, t.is_batch_size_told, producer),
        (TOPIC_LIMIT, t.max_message_bytes, t.is_limit_told, F.col(t.topic)),
    )
    return reduce(DataFrame.unionAll, (
        captured.where(F.col(is_inferred)).groupBy(F.lit(setting).alias("setting"), F.col(value).alias("value")).agg(
            F.count_distinct(name).alias("count"), F.min(name).alias("first")
        )
        for setting, value, is_inferred, name in settings
    )).orderBy("setting", F.desc("count"), "value").limit(MOST_INFERRED)  # fmt: skip


def refused_unlike_replay(own_rows: OwnRows) -> DataFrame:
    """One row: the number of batches that brokers refused as too large, although the replay of the captured settings
    accepts them or does not know the size in which they were refused.
    """
    f, reasons = FIDELITY, (SPLITS.split_not_replayed, SPLITS.recompressed)
    rows = own_rows(f).where((F.col(f.algorithm) == algorithms.BATCH_SPLIT) & (F.col(f.metric) == Metric.SPLITS))
    of_row = sum((F.coalesce(F.col(f.reasons)[reason], F.lit(0)) for reason in reasons), F.lit(0))
    return rows.agg(F.coalesce(F.sum(of_row), F.lit(0)).alias("refused"))


def recompressed_topics(own_rows: OwnRows) -> DataFrame:
    """The topics whose batches brokers compress again: a row for each codec with their number and the first of them."""
    t = BATCH_SPLIT
    captured = own_rows(t).where((F.col(t.scenario) == CAPTURED_LANE) & F.col(t.stored_codec).isNotNull())
    by_codec = captured.groupBy(F.col(t.stored_codec).alias("value"))
    return by_codec.agg(F.count_distinct(t.topic).alias("count"), F.min(t.topic).alias("first")).orderBy("value")


QUERIES = {
    "lanes": lanes, "inferred": inferred_settings, "unlike": refused_unlike_replay, "recompressed": recompressed_topics,
}  # fmt: skip


def answer_lines(answers: Mapping[str, list[Row]], lane_names: Sequence[str]) -> Iterable[str]:
    """The table as lines, then the largest batch.size that is safe."""
    if not answers["lanes"]:
        yield "  no batch of a producer was captured"
        return
    yield from grid_lines(lanes_table(answers["lanes"], lane_names))
    yield from safe_lines(answers["lanes"], sum(row["refused"] for row in answers["unlike"]))
    yield from inferred_lines(answers["inferred"])
    yield from recompressed_lines(answers["recompressed"])


def answer_row(row: Row) -> list[str]:
    """One lane's cells."""
    return [
        row[BATCH_SPLIT.scenario].replace(",", BETWEEN),
        value_with_range(row["batches"], row[range_column(BATCH_SPLIT.batches)], whole_number_text),
        value_with_range(row["splits"], row[range_column(BATCH_SPLIT.splits)], whole_number_text),
        "-" if row["rate"] is None else value_with_range(row["rate"], row[range_column(SPLIT_RATE)], rate_text),
        share_or_dash(row["over"], 2),
        "-" if row["recovery"] is None else f"{row['recovery']:,.0f} ms",
        size_text(row["sent"]),
        value_with_range(row["resent"], row[range_column(BATCH_SPLIT.bytes_resent)], rounded_size),
        share_or_dash(row["fill"], 0), f"{row['failed']:,}",
        share_or_dash(row["size_error"], 1),
    ]  # fmt: skip


def rate_text(rate: float) -> str:
    """A split rate as text."""
    return share_or_dash(rate, 2)


lanes_table = partial(grid_by_lane, HEAD, answer_row, notes=NOTES, columns=COLUMNS)
"""The table with a row for each lane, from rows of `lanes` and the lanes' names in order."""


def share_or_dash(share: float | None, digits: int) -> str:
    """A share in percent; `-` if there is none, such as how full batches are with batch.size=0."""
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def safe_lines(rows: Sequence[Row], unlike: int) -> Iterable[str]:
    """The largest batch.size of the grid with few splits, for each combination of the other settings.

    unlike: the number of batches that brokers refused and that the replay of the captured settings accepts. If there
    are any and that replay splits nothing, it is not known why they were refused, and no size is called safe.
    """
    if unlike and splits_nothing([row for row in rows if row[BATCH_SPLIT.scenario] == CAPTURED_LANE]):
        yield f"  no batch.size is called safe: brokers refused {unlike:,} batches that the replay of the captured"
        yield "  settings accepts; state the batch.size, linger.ms and max.message.bytes in force with --captured"
        return
    for others, largest in largest_safe_sizes(rows).items():
        answer = f"{largest:,} bytes" if largest else "none of those replayed"
        few = f"a split rate of {share_or_dash(MOST_SPLIT_RATE, 0)} or less"
        yield f"  largest batch.size with {few}: {answer}  {others}".rstrip()


def inferred_lines(rows: Sequence[Row]) -> Iterable[str]:
    """The lines on settings that nobody states: their values, inferred from the capture."""
    for setting, source in INFERRED_FROM.items():
        values = [
            f"{row['value']:,} bytes of {first_and_others_text(row)}" for row in rows if row["setting"] == setting
        ]
        if values:
            yield f"  nobody stated {setting}: inferred from {source}, it was {', '.join(values)}"


def recompressed_lines(rows: Sequence[Row]) -> Iterable[str]:
    """Which topics brokers compress again, so that the batches they refuse are partly an estimate."""
    for row in rows:
        into = "take the compression off" if row["value"] == "none" else f"compress into {row['value']}"
        yield f"  brokers {into} whatever is produced to {first_and_others_text(row)}, and check its size again"
        if row["value"] != "none":
            yield "    that size is estimated: how many of its batches are too large is not certain"


def first_and_others_text(row: Row) -> str:
    """One of the producers or topics that have a value, and the number of others."""
    return f"{row['first']} and {row['count'] - 1:,} more" if row["count"] > 1 else str(row["first"])


def largest_safe_sizes(rows: Sequence[Row]) -> dict[str, int]:
    """For each combination of the other settings, the largest batch.size of the grid with few splits; 0 for none."""
    best: dict[str, int] = {}
    for row in rows:
        changed = settings_in_name(row[BATCH_SPLIT.scenario])
        if BATCH_SIZE in changed:
            others = BETWEEN.join(f"{key}={value}" for key, value in sorted(changed.items()) if key != BATCH_SIZE)
            best[others] = max(best.get(others, 0), parse_bytes(changed[BATCH_SIZE]) if is_safe(row) else 0)
    return dict(sorted(best.items()))


def splits_nothing(rows: Sequence[Row]) -> bool:
    """Whether these lanes split no batch and fail none."""
    return not any(row["splits"] + row["failed"] for row in rows)


def is_safe(row: Row) -> bool:
    """Whether a lane splits few batches at any pace, and fails none."""
    return bool(split_rate(row).high <= MOST_SPLIT_RATE and not row["failed"])


def split_rate(row: Row) -> Ranged:
    """The split rate of a lane, with its range at other paces."""
    return with_range(row["rate"] or 0.0, row[range_column(SPLIT_RATE)])
