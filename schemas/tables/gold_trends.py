"""The gold table of the results of runs, with a row for each figure, for trends over many nights."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID
from schemas.tables.table import Spec as C
from schemas.tables.table import table

TRENDS = table(
    "trends", "gold",
    "Results of each run at the settings in force, to follow them from night to night: one row per figure. A figure is "
    "that of the client or broker with the largest value, or a share or a sum over all. `runs --trend` and the report "
    "write this table; its rows stay when `prune` removes their run because of its age.",
    ("run_id", "kind", "metric"), "run_id",
    run_id=RUN_ID,
    replayed_by=C("string", "What made the run, as in runs; figures that other code made are computed again"),
    capture_id=C("string", "The capture set"),
    cluster_id=C("string", "Id of the cluster that is replayed, as its brokers report it", nullable=True),
    first_time=C("timestamp", "Time of the first packet or log line of the captures", "UTC", nullable=True),
    last_time=C("timestamp", "Time of the last packet or log line of the captures", "UTC", nullable=True),
    run_at=C("timestamp", "run_at of the run, as in runs, at the time when the figures were computed", "UTC"),
    kind=C("string", "What figures of this metric are about: client, broker or replay"),
    metric=C("string", "The metric, as `compare` names it, such as longest_wait_ms, held_bytes, refused_share, "
                       "split_share, partitions or requests_per_s; agreement is the share of results that equal the "
                       "capture, over all replays"),
    scope=C("string", "The client or broker with the largest value; null for a share or a sum over all", nullable=True),
    value=C("double", "The figure; null for a backlog that is never read", nullable=True),
    p10=C("double", "Lower end of the figure's range, as in fetch_ranges; null if the figure is exact, and for shares",
          nullable=True),
    p90=C("double", "Upper end of the figure's range; null if the figure is exact, and for shares", nullable=True),
    cases=C("bigint", "For a share, the number of cases of which it is a share; null for other figures", nullable=True),
)  # fmt: skip
