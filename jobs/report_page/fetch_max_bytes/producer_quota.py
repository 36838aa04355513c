"""How producers fare under bandwidth quotas (KIP-13, KIP-55): lanes with a `producer_byte_rate`."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Row

from jobs.replays.fetch_max_bytes.producer_answers import (
    BLOCKED,
    SENDS,
    WAITS,
    producer_caveats,
    producer_lanes_rows,
)
from jobs.replays.ranged import range_column, time_with_range, value_with_range
from jobs.report_page.fetch_max_bytes.growth import with_low_fidelity
from jobs.report_page.fetch_max_bytes.quota import settings_of_lane, unknown_users
from jobs.report_page.question import Findings
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.screen import share_text
from jobs.terminal.wording import changes_phrase, client_name, duration, quantity, whole_number_text
from jobs.units import format_bytes
from schemas.tables import algorithms
from schemas.tables.gold import PRODUCER_THROTTLES
from udfs.replay.fetch_max_bytes.quotas import PRODUCER_QUOTA, has_quota

MADE_AS_CAPTURED = "the broker's own rules, for the captured batches, with their records made at the captured times"
LEAST_LONGER_MS = 100
"""A time that differs by less than this counts as equal."""


def producers_by_lane(findings: Findings) -> Iterator[tuple[str, str]]:
    """(lane, text) for each lane with a quota of producers: who is throttled, and how much longer sending takes. The
    captured lane comes first: its throttle times and those in the capture, or a quota that nobody stated but throttle
    times show.
    """
    for row in findings.by_lane(producer_lanes_rows, algorithms.FETCH_MAX_BYTES):
        lane = row[PRODUCER_THROTTLES.scenario]
        if has_quota(settings_of_lane(findings, lane), PRODUCER_QUOTA):
            parts = [producers_throttled_text(row), *captured_parts(row, lane), *delays(row)]
            yield changes_phrase(lane) or CAPTURED_LANE, "; ".join(parts)
        elif row["shown_most"] is not None:
            yield CAPTURED_LANE, shown_quota_text(row)


def producers_throttled_text(row: Row) -> str:
    """How many producers are throttled, and which one longest: `2 of 9 producers are throttled, app for 12 s...`."""
    producers = quantity(row["producers"], "producer")
    if not row["throttled"]:
        return f"none of {producers} is throttled"
    are, longest = "is" if row["throttled"] == 1 else "are", row["longest"]
    so_long = time_with_range(longest[PRODUCER_THROTTLES.throttle_time_ms], longest[WAITS])
    name = client_name(longest[PRODUCER_THROTTLES.client_id])
    return f"{row['throttled']:,} of {producers} {are} throttled, {name} for {so_long} over its brokers"


def captured_parts(row: Row, lane: str) -> Iterator[str]:
    """For the captured lane: its throttle times and those in the capture, of the same requests."""
    t = PRODUCER_THROTTLES
    if lane == CAPTURED_LANE:
        replayed, captured = row[t.replayed_throttle_time_ms], row[t.captured_throttle_time_ms]
        yield f"in all {duration(replayed)}, in the capture {duration(captured)}{off_text(replayed, captured)}"


def off_text(replayed: int, captured: int) -> str:
    """By how much the replayed value differs: ` (0.3 % less)`; empty if there is nothing to compare with."""
    if not captured or replayed == captured:
        return ""
    return f" ({share_text(abs(replayed - captured), captured)} {'more' if replayed > captured else 'less'})"


def delays(row: Row) -> Iterator[str]:
    """How producers fare otherwise: how long sending takes, who waits for memory, how many requests would expire."""
    t, blocked = PRODUCER_THROTTLES, row["blocked"]
    other = row["slowest"] if row["slowest"]["longer"] >= LEAST_LONGER_MS else row["quickest"]
    if abs(other["longer"]) >= LEAST_LONGER_MS:
        name, long = client_name(other[t.client_id]), time_with_range(other[t.sending_ms], other[SENDS])
        yield f"{name} sends for {long} instead of {duration(other[t.captured_sending_ms])}"
    if blocked[t.blocked_ms] >= LEAST_LONGER_MS:
        long = time_with_range(blocked[t.blocked_ms], blocked[BLOCKED])
        yield f"{client_name(blocked[t.client_id])} waits {long} for buffer.memory"
    if row[t.expired_requests]:
        expired = value_with_range(
            row[t.expired_requests], row[range_column(str(t.expired_requests))], whole_number_text
        )
        yield f"{expired} {'request' if expired == '1' else 'requests'} would wait longer than delivery.timeout.ms"


def shown_quota_text(row: Row) -> str:
    """The quota that captured throttle times show, if nobody stated one."""
    least, most = (format_bytes(int(float(f"{row[name]:.3g}"))) for name in ("shown_least", "shown_most"))
    value = least if least == most else f"{least} (to {most})"
    return f"throttle times show a quota that nobody stated: --captured={PRODUCER_QUOTA}={value}"


def producers_sureness(findings: Findings) -> str:
    """How sure the lines of `producers_by_lane` are: which rules they follow, and for how many producers the user is
    not known, if users have quotas.
    """
    rows = findings.by_lane(producer_lanes_rows, algorithms.FETCH_MAX_BYTES)
    unknown = unknown_users(findings, rows, PRODUCER_QUOTA, "producer")
    return with_low_fidelity(findings, [MADE_AS_CAPTURED, *producer_caveats(rows), *unknown])
