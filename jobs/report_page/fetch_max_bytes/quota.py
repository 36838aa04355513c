"""How consumers fare under bandwidth quotas (KIP-13, KIP-55): lanes with a `consumer_byte_rate`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import Row

from jobs.replays.ranged import range_column, ranged_text, with_range
from jobs.report_page.fetch_max_bytes.fairness import captured_row, consumers_in_closed_loop
from jobs.report_page.fetch_max_bytes.growth import differences_from_captured, largest_consumer, with_low_fidelity
from jobs.report_page.question import Findings
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import settings_in_name
from jobs.terminal.wording import changes_phrase, duration, quantity
from udfs.replay.fetch_max_bytes.quotas import CONSUMER_QUOTA, USER, has_quota, is_quota

BY_RULES = "the broker's own rules, with clients and brokers at their captured pace"
THROTTLED = "throttle_time_ms"


def throttling_by_lane(findings: Findings) -> Iterator[tuple[str, str]]:
    """(lane, text) for each lane with a quota: who is throttled for how long, and other differences from the captured
    lane.
    """
    captured = captured_row(consumers_in_closed_loop(findings))
    if captured is None:
        return
    for row in quota_lanes(findings):
        yield (
            changes_phrase(row["scenario"]) or CAPTURED_LANE,
            "; ".join([throttled_text(row), *differences_from_captured(captured, row)]),
        )


def quota_lanes(findings: Findings) -> list[Row]:
    """The rows of lanes that set a quota; also of the captured lane if a quota was stated."""
    return [row for row in consumers_in_closed_loop(findings) if has_quota(settings_of_lane(findings, row["scenario"]))]


def settings_of_lane(findings: Findings, lane: str) -> Iterable[str]:
    """The settings that a lane changes, or those stated if it is the captured lane, by key."""
    return findings.captured if lane == CAPTURED_LANE else settings_in_name(lane)


def throttled_text(row: Row) -> str:
    """How many consumers are throttled, and which one longest: `2 of 9 consumers ... throttled, app for 12 s...`."""
    within = row[range_column(THROTTLED)]
    longest = with_range(within["value"] if within else 0.0, within)
    consumers = quantity(row["readers"], "consumer")
    if not row["throttled"]:
        at_most = f", at other paces for {duration(longest.high)} over its brokers at most" if longest.high else ""
        return f"none of {consumers} is throttled{at_most}"
    are = "is" if row["throttled"] == 1 else "are"
    client, so_long = largest_consumer(row, THROTTLED, longest), ranged_text(longest, duration)
    return f"{row['throttled']:,} of {consumers} {are} throttled, {client} for {so_long} over its brokers"


def is_of_users(key: str, quota: str) -> bool:
    """Whether a setting is this quota for users, or for client.ids of users."""
    return is_quota(key, quota) and key.startswith(f"{USER}.")


def unknown_users(findings: Findings, rows: Iterable[Row], quota: str, kind: str) -> list[str]:
    """A sentence that the users of some clients are not known, if a lane has this quota for users.

    rows: of lanes, with the field `unknown_users`. kind: the word for a client.
    """
    of_users = [
        row["unknown_users"]
        for row in rows
        if any(is_of_users(key, quota) for key in settings_of_lane(findings, row["scenario"]))
    ]
    unknown = max(of_users, default=0)
    if not unknown:
        return []
    return [
        f"the user of {quantity(unknown, kind)} is not known, so each is taken for a user of its own: add request logs"
    ]


def quota_sureness(findings: Findings) -> str:
    """How sure the lines of `throttling_by_lane` are, if there are any: which rules they follow, and for how many
    consumers the user is not known, if users have quotas.
    """
    unknown = unknown_users(findings, quota_lanes(findings), CONSUMER_QUOTA, "consumer")
    return with_low_fidelity(findings, [BY_RULES, *unknown])
