"""The gold table of what earlier runs predicted for a later capture, and what was seen there."""

from __future__ import annotations

from schemas.tables.table import Spec as C
from schemas.tables.table import table

PREDICTIONS_CHECKED = table(
    "predictions_checked", "gold",
    "What an earlier run predicted in the lane whose settings are now in force, and what a later capture shows: a row "
    "a figure. `compare` writes them.",
    ("check_id", "algorithm", "scope_kind", "scope", "metric"), "check_id",
    check_id=C("string", "The comparison: predicted_by and run_id, with a hyphen between"),
    run_id=C("string", "The later run, which tells what was seen"),
    predicted_by=C("string", "The earlier run"),
    algorithm=C("string", "The replay that predicted it, as in runs"),
    scenario=C("string", "The lane of the earlier run whose settings are in force in the later one: `captured` where "
                         "they are the same as before"),
    is_changed=C("boolean", "The settings are others than before; false where the prediction is that all stays as it "
                            "was"),
    scope_kind=C("string", "What the figure is of: client or cluster"),
    scope=C("string", "client.id; empty for the cluster, and for clients without client.id"),
    metric=C("string", "longest_wait_ms, catch_up_ms and held_bytes, as in fetch_ranges; full_fetch_share, "
                       "refused_share and not_found_share of fetch sessions; split_share, of all batches sent"),
    predicted=C("double", "What the earlier run predicted; null for a backlog that is not read", nullable=True),
    p10=C("double", "The range of the prediction; null for a backlog that is not read. Of times and bytes it is that "
                    "of fetch_ranges, of shares what 80 % of samples of both sizes have", nullable=True),
    p90=C("double", "... its upper end", nullable=True),
    seen=C("double", "What the later capture shows; null for a backlog that was not read", nullable=True),
    seen_by=C("string", "capture: packets show it; replay: the replay of the settings in force tells it"),
    is_hit=C("boolean", "What was seen lies within the range"),
)  # fmt: skip
