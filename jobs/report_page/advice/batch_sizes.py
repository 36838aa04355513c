"""Advice on producers' batch.size (KIP-126), client by client."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.find.scopes import Scope
from jobs.replays.algorithm import OwnRows
from jobs.replays.batch_split.answers import MOST_SPLIT_RATE, is_safe, split_rate
from jobs.replays.batch_split.ranges import SPLIT_RATE, split_ranges
from jobs.replays.ranged import NO_DIFFERENCE, is_surely_larger
from jobs.report_page.advice.client_rows import MOST_CLIENTS, rows_by_client, rows_of_first_clients, with_fidelity
from jobs.report_page.advice.in_force import confidence_of_client, value_in_force
from jobs.report_page.advice.recommendation import Effect, InForce, Recommendation
from jobs.report_page.batch_split.splits import split_rate_text, unlike_captured_refusals
from jobs.report_page.lane_labels import can_be_set
from jobs.report_page.question import Findings
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import setting_of
from jobs.terminal.lane_rows import SCENARIO, in_lane_order, settings_in_name
from jobs.terminal.wording import percent, quantity
from schemas.tables import algorithms
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.values import CHANGE, INFERRED, KEEP, OF_CLIENT, PRODUCER, STATED, WITHHELD
from udfs.replay.batch_split.settings import BATCH_SIZE

MOST_SIZES = 5
FEW = percent(MOST_SPLIT_RATE)


def split_producers(own_rows: OwnRows) -> DataFrame:
    """A row for each lane of the clients that split most in the captured lane. `rate`: the split rate of the client's
    worst topic.
    """
    t = BATCH_SPLIT
    rows = own_rows(t).groupBy(t.client_id, t.scenario).agg(
        F.max(t.split_rate).alias("rate"), F.sum(t.batches).alias(t.batches), F.sum(t.failed_batches).alias("failed"),
        F.max(t.batch_size).alias(t.batch_size), F.max(t.is_batch_size_told).alias(t.is_batch_size_told),
    )  # fmt: skip
    key = [str(t.client_id), str(t.scenario)]
    within = rows.join(split_ranges(own_rows, *key), key, "left")
    first = rows_of_first_clients(within, F.desc("failed"), F.desc("rate"), F.desc(t.batches))
    return with_fidelity(first, own_rows, algorithms.BATCH_SPLIT, PRODUCER)


def split_topics(own_rows: OwnRows) -> DataFrame:
    """(topic, sizes, is_told, max_message_bytes) of the topics with most splits in the captured lane: the values of
    batch.size of those who produce to a topic, and the topic's limit.
    """
    t = BATCH_SPLIT
    rows = own_rows(t).where(F.col(t.scenario) == CAPTURED_LANE).groupBy(t.topic).agg(
        F.slice(F.array_sort(F.collect_set(t.batch_size)), 1, MOST_SIZES).alias("sizes"),
        F.max(t.is_batch_size_told).alias("is_told"), F.max(t.max_message_bytes).alias(t.max_message_bytes),
        F.max(t.split_rate).alias(t.split_rate),
    )  # fmt: skip
    return rows.orderBy(F.desc_nulls_last(t.split_rate), t.topic).limit(MOST_CLIENTS).drop(t.split_rate)


def advise_batch_sizes(findings: Findings) -> Iterable[Recommendation]:
    """The advice for each producer: to keep its batch.size if few of its batches are split, else to set the largest
    replayed value with which few are split.
    """
    rows = in_lane_order(findings.of(split_producers), findings.lanes.get(algorithms.BATCH_SPLIT, ()))
    for client, of_client in rows_by_client(rows).items():
        yield from batch_size_advice(findings, Scope(OF_CLIENT, client), [row for row in of_client if can_be_set(row)])


def batch_size_advice(findings: Findings, scope: Scope, rows: Sequence[Row]) -> Iterable[Recommendation]:
    """The advice for one producer. rows: its lanes, the captured one first."""
    captured, now = rows[0], batch_size_in_force(rows[0])
    advice = partial(Recommendation, algorithms.BATCH_SPLIT, scope, sure=confidence_of_client(captured))
    if unlike := unlike_captured_refusals(findings):
        why = f"The replay splits none of its batches{unlike}."
        yield advice(BATCH_SIZE, WITHHELD, now, None, reason=why)
        return
    if splits_few(captured):
        why = f"{split_rate_text(captured)} of its batches are split; up to {FEW} is fine."
        yield advice(BATCH_SIZE, KEEP, now, now.value, reason=why)
        return
    safe = [row for row in rows[1:] if is_safe(row) and BATCH_SIZE in settings_in_name(row[SCENARIO])]
    better = [row for row in safe if captured["failed"] or is_surely_larger(split_rate(captured), split_rate(row))]
    if not better:
        few = f"no replayed batch.size has {FEW} or less at whatever pace: replay smaller ones"
        why = f"{splits_text(captured)}, and {f'of the smaller ones {NO_DIFFERENCE}' if safe else few}."
        yield advice(BATCH_SIZE, WITHHELD, now, None, reason=why)
        return
    best = min(
        better, key=lambda row: (-row[BATCH_SPLIT.batch_size], len(settings_in_name(row[SCENARIO])), row["batches"])
    )
    for key, text in settings_in_name(best[SCENARIO]).items():
        yield advice(
            key, CHANGE, now if key == BATCH_SIZE else value_in_force(findings, key), str(setting_of(key).parse(text)),
            gain=fewer_splits(captured, best), cost=more_batches(captured, best),
            reason=f"It is the largest replayed batch.size that splits {FEW} of the batches or less at whatever pace.",
        )  # fmt: skip


def batch_size_in_force(captured: Row) -> InForce:
    """The batch.size in force: the stated one, else the one that follows from the batches."""
    t = BATCH_SPLIT
    return InForce(str(captured[t.batch_size]), INFERRED if captured[t.is_batch_size_told] else STATED)


def splits_few(captured: Row) -> bool:
    """Whether few batches are split at the captured pace, and no batch fails."""
    return bool((captured["rate"] or 0.0) <= MOST_SPLIT_RATE and not captured["failed"])


def splits_text(row: Row) -> str:
    """How many batches are split, or fail, as text."""
    text = f"{split_rate_text(row)} of batches split"
    return f"{text}, {quantity(row['failed'], 'batch fails', 'batches fail')}" if row["failed"] else text


def fewer_splits(captured: Row, best: Row) -> Effect:
    """How many fewer batches are split."""
    text = f"{splits_text(captured)} -> {split_rate_text(best)}"
    before, after = split_rate(captured), split_rate(best)
    return Effect(
        text, SPLIT_RATE, captured["rate"], best["rate"], (before.low, before.high), (after.low, after.high)
    )  # fmt: skip


def more_batches(captured: Row, best: Row) -> Effect:
    """How many more batches are sent."""
    before, after = captured[BATCH_SPLIT.batches], best[BATCH_SPLIT.batches]
    more = after / before - 1 if before else 0.0
    text = f"{percent(abs(more))} {'more' if more >= 0 else 'fewer'} batches" if after != before else "as many batches"
    return Effect(text, str(BATCH_SPLIT.batches), before, after)
