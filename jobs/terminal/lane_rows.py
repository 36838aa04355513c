"""The rows of lanes as they are shown: in the order of the lanes, and without lanes that change nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.screen import Grid
from schemas.tables.gold import FETCH_FAIRNESS
from udfs.replay.shared.lanes import TRAFFIC

SCENARIO = str(FETCH_FAIRNESS.scenario)
"""The column with the lane's name in every gold table."""
BETWEEN = "  "
"""The text between the settings of a lane in a table on the screen."""
_OF_CLIENTS = ("consumer.", "memory.", "processing.")
OF_OTHERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("consumer", "consumers"), ("replica.", "num.replica.", "producer.", "broker.queued.", "broker.socket.")
    ),
    "follower": ("consumer", "profile=", "processing."),
    "brokers": (*_OF_CLIENTS, "producer.", "fetch."),
    "producers": (*_OF_CLIENTS, "broker."),
}
"""The prefixes of settings that belong to others, by subject. A subject's own settings have no prefix in its tables."""


def settings_in_name(lane: str) -> dict[str, str]:
    """The settings that a lane changes with their values as in its name, by key; none for the captured lane."""
    return dict(part.split("=", 1) for part in lane.split(",") if "=" in part)


def with_other_traffic(scenario: str) -> Column:
    """Whether the lane of a row has other traffic than captured. scenario: the column with the lane's name."""
    return F.col(scenario).rlike("|".join(f"(^|,){re.escape(key)}=" for key in sorted(TRAFFIC)))


def has_other_traffic(lane: str) -> bool:
    """Whether more or less is produced in a lane than captured, or more consumers read it."""
    return not TRAFFIC.isdisjoint(settings_in_name(lane))


def in_lane_order(rows: Iterable[Row], lane_names: Sequence[str]) -> list[Row]:
    """The rows in the order of the lanes; rows of the same lane keep their order. If there are no rows, `lane_names`
    may be empty.
    """
    place = {name: at for at, name in enumerate(lane_names)}
    return sorted(rows, key=lambda row: place[row[SCENARIO]])


def grid_by_lane(
    head: Sequence[str], cells_of: Callable[[Row], list[str]], rows: Iterable[Row], lane_names: Sequence[str],
    notes: Sequence[str] = (), columns: Mapping[str, str] = MappingProxyType({}),
) -> Grid:  # fmt: skip
    """A table with a row for each lane, in the order of the lanes, below `head`. `cells_of` writes the cells. notes,
    columns: as in `Grid`.
    """
    return Grid(head, [cells_of(row) for row in in_lane_order(rows, lane_names)], ("lane",), notes, columns)


NO_ROW = "A lane with the same results as the captured one has no row."
"""A note below a table of `merge_equal_lanes`."""


def merge_equal_lanes(cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows, each a subject, a lane and the lane's results, with a single row for lanes with the same results.

    A lane with the same results as the captured one goes into its row: it changes nothing for the subject, as
    consumers' settings change nothing for followers. If results do not depend on the value of one setting, one row has
    all its values: `fetch.max.bytes=1MiB|8MiB`. The setting is still named, because the captured value may have other
    results. A setting that belongs to others (OF_OTHERS) is not named.
    """
    lanes: dict[str, list[str]] = {}
    same: dict[tuple[str, ...], set[str]] = {}
    for subject, lane, *outcome in cells:
        lanes.setdefault(subject, []).append(lane)
        same.setdefault((subject, *outcome), set()).add(lane)
    lanes_by_row: dict[tuple[str, ...], list[str]] = {}
    for subject, lane, *outcome in cells:
        name = shortest_lane_name(subject, lane, same[subject, *outcome], lanes[subject])
        lanes_by_row.setdefault((subject, name), [subject, name, *outcome])
    return list(lanes_by_row.values())


def shortest_lane_name(subject: str, lane: str, same: Collection[str], lanes: Sequence[str]) -> str:
    """The lane's name with only those settings on which its results depend. same: the lanes with the same results."""
    if CAPTURED_LANE in same:
        return CAPTURED_LANE
    by_part = {part: part for part in lane.split(BETWEEN)}
    parts, alike = list(by_part), [lane]
    for part in reversed(list(by_part)):
        others = [other for other in parts if other != part]
        more = [other for other in lanes if set(others) <= set(other.split(BETWEEN))]
        # A setting that all lanes have in common stays, because it distinguishes them from the captured lane.
        if others and len(more) > len(alike) and all(other in same for other in more):
            parts, alike = others, more
            by_part[part] = "" if part.startswith(OF_OTHERS.get(subject, ())) else setting_with_values(part, more)
    return BETWEEN.join(filter(None, by_part.values()))


def setting_with_values(part: str, lanes: Sequence[str]) -> str:
    """A setting with its values in these lanes: `a=1`, `a=1|2`; if there are more, the first and last: `a=1..8`."""
    key = part.partition("=")[0] + "="
    parts = (other for lane in lanes for other in lane.split(BETWEEN))
    values = list(dict.fromkeys(other.removeprefix(key) for other in parts if other.startswith(key)))
    return key + (f"{values[0]}..{values[-1]}" if len(values) > 2 else "|".join(values))
