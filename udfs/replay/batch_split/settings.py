"""max.message.bytes of each topic in each lane, as brokers have it: a topic's own, else their message.max.bytes.

Where nobody says either, it is what brokers' answers tell, else Kafka's default.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from udfs.columns.arrays import Ints

NOT_SAID = -1


@dataclass(frozen=True)
class TopicLimits:
    """What is said of the largest batch that brokers take, by lane, bytes.

    own: by topic what is said of that one. of_all: int64[lanes], what is said of every topic, else NOT_SAID.
    message_max_bytes: int64[lanes], of the brokers, else NOT_SAID. default: Kafka's.
    """

    own: tuple[Mapping[str, int], ...]
    of_all: Ints
    message_max_bytes: Ints
    default: int

    def of(self, topics: Collection[str], created: Mapping[str, int], answered: Mapping[str, int]) -> Ints:
        """int64[lanes, topics], of each topic. What a lane says overrides what the topic was created with.

        created: max.message.bytes of topics whose creation the capture shows, as far as they have one of their own.
        answered: of those whose brokers' answers tell another than the default.
        """
        lanes = range(len(self.own))
        return np.array([[self._of(lane, topic, created, answered) for topic in topics] for lane in lanes], np.int64)

    def _of(self, lane: int, topic: str, created: Mapping[str, int], answered: Mapping[str, int]) -> int:
        said = (
            self.own[lane].get(topic), _said(self.of_all[lane]), created.get(topic),
            _said(self.message_max_bytes[lane]), answered.get(topic),
        )  # fmt: skip
        return next((limit for limit in said if limit is not None), self.default)


def _said(limit: int) -> int | None:
    return None if limit == NOT_SAID else int(limit)
