"""Axes of a search: the values of a setting that it can try, as whole numbers, between which it can choose more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from jobs.find.judgement import number_or_inf
from jobs.scenarios.aims import Aim, Span
from jobs.scenarios.scenario import Lane, make_lane
from jobs.scenarios.settings import Value, in_catalogue_order, setting_of
from udfs.columns.arrays import Floats

Point = tuple[int | None, ...]
"""A coordinate for each axis; None if the setting is left as captured."""


@dataclass(frozen=True)
class SearchAxis:
    """A setting and its values. The coordinate of a value is the value itself in a span, and its index in a list.

    reach: the coordinate from which on nothing changes, since nothing in the capture is larger; None if not known.
    closest: two values in bytes that differ by a smaller share than this count as the same.
    """

    key: str
    values: Span | tuple[Value, ...]
    reach: int | None = None
    closest: float = 0.0

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last coordinate."""
        return self.values if isinstance(self.values, Span) else (0, len(self.values) - 1)

    def value(self, coordinate: int) -> Value:
        """The setting's value at a coordinate."""
        if isinstance(self.values, Span):
            return setting_of(self.key).parse(str(coordinate))
        return self.values[coordinate]

    def spread(self, count: int) -> list[int]:
        """`count` coordinates over the whole axis up to its reach, with both ends; fewer if there are fewer."""
        first, last = self.ends
        last = max(first, last if self.reach is None else min(last, self.reach))
        return [first, *self.between(first, last, max(count - 2, 0)), *([last] if last > first else [])]

    def between(self, low: int, high: int, count: int) -> list[int]:
        """Up to `count` coordinates between two others, without these two. Those of a span have equal ratios."""
        if not isinstance(self.values, Span):
            return _round_coordinates(np.linspace(low, high, count + 2)[1:-1], low, high)
        if self._is_measure and high <= (1 + self.closest) * low:
            return []
        # 1 is added for the ratios, because 0 has none.
        return _round_coordinates(
            np.geomspace(low + 1, high + 1, count + 2)[1:-1] - 1, low, high, rough=self._is_measure
        )

    @property
    def _is_measure(self) -> bool:
        """Whether the values are bytes, for which round numbers are good enough, and not a count."""
        return setting_of(self.key).type == "bytes"


def axes_of_aim(aim: Aim, reach: Mapping[str, int]) -> tuple[SearchAxis, ...]:
    """An axis for each setting of the aim, in the order in which lanes name them.

    reach: for each setting the value from which on nothing changes.
    """
    return tuple(_axis_of_setting(aim, key, reach) for key in in_catalogue_order(aim.over))


def _axis_of_setting(aim: Aim, key: str, reach: Mapping[str, int]) -> SearchAxis:
    values = aim.over[key]
    if not isinstance(values, Span):
        beyond = [at for at, value in enumerate(values) if number_or_inf(value) >= reach.get(key, inf)]
        return SearchAxis(key, values, beyond[0] if beyond else None)
    limit = reach.get(key)
    reached = None if limit is None or limit >= values.most else max(limit, values.least)
    return SearchAxis(key, values, reached, aim.step)


def lane_at(axes: tuple[SearchAxis, ...], point: Point) -> Lane:
    """The lane of a point."""
    return make_lane({axis.key: axis.value(at) for axis, at in zip(axes, point, strict=True) if at is not None})


def representative_point(axes: tuple[SearchAxis, ...], point: Point) -> Point:
    """The point that stands for all points whose lanes cannot differ: beyond a setting's reach nothing changes."""
    return tuple(
        at if at is None or axis.reach is None else min(at, axis.reach) for axis, at in zip(axes, point, strict=True)
    )


def _round_coordinates(values: Floats, low: int, high: int, rough: bool = False) -> list[int]:
    """Whole numbers near the values, between low and high, ascending.

    rough: the numbers end in as many zero bits as the distances between them allow.

    >>> _round_coordinates(np.array([300_000.0, 500_000.0]), 200_000, 800_000, rough=True)
    [327680, 524288]
    """
    around = np.concatenate([[low], values, [high]])
    distance = np.minimum(np.diff(around)[:-1], np.diff(around)[1:])
    unit = 2 ** np.floor(np.log2(np.maximum(distance, 1))) if rough else np.ones(len(values))
    whole = (np.round(values / unit) * unit).astype(np.int64)
    return sorted({int(at) for at in whole if low < at < high})
