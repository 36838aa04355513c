"""max.message.bytes of each topic in each lane, as brokers have it: a topic's own, else their message.max.bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from udfs.wire.arrays import Ints

NOT_SAID = -1


@dataclass(frozen=True)
class TopicLimits:
    """What is said of the largest batch that brokers take, by lane, bytes.

    own: by topic what is said of that one. of_all: int64[lanes], what is said of every topic, else NOT_SAID.
    message_max_bytes: int64[lanes], the brokers' default.
    """

    own: tuple[Mapping[str, int], ...]
    of_all: Ints
    message_max_bytes: Ints

    def of(self, topics: Iterable[str], created: Mapping[str, int]) -> Ints:
        """int64[lanes, topics], of each topic. What a lane says overrides what the topic was created with.

        created: max.message.bytes of topics whose creation the capture shows, as far as they have one of their own.
        """
        found = [
            [own.get(topic, of_all if of_all != NOT_SAID else created.get(topic, default)) for topic in topics]
            for own, of_all, default in zip(
                self.own, self.of_all.tolist(), self.message_max_bytes.tolist(), strict=True
            )
        ]
        return np.array(found, np.int64)
