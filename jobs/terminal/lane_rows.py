"""The rows of lanes as they are shown: in the lanes' own order, and without those that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from pyspark.sql import Row

from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.screen import Grid
from schemas.tables.gold import FETCH_FAIRNESS

SCENARIO = str(FETCH_FAIRNESS.scenario)
"""The column of every gold table that has the lane's name."""
BETWEEN = "  "
"""What stands between the settings of a lane in a table for people."""
_OF_CLIENTS = ("consumer.", "memory.", "processing.")
OF_OTHERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("consumer", "consumers"), ("replica.", "num.replica.", "producer.", "broker.queued.", "broker.socket.")
    ),
    "follower": ("consumer", "profile=", "processing."),
    "brokers": (*_OF_CLIENTS, "producer.", "fetch."),
    "producers": (*_OF_CLIENTS, "broker."),
}
"""By subject, the prefixes of settings that belong to others. In the subject's own tables its settings have no prefix.
"""


def settings_in_name(lane: str) -> dict[str, str]:
    """The settings that a lane changes, by key, with their values as its name has them; of the captured lane none."""
    return dict(part.split("=", 1) for part in lane.split(",") if "=" in part)


def in_lane_order(rows: Iterable[Row], lane_names: Sequence[str]) -> list[Row]:
    """The rows by lane, each lane's in the order that they came in; without any row no lane need be known."""
    place = {name: at for at, name in enumerate(lane_names)}
    return sorted(rows, key=lambda row: place[row[SCENARIO]])


def grid_by_lane(
    head: Sequence[str], cells_of: Callable[[Row], list[str]], notes: Sequence[str],
    rows: Iterable[Row], lane_names: Sequence[str],
) -> Grid:  # fmt: skip
    """A table for people: a row a lane, in their order, under `head` as `cells_of` writes it."""
    return Grid(head, [cells_of(row) for row in in_lane_order(rows, lane_names)], ("lane",), notes)


NO_ROW = "    A lane with the same results as `captured` has no row."
"""A line below a table of `merge_equal_lanes`."""


def merge_equal_lanes(cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows, each a subject, a lane and what the lane comes to, with one row for lanes that come to the same.

    A lane that comes to the same as the captured one goes into its row: it changes nothing for the subject, as
    consumers' settings do for followers. Where lanes come to the same whatever the value of one setting, one row has
    all values: `fetch.max.bytes=1MiB|8MiB`. The setting is still named, for the captured value may come to something
    else; one that is not the subject's (OF_OTHERS) is not.
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
        # What all lanes have in common stays, because it distinguishes them from the captured one.
        if others and len(more) > len(alike) and all(other in same for other in more):
            parts, alike = others, more
            by_part[part] = "" if part.startswith(OF_OTHERS.get(subject, ())) else setting_with_values(part, more)
    return BETWEEN.join(filter(None, by_part.values()))


def setting_with_values(part: str, lanes: Sequence[str]) -> str:
    """A setting with the values that these lanes have of it: `a=1`, `a=1|2`, of more the first and last, `a=1..8`."""
    key = part.partition("=")[0] + "="
    parts = (other for lane in lanes for other in lane.split(BETWEEN))
    values = list(dict.fromkeys(other.removeprefix(key) for other in parts if other.startswith(key)))
    return key + (f"{values[0]}..{values[-1]}" if len(values) > 2 else "|".join(values))
