"""How followers fare with another number of fetchers: lanes with `num.replica.fetchers`."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Row

from jobs.replays.fetch_max_bytes.answers import closed_lanes
from jobs.report_page.fetch_max_bytes.fairness import captured_row
from jobs.report_page.fetch_max_bytes.growth import ALIKE, differences_from_captured, with_low_fidelity
from jobs.report_page.question import Findings
from jobs.terminal.lane_rows import settings_in_name
from jobs.terminal.screen import rounded_size
from jobs.terminal.wording import changes_phrase, quantity
from schemas.tables import algorithms
from schemas.tables.values import FOLLOWER
from udfs.replay.fetch_max_bytes.settings import FETCHERS

EACH_AT_ITS_PACE = "each fetcher keeps the captured pace, however many share a broker's disks, network and processors"
BESIDE_LIVE_RUNS = (
    "on a live cluster with busy processors, ranges contained 59 % of catch-ups and 80 % of longest waits"
)
"""VALIDATION.md has the runs."""
NOT_DEALT = "left as captured, because the capture does not show by which rule partitions are dealt to fetchers"
"""The reasons of `fetcher_of_partition` in `fidelity` say what the capture does not show."""


def fetchers_by_lane(findings: Findings) -> Iterator[tuple[str, str]]:
    """(lane, text) for each lane with other fetchers: how followers fare compared with the captured lane."""
    rows = [row for row in findings.by_lane(closed_lanes, algorithms.FETCH_MAX_BYTES) if row["reader"] == FOLLOWER]
    captured = captured_row(rows)
    for row in rows:
        if captured is not None and FETCHERS in settings_in_name(row["scenario"]):
            yield changes_phrase(row["scenario"]), fetchers_text(captured, row)


def fetchers_text(captured: Row, row: Row) -> str:
    """The results of a lane for followers: catch-up, waits and lag if they differ, then its costs."""
    not_dealt = [f"{quantity(row['not_dealt'], 'captured fetcher')} {NOT_DEALT}"] if row["not_dealt"] else []
    if row["not_dealt"] == row["readers"]:
        return not_dealt[0]
    differs = [*differences_from_captured(captured, row)] or [ALIKE]
    takes = (
        f"fetch sessions {captured['fetchers']:,} -> {row['fetchers']:,}",
        f"requests {captured['requests']:,} -> {row['requests']:,}",
        f"most held {rounded_size(captured['held'])} -> {rounded_size(row['held'])}",
    )
    return "; ".join([*differs, *takes, *not_dealt])


def fetchers_sureness(findings: Findings) -> str:
    """How sure the lines of `fetchers_by_lane` are."""
    return with_low_fidelity(findings, [EACH_AT_ITS_PACE, BESIDE_LIVE_RUNS])
