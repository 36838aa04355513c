"""The gold table of what earlier runs predicted for a later capture, and what was seen there."""

from __future__ import annotations

from schemas.tables.table import Spec as C
from schemas.tables.table import table

PREDICTIONS_CHECKED = table(
    "predictions_checked", "gold",
    "What an earlier run predicted for the settings that are now in force, beside what a later capture shows: one row "
    "per figure. `compare` writes this table.",
    ("check_id", "algorithm", "scope_kind", "scope", "metric"), "check_id",
    check_id=C("string", "Id of the comparison: predicted_by and run_id, joined by a hyphen"),
    run_id=C("string", "The later run, which has what was seen"),
    predicted_by=C("string", "The earlier run, which made the prediction"),
    algorithm=C("string", "The replay that made the prediction, as in runs"),
    scenario=C("string", "The lane of the earlier run whose settings are in force in the later one; `captured` if the "
                         "settings have not changed"),
    is_changed=C("boolean", "The settings have changed; false if the prediction is that everything stays as it was"),
    scope_kind=C("string", "What the figure is about: client or cluster"),
    scope=C("string", "client.id; empty for the cluster, and for clients without client.id"),
    metric=C("string", "longest_wait_ms, catch_up_ms and held_bytes, as in fetch_ranges; full_fetch_share, "
                       "refused_share and not_found_share, of fetch sessions; split_share, of all batches sent"),
    predicted=C("double", "The predicted value; null for a backlog that is never read", nullable=True),
    p10=C("double", "Lower end of the predicted range; null for a backlog that is never read. For times and bytes it "
                    "is the range in fetch_ranges; for shares, the range of 80 % of such samples", nullable=True),
    p90=C("double", "Upper end of the predicted range; null for a backlog that is never read", nullable=True),
    seen=C("double", "The value in the later capture; null for a backlog that was never read", nullable=True),
    seen_by=C("string", "Where that value is from. capture: packets show it. replay: the later run's replay of the "
                        "settings in force"),
    is_hit=C("boolean", "The value seen is within the predicted range"),
)  # fmt: skip
