"""What each lane sets for producers: the size of each quota, and its windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from udfs.columns.arrays import Ints
from udfs.columns.time_units import MS_PER_S
from udfs.replay.fetch_max_bytes.quotas import (
    PRODUCER_QUOTA,
    OwnQuota,
    QuotaOf,
    has_quota,
    is_quota,
    own_quota,
    quotas_of_settings,
)
from udfs.replay.fetch_max_bytes.settings import QUOTA_WINDOW_SECONDS, QUOTA_WINDOWS
from udfs.replay.fetch_max_bytes.who_has_quotas import Client
from udfs.replay.shared.lanes import CAPTURED, LaneSettings
from udfs.replay.shared.process_addresses import without_port
from udfs.replay.shared.window import WHOLE, Window

BUFFER_MEMORY = "producer.buffer.memory"
OF_PRODUCERS = (QUOTA_WINDOWS, QUOTA_WINDOW_SECONDS)
"""The settings that only change how quotas count, of consumers and of producers."""


@dataclass(frozen=True)
class ProducerLanes:
    """The lanes that set producers' quotas, the captured one first.

    quotas: the quotas of producers in each lane, bytes/s. windows, window_ms: int64[lanes], quota.window.num, and how
    long each window is. buffer_bytes: buffer.memory of producers in all lanes. window: only requests sent in this time
    count. users: the user that each producer is to brokers, by client.id and address, as far as that is known.
    """

    names: tuple[str, ...]
    quotas: tuple[Mapping[QuotaOf, int], ...]
    windows: Ints
    window_ms: Ints
    buffer_bytes: int
    window: Window = WHOLE
    users: Mapping[Client, str] = field(default_factory=dict)

    def quotas_of(self, client: Client) -> list[OwnQuota | None]:
        """The quota of a producer in each lane; None if it has none."""
        user, alone = self.users.get(client), f"{client[0]} at {without_port(client[1])}"
        return [own_quota(of_lane, user, client[0], alone) for of_lane in self.quotas]


def producer_lanes(lanes: LaneSettings) -> ProducerLanes | None:
    """The captured lane and the lanes that set a quota of producers; None if no lane does, and no quota is stated."""
    own = [CAPTURED, *(place for place, lane in enumerate(lanes.changed) if has_quota(lane, PRODUCER_QUOTA))]
    if len(own) == 1 and not quotas_of_settings(lanes.in_force, PRODUCER_QUOTA):
        return None
    of_own = LaneSettings(
        tuple(lanes.names[place] for place in own), tuple(lanes.changed[place] for place in own), lanes.in_force
    )
    return ProducerLanes(
        names=of_own.names,
        quotas=tuple(quotas_of_settings({**lanes.in_force, **lane}, PRODUCER_QUOTA) for lane in of_own.changed),
        windows=of_own.ints(QUOTA_WINDOWS),
        window_ms=of_own.ints(QUOTA_WINDOW_SECONDS) * MS_PER_S,
        buffer_bytes=int(of_own.ints(BUFFER_MEMORY)[0]),
    )


def lanes_of_fetches(lanes: LaneSettings) -> LaneSettings:
    """The lanes without those that change only quotas of producers, in which consumers are as captured."""
    kept = [place for place, lane in enumerate(lanes.changed) if not concerns_producers_alone(lane)]
    return LaneSettings(
        tuple(lanes.names[place] for place in kept), tuple(lanes.changed[place] for place in kept), lanes.in_force
    )


def concerns_producers_alone(lane: Mapping[str, object]) -> bool:
    """Whether a lane changes quotas of producers and nothing that concerns consumers or followers."""
    others = [key for key in lane if key not in OF_PRODUCERS and not is_quota(key, PRODUCER_QUOTA)]
    return has_quota(lane, PRODUCER_QUOTA) and not others
