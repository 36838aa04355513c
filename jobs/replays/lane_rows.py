"""The rows of lanes as they are shown: in the lanes' own order, and without those that change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Row

from jobs.scenarios.scenario import CAPTURED_LANE
from schemas.tables.gold import FETCH_FAIRNESS

SCENARIO = str(FETCH_FAIRNESS.scenario)
"""The column of every gold table that has the lane's name."""


def in_lane_order(rows: Iterable[Row], lane_names: Sequence[str]) -> list[Row]:
    """The rows by lane, each lane's in the order that they came in; without any row no lane need be known."""
    place = {name: at for at, name in enumerate(lane_names)}
    return sorted(rows, key=lambda row: place[row[SCENARIO]])


def distinct_lanes(cells: list[list[str]]) -> list[list[str]]:
    """Of rows of a subject, a lane and what it comes to: without lanes that change nothing for their subject, as
    followers under consumers' settings.
    """
    captured = {row[0]: row[2:] for row in cells if row[1] == CAPTURED_LANE}
    return [row for row in cells if row[1] == CAPTURED_LANE or row[2:] != captured.get(row[0])]
