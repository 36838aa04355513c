"""How consumers fare if more is produced, or if there are more of them: lanes with `traffic.`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf

from pyspark.sql import Row

from jobs.replays.fetch_max_bytes.ranges import catch_up_time, held_caveats
from jobs.replays.ranged import Ranged, are_apart, range_column, ranged_text, with_range
from jobs.report_page.advice.floors import low_fidelity, low_fidelity_text
from jobs.report_page.fetch_max_bytes.fairness import captured_row, consumers_in_closed_loop, longest_wait
from jobs.report_page.question import Findings
from jobs.terminal.lane_rows import has_other_traffic, settings_in_name
from jobs.terminal.screen import rounded_size
from jobs.terminal.wording import changes_phrase, client_name, duration
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_RANGES
from udfs.replay.fetch_max_bytes.quotas import has_quota

EXTRAPOLATED = "an extrapolation: clients and brokers keep their captured pace for each request and record"
BESIDE_LIVE_RUNS = (
    "on a live cluster, ranges contained 94 % of catch-ups with more members and 78 % of lags with more traffic"
)
"""VALIDATION.md has the runs."""
ALIKE = "no wait, catch-up, lag or memory differs so much that this capture can tell"


def growth_by_lane(findings: Findings) -> Iterator[tuple[str, str]]:
    """(lane, text) for each lane with other traffic: how consumers fare compared with the captured lane."""
    rows = consumers_in_closed_loop(findings)
    captured = captured_row(rows)
    if captured is None:
        return
    for row in rows:
        lane = row["scenario"]
        if has_other_traffic(lane) and not has_quota(settings_in_name(lane)):
            lines = [*differences_from_captured(captured, row), *difference_of_memory(captured, row)]
            yield changes_phrase(lane), "; ".join(lines) if lines else ALIKE


def growth_sureness(findings: Findings) -> str:
    """How sure the lines of `growth_by_lane` are."""
    rows = consumers_in_closed_loop(findings)
    return with_low_fidelity(findings, [EXTRAPOLATED, BESIDE_LIVE_RUNS, *held_caveats(rows)])


def with_low_fidelity(
    findings: Findings, reasons: Sequence[str], algorithm: str = algorithms.FETCH_MAX_BYTES
) -> str:  # fmt: skip
    """Reasons to be sure or not; and how often the captured lane agrees with the capture, if below the floor."""
    low = low_fidelity(findings, algorithm)
    return "; ".join([*reasons, *map(low_fidelity_text, low[:1])])


def differences_from_captured(captured: Row, row: Row) -> Iterator[str]:
    """A text for each outcome whose ranges in a lane and in the captured lane do not overlap: before, after, and the
    consumer with the largest value in the lane.
    """
    spans: tuple[tuple[str, str, Callable[[Row], Ranged], Callable[[float], str]], ...] = (
        ("catch_up_ms", "catch-up", catch_up_time, duration),
        ("longest_wait_ms", "longest wait", longest_wait, duration),
        ("end_lag_bytes", "not read at the end", end_lag, rounded_size),
    )
    for metric, name, outcome_of, worded in spans:
        before, after = outcome_of(captured), outcome_of(row)
        if are_apart(before, after):
            client = largest_consumer(row, metric, after)
            subject = f"{name} of {client}" if client else name
            yield f"{subject} {ranged_text(before, worded)} -> {ranged_text(after, worded)}"


def largest_consumer(row: Row, metric: str, outcome: Ranged) -> str:
    """The name of the consumer with the largest value of an outcome. Empty if all values are 0, or if a consumer does
    not read its backlog to the end, because the table then has no number.
    """
    most = row[range_column(metric)]
    return client_name(most[FETCH_RANGES.client_id]) if most and 0 < outcome.value < inf else ""


def difference_of_memory(captured: Row, row: Row) -> Iterator[str]:
    """A text on the most that a consumer holds, if the ranges of a lane and of the captured lane do not overlap."""
    before, after = most_held(captured), most_held(row)
    if are_apart(before, after):
        yield f"most held {ranged_text(before, rounded_size)} -> {ranged_text(after, rounded_size)}"


def most_held(row: Row) -> Ranged:
    """The most bytes of records that a consumer holds at a time."""
    return with_range(row["held"], row[range_column("held_bytes")])


def end_lag(row: Row) -> Ranged:
    """The bytes that the consumer that is furthest behind has not read when the capture ends."""
    within = row[range_column("end_lag_bytes")]
    return with_range(within["value"] if within else 0.0, within)
