"""The lanes of KIP-74's replay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.tables.values import FOLLOWER
from udfs.replay.fetch_max_bytes.client_order import SHUFFLE
from udfs.replay.fetch_max_bytes.client_pace import ClientLanes
from udfs.replay.fetch_max_bytes.fetch_read import Lanes


@dataclass(frozen=True)
class FetchLanes:
    """The lanes of a replay: names, and settings for consumers and for followers; lane 0 is the captured one."""

    names: tuple[str, ...]
    consumer: Lanes
    follower: Lanes
    consumer_client: ClientLanes
    follower_client: ClientLanes

    def of(self, reader: str) -> Lanes:
        """The settings that concern this kind of reader."""
        return self.follower if reader == FOLLOWER else self.consumer

    def client_of(self, reader: str) -> ClientLanes:
        """The settings of the client of this kind of reader, which closed loop goes by."""
        return self.follower_client if reader == FOLLOWER else self.consumer_client

    def are_as(self, others: FetchLanes, reader: str) -> bool:
        """Whether each lane is to this kind of reader what the other's is, which may be called otherwise. A lane that
        shuffles goes by its name.
        """
        mine, theirs = ((*lanes.of(reader), *lanes.client_of(reader)) for lanes in (self, others))
        shuffles = bool((self.client_of(reader).order == SHUFFLE).any())
        return all(map(np.array_equal, mine, theirs)) and (not shuffles or self.names == others.names)
