"""Lanes as all replays have them: what a scenario sets in each lane, as arrays with a value a lane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from udfs.columns.arrays import Ints, Singles

CAPTURED = 0
"""The place of the lane that replays the settings in force, in every array by lane."""
AS_CAPTURED = -1
"""In place of a setting's value in a lane that leaves it as the capture shows it."""
NO_LIMIT = "none"
"""The value of a setting that sets no bound."""
KAFKA_RELEASE, PROPOSAL = "kafka", "kip"
"""The setting that says which release's rules a lane has; and its value where the rules are those of the KIP's text."""
TRAFFIC_CONSUMERS = "traffic.consumers"
"""The setting of the model that says how many consumers share what each captured one reads."""
Value = int | str | float
"""A setting's value: bytes, milliseconds or a count as int, a number as float, a choice, a schedule or NONE as str."""


@dataclass(frozen=True)
class LaneSettings:
    """The settings of each lane by key, as conf/settings.yaml spells it; the lane CAPTURED comes first.

    names: the lanes' names. changed: what each lane changes; nothing in the lane CAPTURED. in_force: what was in force
    when the traffic was captured, Kafka's default where nobody states it; without the settings that the capture shows.
    """

    names: tuple[str, ...]
    changed: tuple[Mapping[str, Value], ...]
    in_force: Mapping[str, Value]

    def values(self, key: str) -> list[Value | None]:
        """A setting's value in each lane: the lane's own, else the one in force; None where the capture shows it."""
        return [lane.get(key, self.in_force.get(key)) for lane in self.changed]

    def ints(self, key: str, unset: int = 0) -> Ints:
        """A setting's value in each lane: int64[lanes], `unset` where there is no value or no bound."""
        return np.array(
            [unset if value is None or value == NO_LIMIT else int(value) for value in self.values(key)], np.int64
        )

    def singles(self, key: str) -> Singles:
        """A setting's value in each lane, for settings that Kafka keeps as a float: float32[lanes], 0 where there is
        none.
        """
        return np.array([float(value or 0) for value in self.values(key)], np.float32)

    def changed_ints(self, key: str, unchanged: int = AS_CAPTURED) -> Ints:
        """The value that each lane itself sets: int64[lanes], `unchanged` in the lanes that do not set it."""
        return np.array([int(lane.get(key, unchanged)) for lane in self.changed], np.int64)

    def choices(self, key: str, codes: Mapping[str, int] | Sequence[str], unset: int = AS_CAPTURED) -> Ints:
        """The code of each lane's choice: int64[lanes], `unset` where there is none. In a sequence, it is the place."""
        known = codes if isinstance(codes, Mapping) else {name: code for code, name in enumerate(codes)}
        return np.array([known.get(str(value), unset) for value in self.values(key)], np.int64)


def stated_release_numbers(value: Value | None) -> tuple[int, ...] | None:
    """A value of the setting `kafka` as numbers, which can be compared; None for a proposal's text and for no value."""
    return None if value is None or value == PROPOSAL else numbers_of_release(str(value))


def numbers_of_release(release: str) -> tuple[int, ...]:
    """A release as numbers, which can be compared.

    >>> numbers_of_release("3.10") > numbers_of_release("3.9")
    True
    """
    return tuple(map(int, release.split(".")))
