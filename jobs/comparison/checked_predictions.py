"""Checks predictions: compares what the tables of an earlier run predicted with what the tables of a later run show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from jobs.comparison.figure_rows import METRIC, NUMBERS, SCOPE, SIDES, Columns, figure_rows, share_columns
from jobs.comparison.figures import Figure
from jobs.comparison.named_runs import ComparedRun
from jobs.comparison.outcome_figures import (
    fetch_outcomes,
    rows_in_captured_lane,
    session_shares,
    session_sums,
    split_outcomes,
)
from jobs.comparison.predictions import (
    BY_CAPTURE,
    BY_REPLAY,
    InForce,
    Prediction,
    lane_in_force,
    lane_values,
    settings_in_force,
)
from jobs.comparison.traffic_figures import CLIENT, LIMITS, first_values_text, limits_by_client
from jobs.replays.algorithm import OwnRows
from jobs.report_page.row_caps import IN_ALL, first_rows
from jobs.report_page.traffic import batches_of_producers, fetch_exchanges
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import SCENARIO
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_FAIRNESS, RUNS
from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.values import CONSUMER, OF_CLUSTER
from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.replay.fetch_max_bytes.rows import OPEN_LOOP

MOST_CLIENTS = 100
"""At most this many clients are checked. Those whose settings changed come first."""
WAIT = "longest_wait_ms"
SPLITS: Mapping[str, str] = {
    "producer.batch.size": BATCH_SPLIT.batch_size,
    "topic.max.message.bytes": BATCH_SPLIT.max_message_bytes,
}
"""The column with the value in force of a setting of producers or topics, by setting."""
Figures = Mapping[tuple[str, str], Figure]
"""Figures by scope and metric."""


@dataclass(frozen=True)
class CheckedPredictions:
    """The predictions of some replays, with the later figures.

    without_lane: how many clients have settings that no lane of the earlier run had, so that nothing was predicted.
    left_out: how many clients were not checked.
    """

    predictions: tuple[Prediction, ...] = ()
    without_lane: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class ClientLane:
    """The lane of the earlier run that predicts a client: its settings are in force in the later run.

    scope: the client, empty for the whole cluster. lane: None if no lane has these settings. is_changed: the client
    had other settings in the earlier run.
    """

    scope: str
    lane: str | None
    is_changed: bool


@dataclass(frozen=True)
class LaterFigures:
    """The figures that predictions are checked against: those of the later capture itself, and those of its replay in
    the captured lane.
    """

    by_capture: Figures
    by_replay: Figures

    def figure_of(self, scope: str, metric: str) -> tuple[str, Figure] | None:
        """(BY_CAPTURE or BY_REPLAY, the figure): the capture's own if it shows one; None if neither has it."""
        for seen_by, figures in ((BY_CAPTURE, self.by_capture), (BY_REPLAY, self.by_replay)):
            if (scope, metric) in figures:
                return seen_by, figures[scope, metric]
        return None


def checked_fetches(before: ComparedRun, after: ComparedRun) -> CheckedPredictions:
    """The predictions of waits, catch-up and memory, for clients in both captures."""
    f, algorithm = FETCH_PARTITIONS, algorithms.FETCH_MAX_BYTES
    keys = [str(f.client_id), str(f.reader)]
    clients = clients_of_both([limits_by_client(run.own_rows) for run in (before, after)], keys)
    rows = clients.collect()
    client_lanes = [*client_lanes_of(algorithm, before, after, rows, LIMITS)]
    predicted = collect_figures(fetch_outcomes(before.own_rows, is_in_own_lane(client_lanes, str(f.client_id))))
    by_replay = collect_figures(
        fetch_outcomes(
            after.own_rows, is_of_clients(client_lanes, str(f.client_id)) & (F.col(SCENARIO) == CAPTURED_LANE)
        )
    )
    by_capture = collect_figures(captured_waits(after.own_rows, client_lanes))
    predictions = predictions_with_outcome(algorithm, client_lanes, predicted, LaterFigures(by_capture, by_replay))
    return CheckedPredictions(predictions, clients_without_lane(client_lanes), clients_left_out(rows))


def captured_waits(own_rows: OwnRows, client_lanes: Sequence[ClientLane]) -> DataFrame:
    """Figures of each client's longest wait in the capture: that of the open loop in the captured lane."""
    t = FETCH_FAIRNESS
    rows = rows_in_captured_lane(own_rows(t)).where(
        (F.col(t.mode) == OPEN_LOOP) & is_of_clients(client_lanes, str(t.client_id))
    )
    waits = rows.groupBy(t.client_id).agg(F.max(t.longest_wait_ms).alias(WAIT))
    return figure_rows(waits, CLIENT, str(t.client_id), {WAIT: Columns(F.col(WAIT))})


def checked_sessions(before: ComparedRun, after: ComparedRun) -> CheckedPredictions:
    """The predictions of full fetches, refused and lost sessions of the cluster."""
    c, algorithm = SESSION_CACHE, algorithms.SESSION_CACHE
    was, now = (in_force_in_run(algorithm, run, {}) for run in (before, after))
    lane = lane_in_force(settings_by_lane(before, algorithm), was, now)
    if lane is None:
        return CheckedPredictions(without_lane=1)
    rows = before.own_rows(c).where(F.col(SCENARIO) == lane).agg(*session_sums())
    predicted = collect_figures(figure_rows(rows, OF_CLUSTER, F.lit(""), session_shares()))
    whole_cluster = [ClientLane("", lane, was != now)]
    figures_after = LaterFigures(by_capture=collect_figures(captured_sessions(after.own_rows)), by_replay={})
    return CheckedPredictions(
        predictions_with_outcome(algorithm, whole_cluster, predicted, figures_after, kind=OF_CLUSTER)
    )


def captured_sessions(own_rows: OwnRows) -> DataFrame:
    """Figures of full fetches, refused and lost sessions as the capture itself shows them."""
    c, x = SESSION_CACHE, EXCHANGES
    refused, created = F.col(c.captured_refused), F.col(c.captured_created)
    sums = rows_in_captured_lane(own_rows(c)).agg(*(F.sum(column).alias(column) for column in (
        c.captured_refused, c.captured_created, c.captured_not_found, c.captured_fetches
    )))  # fmt: skip
    full = fetch_exchanges(own_rows).agg(
        F.count_if(F.col(x.fetch_session_epoch) <= 0).alias("full"), F.count("*").alias("fetches")
    )
    return figure_rows(sums, OF_CLUSTER, F.lit(""), {
        "refused_share": share_columns(refused, created + refused),
        "not_found_share": share_columns(F.col(c.captured_not_found), F.col(c.captured_fetches)),
    }).unionByName(
        figure_rows(full, OF_CLUSTER, F.lit(""), {"full_fetch_share": share_columns(F.col("full"), F.col("fetches"))})
    )  # fmt: skip


def checked_splits(before: ComparedRun, after: ComparedRun) -> CheckedPredictions:
    """The predictions of each producer's share of split batches, for producers in both captures."""
    t, algorithm = BATCH_SPLIT, algorithms.BATCH_SPLIT
    sizes = [first_values_text(F.col(column)).alias(column) for column in SPLITS.values()]
    clients = clients_of_both(
        [rows_in_captured_lane(run.own_rows(t)).groupBy(t.client_id).agg(*sizes) for run in (before, after)],
        [str(t.client_id)],
    )
    rows = clients.collect()
    client_lanes = [*client_lanes_of(algorithm, before, after, rows, {CONSUMER: SPLITS})]
    is_split = F.col(METRIC) == "split_share"
    predicted = collect_figures(
        split_outcomes(before.own_rows, is_in_own_lane(client_lanes, str(t.client_id))).where(is_split)
    )
    figures_after = LaterFigures(
        by_capture=collect_figures(captured_splits(after.own_rows, client_lanes)), by_replay={}
    )
    predictions = predictions_with_outcome(algorithm, client_lanes, predicted, figures_after)
    return CheckedPredictions(predictions, clients_without_lane(client_lanes), clients_left_out(rows))


def captured_splits(own_rows: OwnRows, client_lanes: Sequence[ClientLane]) -> DataFrame:
    """Figures of the share of each producer's batches that brokers refused as too large, which it had to split."""
    b = RECORD_BATCHES
    rows = batches_of_producers(own_rows).where(is_of_clients(client_lanes, str(b.client_id))).groupBy(b.client_id).agg(
        F.count_if(F.col(b.error_code) == MESSAGE_TOO_LARGE).alias("refused"), F.count("*").alias("sent")
    )  # fmt: skip
    return figure_rows(rows, CLIENT, str(b.client_id), {"split_share": share_columns(F.col("refused"), F.col("sent"))})


CHECKS = {
    algorithms.FETCH_MAX_BYTES: checked_fetches,
    algorithms.SESSION_CACHE: checked_sessions,
    algorithms.BATCH_SPLIT: checked_splits,
}
"""The function that checks a replay's predictions, by replay. No release has partition limits or KIP-81's pool, so no
capture can show whether their predictions came true."""


def clients_of_both(of_runs: Sequence[DataFrame], keys: Sequence[str]) -> DataFrame:
    """The rows of two runs joined by their keys, as the structs `before` and `after`, for at most MOST_CLIENTS clients.
    Those whose values differ come first.
    """
    sides = [
        rows.select(*keys, F.struct(*(name for name in rows.columns if name not in keys)).alias(side))
        for rows, side in zip(of_runs, SIDES, strict=True)
    ]
    both = sides[0].join(sides[1], list(keys))
    return first_rows(both, MOST_CLIENTS, F.col("before") == F.col("after"), *keys)


def client_lanes_of(
    algorithm: str, before: ComparedRun, after: ComparedRun, rows: Iterable[Row],
    shown_by: Mapping[str, Mapping[str, str]],
) -> Iterator[ClientLane]:  # fmt: skip
    """The lane of each client. shown_by: the column with the value in force, by kind of reader and by setting."""
    lanes = settings_by_lane(before, algorithm)
    for row in rows:
        reader = row.asDict().get("reader", CONSUMER)
        columns = shown_by.get(reader, {})
        apart = "replica" if reader == CONSUMER else "consumer"
        was, now = (
            in_force_in_run(
                algorithm, run, {key: row[side][str(column)] or "" for key, column in columns.items()}, apart
            )
            for run, side in ((before, "before"), (after, "after"))
        )
        yield ClientLane(row[str(FETCH_PARTITIONS.client_id)], lane_in_force(lanes, was, now), was != now)


def in_force_in_run(algorithm: str, run: ComparedRun, values: InForce, apart_from: str = "") -> InForce:
    """The value in force in a run for every setting of a replay.

    values: those that its capture shows. apart_from: the settings that are set on this are left out.
    """
    release = run.run.kafka.partition(",")[0].partition(" ")[0]
    return settings_in_force(algorithm, run.run.captured, release, values, (apart_from,))


def settings_by_lane(run: ComparedRun, algorithm: str) -> Mapping[str, InForce]:
    """The settings of each lane of a run's replay, by the lane's name."""
    names = next(row[RUNS.lanes] for row in run.run.rows if row[RUNS.algorithm] == algorithm)
    return {name: lane_values(name) for name in names}


def is_in_own_lane(client_lanes: Sequence[ClientLane], client: str) -> Column:
    """Whether a row belongs to one of the clients and to that client's lane. client: the column with the client."""
    clients_by_lane: dict[str, list[str]] = {}
    for client_lane in client_lanes:
        if client_lane.lane is not None:
            clients_by_lane.setdefault(client_lane.lane, []).append(client_lane.scope)
    parts = ((F.col(SCENARIO) == lane) & F.col(client).isin(*names) for lane, names in clients_by_lane.items())
    return reduce(or_, parts, F.lit(False))


def is_of_clients(client_lanes: Sequence[ClientLane], client: str) -> Column:
    """Whether a row belongs to one of these clients, in any lane. client: the column with the client."""
    if not client_lanes:
        return F.lit(False)
    return F.coalesce(F.col(client), F.lit("")).isin(*(client_lane.scope for client_lane in client_lanes))


def collect_figures(rows: DataFrame) -> Figures:
    """The figures in rows of `figure_rows`, collected."""
    return {(row[SCOPE], row[METRIC]): Figure(*(row[name] for name in NUMBERS)) for row in rows.collect()}


def predictions_with_outcome(
    algorithm: str,
    client_lanes: Sequence[ClientLane],
    predicted: Figures,
    figures_after: LaterFigures,
    kind: str = CLIENT,
) -> tuple[Prediction, ...]:
    """A prediction for every figure that was predicted and that the later run has.

    predicted: the figures of the earlier run, each in its client's lane. kind: the kind of the figures' scope.
    """
    by_scope = {client_lane.scope: client_lane for client_lane in client_lanes if client_lane.lane is not None}
    predictions = []
    for (scope, metric), figure in sorted(predicted.items(), key=lambda item: item[0]):
        client_lane, outcome = by_scope.get(scope), figures_after.figure_of(scope, metric)
        if client_lane is None or client_lane.lane is None or outcome is None:
            continue
        seen_by, seen_figure = outcome
        predictions.append(
            Prediction(
                algorithm=algorithm,
                lane=client_lane.lane,
                is_changed=client_lane.is_changed,
                kind=kind,
                scope=scope,
                metric=metric,
                predicted=figure,
                seen=seen_figure,
                seen_by=seen_by,
            )
        )
    return tuple(predictions)


def clients_without_lane(client_lanes: Sequence[ClientLane]) -> int:
    """How many clients no lane predicts."""
    return sum(client_lane.lane is None for client_lane in client_lanes)


def clients_left_out(rows: Sequence[Row]) -> int:
    """How many clients were not checked. rows: of `clients_of_both`."""
    return rows[0][IN_ALL] - len(rows) if rows else 0
