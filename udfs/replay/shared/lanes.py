"""The lanes of all replays: the settings of a scenario in each lane, as arrays with a value for each lane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from udfs.columns.arrays import Floats, Ints, Singles

CAPTURED = 0
"""The index of the lane with the settings in force, in every array by lane."""
AS_CAPTURED = -1
"""Stands for the value of a setting in a lane that leaves it as captured."""
BROKER = "broker."
"""How the key of a broker's setting begins; if it is for one broker, a node id and a dot follow."""
NO_LIMIT = "none"
"""The value of a setting that sets no bound."""
KAFKA_RELEASE, PROPOSAL = "kafka", "kip"
"""The setting that says which release's rules a lane has; and its value for the rules of the KIP's text."""
TRAFFIC_SPEED, TRAFFIC_CONSUMERS = "traffic.speed", "traffic.consumers"
TRAFFIC = frozenset((TRAFFIC_SPEED, TRAFFIC_CONSUMERS))
"""The settings of the model that change the traffic itself: how many times as fast records are produced, and how many
consumers share the partitions of each captured one."""
Value = int | str | float
"""A setting's value: bytes, milliseconds or a count as int, a number as float, a choice, a schedule or NONE as str."""


@dataclass(frozen=True)
class LaneSettings:
    """The settings of each lane by key, as conf/settings.yaml spells it; the lane CAPTURED comes first.

    names: the lanes' names. changed: the settings that each lane changes; none in the lane CAPTURED. in_force: the
    values in force when the traffic was captured, Kafka's default if nobody states one; without the settings that the
    capture shows.
    """

    names: tuple[str, ...]
    changed: tuple[Mapping[str, Value], ...]
    in_force: Mapping[str, Value]

    def values(self, key: str) -> list[Value | None]:
        """A setting's value in each lane: the lane's own, otherwise the one in force; None if the capture shows it."""
        return [lane.get(key, self.in_force.get(key)) for lane in self.changed]

    def of_broker(self, broker: str) -> LaneSettings:
        """The lanes at one broker. Where a value in force is stated for this broker, it replaces the value for all."""
        prefix = f"{BROKER}{broker}."
        own = {key.removeprefix(prefix): value for key, value in self.in_force.items() if key.startswith(prefix)}
        of_all = {name if name.startswith(BROKER) else f"{BROKER}{name}": value for name, value in own.items()}
        return replace(self, in_force={**self.in_force, **of_all})

    def brokers_with(self, key: str) -> list[str]:
        """The brokers for which a value of their own is stated for a broker's setting. key: that for all brokers."""
        return brokers_with(key, self.in_force)

    def ints(self, key: str, unset: int = 0) -> Ints:
        """A setting's value in each lane: int64[lanes], `unset` if there is no value or no bound."""
        return np.array(
            [unset if value is None or value == NO_LIMIT else int(value) for value in self.values(key)], np.int64
        )

    def singles(self, key: str) -> Singles:
        """A setting's value in each lane, if Kafka keeps it as a float: float32[lanes], 0 if there is no value."""
        return np.array([float(value or 0) for value in self.values(key)], np.float32)

    @property
    def traffic_speed(self) -> Floats:
        """The factor by which records are produced faster than captured: float64[lanes]."""
        return np.array([float(value or 1.0) for value in self.values(TRAFFIC_SPEED)])

    def changed_ints(self, key: str, unchanged: int = AS_CAPTURED) -> Ints:
        """The value that each lane itself sets: int64[lanes], `unchanged` in the lanes that do not set it."""
        return np.array([int(lane.get(key, unchanged)) for lane in self.changed], np.int64)

    def choices(self, key: str, codes: Mapping[str, int] | Sequence[str], unset: int = AS_CAPTURED) -> Ints:
        """The code of each lane's choice: int64[lanes], `unset` if there is none. In a sequence, it is the index."""
        known = codes if isinstance(codes, Mapping) else {name: code for code, name in enumerate(codes)}
        return np.array([known.get(str(value), unset) for value in self.values(key)], np.int64)


def brokers_with(key: str, in_force: Iterable[str]) -> list[str]:
    """The node ids of the brokers for which a value of their own is stated, in ascending order.

    key: of a broker's setting, for all brokers. in_force: the keys of settings.

    >>> brokers_with("broker.fetch.max.bytes", ["broker.fetch.max.bytes", "broker.12.fetch.max.bytes"])
    ['12']
    """
    ending = f".{key.removeprefix(BROKER)}"
    nodes = [
        of.removeprefix(BROKER).removesuffix(ending) for of in in_force if of.startswith(BROKER) and of.endswith(ending)
    ]
    return sorted((node for node in nodes if node.isdecimal()), key=int)


def stated_release_numbers(value: Value | None) -> tuple[int, ...] | None:
    """A value of the setting `kafka` as numbers, which can be compared; None for a proposal's text and for no value."""
    return None if value is None or value == PROPOSAL else numbers_of_release(str(value))


def numbers_of_release(release: str) -> tuple[int, ...]:
    """A release as numbers, which can be compared.

    >>> numbers_of_release("3.10") > numbers_of_release("3.9")
    True
    """
    return tuple(map(int, release.split(".")))
