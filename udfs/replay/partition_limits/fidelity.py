"""How often the captured settings give what the capture shows of topic changes: rows of `fidelity`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.table import Table
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.arrow_columns import repeated
from udfs.replay.partition_limits.history.changes import History
from udfs.replay.partition_limits.placement.possible_draws import can_tell, possible_rounds
from udfs.replay.partition_limits.rows import asked_rows, column
from udfs.replay.partition_limits.state import NOT_TRIED, Outcomes
from udfs.replay.partition_limits.topics import AUTO, CREATE, GROW, Topics
from udfs.replay.shared.fidelity_rows import Compared, fidelity_rows

PLACEMENTS = "placements"


class Verdict(StrEnum):
    """How a change disagrees, or why a placement could not be checked: schemas.tables.fidelity_reasons."""

    ALLOWED = "allowed_but_refused"
    REFUSED = "refused_but_allowed"
    OTHER_ERROR = "other_error"
    NOT_SHOWN = "not_in_metadata"
    RACKS = "racks_or_fenced_brokers"
    IMPOSSIBLE = "impossible_draw"


def limit_fidelity_rows(
    history: History, outcomes: Outcomes, topics: Topics, run_id: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """Rows by kind of change and client, and by client for placements."""
    e = TOPIC_EVENTS
    done = np.flatnonzero((history.row >= 0) & ((outcomes.reason != NOT_TRIED) | (np.array(history.reason) != "")))
    rows = asked_rows(history, done)
    judged = change_verdicts(history, outcomes, done)
    by_kind = counted(column(rows, e.kind), column(rows, e.client_id), *judged)
    yield FIDELITY, fidelity_rows(by_kind, algorithms.PARTITION_LIMITS, run_id)
    placed = np.flatnonzero((topics.size > 0) & (outcomes.error == 0) & is_placed(history, outcomes))
    clients = column(asked_rows(history, placed), e.client_id)
    of_placements = counted(repeated(PLACEMENTS, len(placed)), clients, *placement_verdicts(history, topics, placed))
    yield FIDELITY, fidelity_rows(of_placements, algorithms.PARTITION_LIMITS, run_id)


def change_verdicts(history: History, outcomes: Outcomes, done: Ints) -> tuple[Ints, Ints, Ints, pa.Array[Any]]:
    """Of each change: checked, agreed, unknown (0 or 1), and the reason, "" for none."""
    # What a Metadata response says of a topic that it makes is not what became of it: that it was seen later is.
    is_auto = history.changes.kind[done] == AUTO
    captured = np.where(is_auto, 0, history.captured[done])
    error = outcomes.error[done]
    reason = np.where(is_auto, "", np.array(history.reason, object)[done]) if len(done) else np.zeros(0, object)
    unknown = reason != ""
    wrong = np.where(captured == 0, Verdict.REFUSED, np.where(error == 0, Verdict.ALLOWED, Verdict.OTHER_ERROR))
    reason = np.where(unknown, reason, np.where(error == captured, "", wrong))
    agreed = ~unknown & (error == captured)
    return (~unknown).astype(np.int64), agreed.astype(np.int64), unknown.astype(np.int64), strings(reason)


def strings(values: Any) -> pa.Array[Any]:
    """Texts of an object array."""
    return pa.array([str(value) for value in values.tolist()], pa.string())


def is_placed(history: History, outcomes: Outcomes) -> Bools:
    """Changes that made partitions in the capture, which Kafka placed itself."""
    changes = history.changes
    makes = np.isin(changes.kind, (CREATE, GROW)) & (history.captured == 0) | (changes.kind == AUTO)
    tried = (outcomes.reason != NOT_TRIED) & (changes.validate_only == 0)
    return makes & tried & (changes.assigned_at < 0)


def placement_verdicts(history: History, topics: Topics, placed: Ints) -> tuple[Ints, Ints, Ints, pa.Array[Any]]:
    """Of each placement: rounds checked, those that are possible, unknown ones, and the reason, "" for none.

    What is checked is what Metadata shows, where the replay takes it from there too: whether the placer that draws the
    others could have drawn it.
    """
    changes, brokers = history.changes, history.brokers
    first, partitions, width = topics.first[placed], topics.size[placed], topics.width[placed]
    shown = (first + partitions <= changes.shown_partitions[placed]) & (width == changes.shown_width[placed])
    at = changes.shown_at[placed] + first * width
    known = can_tell(width, brokers)
    checked = shown & known
    rounds, possible = possible_rounds(changes.assigned, at, np.where(checked, partitions, 0), width, brokers)
    reason = np.where(shown, np.where(known, "", Verdict.RACKS), Verdict.NOT_SHOWN)
    reason = np.where(checked & (possible < rounds), Verdict.IMPOSSIBLE, reason)
    return rounds, possible, (~checked).astype(np.int64), strings(reason)


def counted(
    metric: pa.Array[Any], client: pa.Array[Any], checked: Ints, agreed: Ints, unknown: Ints, reason: pa.Array[Any]
) -> list[Compared]:
    """Sums by metric and client, with how often each reason was given."""
    names = ["checked", "agreed", "unknown"]
    arrays = [pa.array(values) for values in (checked, agreed, unknown)]
    table = pa.Table.from_arrays([metric, client, reason, *arrays], names=["metric", "client", "reason", *names])
    sums = table.group_by(["metric", "client"], use_threads=False).aggregate([(name, "sum") for name in names])
    given = table.filter(pc.not_equal(table["reason"], ""))
    by_reason = given.group_by(["metric", "client", "reason"]).aggregate([("reason", "count")])
    reasons: dict[tuple[str, str | None], dict[str, int]] = defaultdict(dict)
    for row in by_reason.sort_by("reason").to_pylist():
        reasons[row["metric"], row["client"]][row["reason"]] = row["reason_count"]
    return [
        Compared(
            row["metric"], row["checked_sum"], row["agreed_sum"], row["unknown_sum"],
            reasons[row["metric"], row["client"]], client_id=row["client"],
        )
        for row in sums.to_pylist()
    ]  # fmt: skip
