"""The gold table of the results of runs, with a row for each figure, for trends over many nights."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID
from schemas.tables.table import Spec as C
from schemas.tables.table import table

TRENDS = table(
    "trends", "gold",
    "The figures of a run at the settings in force, a row for each. A figure is that of the client or broker that has "
    "most, or of all together. `runs --trend` and the report write them, and they stay when their run is removed from "
    "the lake because of its age.",
    ("run_id", "kind", "metric"), "run_id",
    run_id=RUN_ID,
    replayed_by=C("string", "As in runs: figures of other code are made again"),
    capture_id=C("string", "The capture set"),
    cluster_id=C("string", "The cluster that is replayed, by the id that its brokers tell", nullable=True),
    first_time=C("timestamp", "Of the captures: their first packet or line", "UTC", nullable=True),
    last_time=C("timestamp", "... their last", "UTC", nullable=True),
    run_at=C("timestamp", "The run's clock, when the figures were made", "UTC"),
    kind=C("string", "Whose figures this metric has: client, broker or replay"),
    metric=C("string", "As `compare` has it, such as longest_wait_ms, held_bytes, refused_share, split_share, "
                       "partitions, requests_per_s; agreement: results that equal the capture, of all replays"),
    scope=C("string", "The client or broker that has most; null for a share, and for a sum, of all", nullable=True),
    value=C("double", "The figure; null for a backlog that is not read", nullable=True),
    p10=C("double", "The figure's range, as in fetch_ranges; null if it is exact, and for shares", nullable=True),
    p90=C("double", "... its upper end", nullable=True),
    cases=C("bigint", "The number of which a share is taken; null for other figures", nullable=True),
)  # fmt: skip
