"""The summary's lines on KIP-227: what each lane would do to sessions, and how many slots would be enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.session_cache.share_answers import share_lanes, share_lanes_table, share_needs
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import BETWEEN, grid_by_lane, settings_in_name, with_other_traffic
from jobs.terminal.screen import Grid, grid_lines, share_text, size_text
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_SLOTS
from udfs.columns.time_units import NEVER
from udfs.replay.session_cache.settings import SHARE_LIMIT

TITLE = (
    "max.incremental.fetch.session.cache.slots (KIP-227), closed loop: clients follow the responses they would have got"
)
HEAD = (
    "lane", "most live", "followers'", "refused", "with room", "evicted", "not found", "full fetches", "requests",
    "responses",
)  # fmt: skip
COLUMNS = {
    "most live": "the most sessions of one broker at the end of any 10 s",
    "followers'": "the most sessions of followers on one broker, counted in the same way",
    "refused": "of full fetches that want a session, the share that gets none",
    "with room": "of these, the share that is refused while another shard of the broker has a free slot",
    "not found": "fetches whose session is gone: FETCH_SESSION_ID_NOT_FOUND",
    "full fetches": "the share of fetches that name all their partitions",
    "requests": "bytes of Fetch requests",
    "responses": "bytes of Fetch responses",
}
GROWN_COLUMNS = {"slots needed": "with this many slots, no client that still fetches is refused or loses its session"}


def has_grown() -> Column:
    """Whether a row's lane has other traffic than captured: such a lane says what that needs, not what slots change."""
    return with_other_traffic(SESSION_CACHE.scenario)


def lanes(own_rows: OwnRows) -> DataFrame:
    """A row for each lane with the captured traffic, over all brokers."""
    return sums_by_lane(own_rows(SESSION_CACHE).where(~has_grown()))


def grown_lanes(own_rows: OwnRows) -> DataFrame:
    """A row for each lane with other traffic, over all brokers, with the slots that are enough on the worst broker."""
    s = SESSION_SLOTS
    needs = own_rows(s).where(has_grown()).groupBy(s.scenario).agg(F.max(s.enough_slots).alias(s.enough_slots))
    return sums_by_lane(own_rows(SESSION_CACHE).where(has_grown())).join(needs, str(s.scenario))


def sums_by_lane(rows: DataFrame) -> DataFrame:
    """A row for each lane, over all brokers. rows: of session_cache."""
    c = SESSION_CACHE
    summed = (
        c.fetches, c.full_fetches, c.created, c.refused, c.refused_despite_room, c.evicted, c.not_found,
        c.request_bytes, c.response_bytes, c.captured_refused, c.captured_created,
    )  # fmt: skip
    sums = [F.sum(column).alias(column) for column in summed]
    most = (
        F.max(c.live_sessions).alias("live"),
        F.max(c.follower_sessions).alias(c.follower_sessions),
        F.max(c.cached_partitions).alias("cached"),
    )
    return rows.groupBy(c.scenario).agg(*most, F.sum(c.partitions_reread).alias("reread"), *sums)


def slot_needs(own_rows: OwnRows) -> DataFrame:
    """A row for each number of shards: the slots that the worst broker needs for the captured traffic, and the slots
    that the captured brokers can have had. If brokers have different numbers of slots, these are the brokers with the
    fewest.
    """
    s, is_captured = SESSION_SLOTS, F.col(SESSION_SLOTS.scenario) == CAPTURED_LANE
    slots, at_most = F.col(s.slots), F.coalesce(F.col(s.slots_at_most), F.lit(NEVER))
    least = F.max(F.when(is_captured, F.struct((-slots).alias("fewer"), F.col(s.slots_at_least).alias("of"))))["of"]
    most = F.min(F.when(is_captured, F.struct(slots.alias("slots"), at_most.alias("of"))))["of"]
    return own_rows(s).where(~has_grown()).groupBy(s.shards).agg(
        F.max(s.zero_harm_slots).alias(s.zero_harm_slots), F.max(s.enough_slots).alias(s.enough_slots),
        least.alias(s.slots_at_least), F.nullif(most, F.lit(NEVER)).alias(s.slots_at_most),
        F.min(F.when(is_captured, slots)).alias(s.slots),
    ).orderBy(s.shards)  # fmt: skip


QUERIES = {
    "lanes": lanes,
    "slots": slot_needs,
    "grown": grown_lanes,
    "share_lanes": share_lanes,
    "share_needs": share_needs,
}


def lanes_table(rows: list[Row], of_slots: Sequence[Row], lane_names: Sequence[str]) -> Grid:
    """A row for each lane but those of share sessions, in order; the notes say how many slots would be enough."""
    of_fetches = [row for row in rows if settings_in_name(row[SESSION_CACHE.scenario]).keys() != {SHARE_LIMIT}]
    return grid_by_lane(HEAD, answer_row, of_fetches, lane_names, [*notes_on_slots(of_slots)], COLUMNS)


def grown_table(rows: list[Row], lane_names: Sequence[str]) -> Grid:
    """A row for each lane with other traffic, with the slots with which nobody who still fetches is harmed."""
    return grid_by_lane((*HEAD, "slots needed"), grown_row, rows, lane_names, columns=GROWN_COLUMNS)


def grown_row(row: Row) -> list[str]:
    """One lane's cells, with the slots that are enough."""
    return [*answer_row(row), f"{row[SESSION_SLOTS.enough_slots]:,}"]


def answer_lines(answers: Mapping[str, list[Row]], lane_names: Sequence[str]) -> Iterable[str]:
    """The table as lines; then those of lanes with other traffic and of share sessions, if there are any."""
    if not answers["lanes"]:
        yield "  no fetch was captured"
    else:
        yield from grid_lines(lanes_table(answers["lanes"], answers["slots"], lane_names))
    if answers["grown"]:
        yield from grid_lines(grown_table(answers["grown"], lane_names))
    if answers["share_lanes"]:
        yield from grid_lines(share_lanes_table(answers["share_lanes"], answers["share_needs"], lane_names))


def answer_row(row: Row) -> list[str]:
    """One lane's cells."""
    c = SESSION_CACHE
    return [
        row[c.scenario].replace("broker.", "").replace(",", BETWEEN), f"{row['live']:,}",
        f"{row[c.follower_sessions]:,}",
        share_text(row[c.refused], row[c.refused] + row[c.created]),
        share_text(row[c.refused_despite_room], row[c.refused]),
        f"{row[c.evicted]:,}", f"{row[c.not_found]:,}",
        share_text(row[c.full_fetches], row[c.fetches]), size_text(row[c.request_bytes]),
        size_text(row[c.response_bytes]),
    ]  # fmt: skip


def notes_on_slots(rows: Sequence[Row]) -> Iterable[str]:
    """The notes below the table: how many slots would be enough, and whether the captured setting can be right."""
    s = SESSION_SLOTS
    for row in rows:
        kind = "one cache" if row[s.shards] == 1 else f"{row[s.shards]} shards"
        enough = f"{row[s.zero_harm_slots]:,} slots per broker on ({kind})"
        yield f"From {enough}, nobody in the capture is refused or evicted."
        if row[s.enough_slots] < row[s.zero_harm_slots]:
            yield f"From {row[s.enough_slots]:,} on, no client that still fetches is: only idle sessions are evicted."
        if row[s.slots] is not None:
            yield captured_slots_text(row)


def captured_slots_text(row: Row) -> str:
    """The slots that the capture allows, and whether the number that the replay took as captured is allowed."""
    s = SESSION_SLOTS
    least, most = row[s.slots_at_least], row[s.slots_at_most]
    fits = f"at least {least:,}" if most is None else f"{least:,} to {most:,}"
    verdict = "which fits" if are_slots_possible(row) else "which does not fit: state the number with --captured"
    return f"The capture allows {fits} slots per broker. The replay took {row[s.slots]:,}, {verdict}."


def are_slots_possible(row: Row) -> bool:
    """Whether the capture allows the number of slots that the replay took for the captured one."""
    s = SESSION_SLOTS
    least, most, taken = row[s.slots_at_least], row[s.slots_at_most], row[s.slots]
    return bool(least <= taken and (most is None or taken <= most))
