"""How often the captured settings agree with the captured topic changes: rows of `fidelity`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.limit_reasons import CHANGES
from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.table import Table
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.arrow_columns import arrow_array, repeated_text_column
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.sentinels import NONE
from udfs.replay.partition_limits.placement.possible_draws import (
    can_be_checked,
    checked_placements,
    fits_fewer_brokers,
)
from udfs.replay.partition_limits.settings import LimitLanes
from udfs.replay.partition_limits.state import AUTO_CREATE, CREATE, GROW, NOT_TRIED, History
from udfs.replay.shared.fidelity_rows import AGREED, NO_REASON, FidelityCounts, fidelity_rows

PLACEMENTS = "placements"
"""The metric that compares the placement of replicas. The metrics of changes are the kinds of changes."""
ALLOWED_BUT_REFUSED = CHANGES.codes[CHANGES.allowed_but_refused]
REFUSED_BUT_ALLOWED = CHANGES.codes[CHANGES.refused_but_allowed]
OTHER_ERROR = CHANGES.codes[CHANGES.other_error]
NOT_IN_METADATA = CHANGES.codes[CHANGES.not_in_metadata]
RACKS_OR_FENCED = CHANGES.codes[CHANGES.racks_or_fenced_brokers]
ADMIN_UTILS = CHANGES.codes[CHANGES.placed_by_admin_utils]
IMPOSSIBLE_DRAW = CHANGES.codes[CHANGES.impossible_draw]


class Verdicts(NamedTuple):
    """For each change or placement, int64[n] each: how much could be checked, how much of that agrees, how much could
    not be checked; and the code of the reason, AGREED for none.
    """

    checked: Ints
    agreed: Ints
    unknown: Ints
    reason: Ints


def limit_fidelity_rows(
    history: History, lanes: LimitLanes, outcomes: Records, chunks: Records, run_id: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """Rows by kind of change and client, and by client for placements.

    outcomes: CHANGE_OUTCOME[changes], and chunks: CHUNK[changes], of the captured lane.
    """
    captured, is_tried = history.captured, outcomes["decided_by"] != NOT_TRIED
    judged = np.flatnonzero(history.in_window & (captured["row"] != NONE) & (is_tried | (captured["reason"] != AGREED)))
    rows, verdicts = history.rows.take(arrow_array(captured["row"][judged])), change_verdicts(history, outcomes, judged)
    change_rows = sum_verdicts(rows[TOPIC_EVENTS.kind], rows[TOPIC_EVENTS.client_id], verdicts)
    yield FIDELITY, fidelity_rows(change_rows, algorithms.PARTITION_LIMITS, run_id)
    is_placed = (chunks["partitions"] > 0) & (outcomes["error"] == 0) & were_placed(history, outcomes)
    placed = np.flatnonzero(history.in_window & is_placed)
    clients = history.rows.take(arrow_array(captured["row"][placed]))[TOPIC_EVENTS.client_id]
    verdicts = placement_verdicts(history, lanes, chunks, placed)
    placement_rows = sum_verdicts(repeated_text_column(PLACEMENTS, len(placed)), clients, verdicts)
    yield FIDELITY, fidelity_rows(placement_rows, algorithms.PARTITION_LIMITS, run_id)


def change_verdicts(history: History, outcomes: Records, judged: Ints) -> Verdicts:
    """Whether the replay gives the captured error for each of these changes.

    outcomes: CHANGE_OUTCOME[changes] of the captured lane. judged: int64[n], the numbers of the changes to compare.
    """
    # A Metadata response does not say whether it created the topic; a later response that shows the topic does.
    is_auto = history.changes["kind"][judged] == AUTO_CREATE
    error, captured = outcomes["error"][judged], np.where(is_auto, 0, history.captured["error_code"][judged])
    unchecked = np.where(is_auto, AGREED, history.captured["reason"][judged])
    is_unknown, is_same = unchecked != AGREED, error == captured
    differs = np.where(captured == 0, REFUSED_BUT_ALLOWED, np.where(error == 0, ALLOWED_BUT_REFUSED, OTHER_ERROR))
    reason = np.where(is_unknown, unchecked, np.where(is_same, AGREED, differs))
    checked, agreed, unknown = (flag.astype(np.int64) for flag in (~is_unknown, ~is_unknown & is_same, is_unknown))
    return Verdicts(checked, agreed, unknown, reason)


def were_placed(history: History, outcomes: Records) -> Bools:
    """Which changes made partitions in the capture that Kafka placed itself: bool[changes].

    outcomes: CHANGE_OUTCOME[changes] of the captured lane.
    """
    changes = history.changes
    is_done = np.isin(changes["kind"], (CREATE, GROW)) & (history.captured["error_code"] == 0)
    makes = is_done | (changes["kind"] == AUTO_CREATE)
    is_tried = (outcomes["decided_by"] != NOT_TRIED) & (changes["validate_only"] == 0)
    return makes & is_tried & (changes["named"] == NONE)


def placement_verdicts(history: History, lanes: LimitLanes, chunks: Records, placed: Ints) -> Verdicts:
    """How many rounds each of these placements has, and how many of them Kafka's placer can have drawn.

    Checked are placements that the replay takes from Metadata: could StripedReplicaPlacer, which draws all other
    placements, have drawn them? They are checked for KRaft only. If it can have drawn one only while the brokers that
    the placement leaves out were fenced, the placement is not checked, because nothing says when brokers were fenced.
    chunks: CHUNK[changes] of the captured lane. placed: int64[n], the numbers of the changes to check.
    """
    changes, brokers, chunk = history.changes[placed], history.brokers, chunks[placed]
    first, partitions, factor = chunk["first_partition"], chunk["partitions"], chunk["replication_factor"]
    is_shown = (first + partitions <= changes["shown_partitions"]) & (factor == changes["shown_factor"])
    is_known = can_be_checked(factor, brokers)
    is_checked = is_shown & is_known & lanes.placed_by_kraft
    shown, partitions = changes["shown"] + first * factor, np.where(is_checked, partitions, 0)
    draws = checked_placements(history.named_brokers, shown, partitions, factor, brokers)
    is_impossible = is_checked & (draws["possible"] < draws["rounds"])
    for place in np.flatnonzero(is_impossible).tolist():
        replicas = history.named_brokers[shown[place] : shown[place] + partitions[place] * factor[place]]
        is_known[place] = not fits_fewer_brokers(replicas, int(factor[place]), brokers)
    is_checked, is_impossible = is_checked & is_known, is_impossible & is_known
    rounds, possible = (np.where(is_checked, draws[name], 0) for name in ("rounds", "possible"))
    of_placer = np.where(is_known, AGREED, RACKS_OR_FENCED) if lanes.placed_by_kraft else ADMIN_UTILS
    unchecked = np.where(is_shown, of_placer, NOT_IN_METADATA)
    reason = np.where(is_impossible, IMPOSSIBLE_DRAW, unchecked)
    return Verdicts(rounds, possible, (~is_checked).astype(np.int64), reason)


def sum_verdicts(metric: pa.Array[Any], client: pa.Array[Any], verdicts: Verdicts) -> list[FidelityCounts]:
    """Sums by metric and client, and how often each reason was given."""
    words = pa.array([NO_REASON, *CHANGES.words]).take(arrow_array(verdicts.reason))
    counts = {name: arrow_array(getattr(verdicts, name)) for name in ("checked", "agreed", "unknown")}
    table = pa.table({"metric": metric, "client": client, "reason": words, **counts})
    sums = table.group_by(["metric", "client"], use_threads=False).aggregate([(name, "sum") for name in counts])
    with_reason = table.filter(pc.not_equal(table["reason"], NO_REASON))
    by_reason = with_reason.group_by(["metric", "client", "reason"]).aggregate([("reason", "count")])
    reasons: dict[tuple[str, str | None], dict[str, int]] = defaultdict(dict)
    for row in by_reason.sort_by("reason").to_pylist():
        reasons[row["metric"], row["client"]][row["reason"]] = row["reason_count"]
    return [
        FidelityCounts(
            metric=row["metric"],
            checked=row["checked_sum"],
            agreed=row["agreed_sum"],
            unknown=row["unknown_sum"],
            reasons=reasons[row["metric"], row["client"]],
            client_id=row["client"],
        )
        for row in sums.to_pylist()
    ]
