"""The summary's lines on share sessions (KIP-932): who gets one in each lane, and how many would be enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import BETWEEN, grid_by_lane, settings_in_name
from jobs.terminal.screen import Grid, share_text
from jobs.terminal.wording import duration
from schemas.tables.gold_shares import SHARE_LIMITS, SHARE_MEMBERS, SHARE_SESSIONS
from udfs.replay.session_cache.settings import SHARE_LIMIT

SHARE_HEAD = ("lane", "most live", "opened", "refused", "not found", "dropped", "members refused", "longest wait")
SHARE_COLUMNS = {
    "most live": "the most share sessions of one broker at the same time",
    "refused": "of ShareFetches that want a session, the share that gets none",
    "not found": "requests whose session is gone: SHARE_SESSION_NOT_FOUND",
    "dropped": "sessions that end because their connection ends",
    "members refused": "members of share groups, counted for each broker",
    "longest wait": "the longest time from a member's first refusal until it has a session",
}


def share_lanes(own_rows: OwnRows) -> DataFrame:
    """A row for each lane, over all brokers; none if no share group fetches."""
    c, m, limits = SHARE_SESSIONS, SHARE_MEMBERS, SHARE_LIMITS
    summed = (c.created, c.refused, c.not_found, c.dropped, c.captured_created, c.captured_refused)
    of_lanes = own_rows(c).groupBy(c.scenario).agg(*(F.sum(column).alias(column) for column in summed))
    most = own_rows(limits).groupBy(limits.scenario).agg(F.max(limits.most_sessions).alias("live"))
    waits = own_rows(m).groupBy(m.scenario).agg(
        F.count_if(F.col(m.refused) > 0).alias("harmed"), F.count("*").alias("members"),
        F.max(m.waited_ms).alias("longest"),
    )  # fmt: skip
    return of_lanes.join(F.broadcast(most), [str(c.scenario)]).join(F.broadcast(waits), [str(c.scenario)])


def share_needs(own_rows: OwnRows) -> DataFrame:
    """One row: the share sessions that the worst broker needs, and those that the captured brokers can have had."""
    s = SHARE_LIMITS
    return own_rows(s).where(F.col(s.scenario) == CAPTURED_LANE).groupBy(s.max_share_sessions).agg(
        F.max(s.needed_sessions).alias(s.needed_sessions), F.max(s.sessions_at_least).alias(s.sessions_at_least),
        F.min(s.sessions_at_most).alias(s.sessions_at_most),
    )  # fmt: skip


def share_lanes_table(rows: list[Row], needs: Sequence[Row], lane_names: Sequence[str]) -> Grid:
    """A row for each lane that changes share sessions, in order; the notes say how many would be enough."""
    changed = [row for row in rows if is_captured_or_sets(row[SHARE_SESSIONS.scenario], SHARE_LIMIT)]
    return grid_by_lane(SHARE_HEAD, share_row, changed, lane_names, [*notes_on_shares(needs)], SHARE_COLUMNS)


def is_captured_or_sets(lane: str, key: str) -> bool:
    """Whether the lane is the captured one, or sets this setting."""
    return lane == CAPTURED_LANE or key in settings_in_name(lane)


def share_row(row: Row) -> list[str]:
    """One lane's cells."""
    c = SHARE_SESSIONS
    return [
        row[c.scenario].replace("broker.", "").replace(",", BETWEEN), f"{row['live']:,}", f"{row[c.created]:,}",
        share_text(row[c.refused], row[c.refused] + row[c.created]), f"{row[c.not_found]:,}", f"{row[c.dropped]:,}",
        f"{row['harmed']:,} of {row['members']:,}", duration(row["longest"]),
    ]  # fmt: skip


def notes_on_shares(rows: Sequence[Row]) -> Iterable[str]:
    """The notes below the table: how many sessions would be enough, and whether the captured setting can be right."""
    s = SHARE_LIMITS
    yield "These are sessions of share groups (KIP-932), under group.share.max.share.sessions."
    for row in rows:
        yield f"From {row[s.needed_sessions]:,} share sessions per broker on, nobody in the capture is refused one."
        least, most, taken = row[s.sessions_at_least], row[s.sessions_at_most], row[s.max_share_sessions]
        fits = f"at least {least:,}" if most is None else f"{least:,} to {most:,}"
        verdict = "which fits" if are_sessions_possible(row) else "which does not fit: state the number with --captured"
        yield f"The capture allows {fits} share sessions per broker. The replay took {taken:,}, {verdict}."


def are_sessions_possible(row: Row) -> bool:
    """Whether the capture allows the number of share sessions that the replay took for the captured one."""
    s = SHARE_LIMITS
    most = row[s.sessions_at_most]
    return bool(
        row[s.sessions_at_least] <= row[s.max_share_sessions] and (most is None or row[s.max_share_sessions] <= most)
    )
