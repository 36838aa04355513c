"""max.message.bytes of a topic, as brokers' answers tell it where nobody states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from udfs.replay.splits.roundest import UNBOUNDED, roundest
from udfs.replay.splits.sent_batches import TOO_LARGE, Sent

_NO_ERROR = 0


@dataclass
class AnswersSeen:
    """By topic, bytes: the largest batch that was taken, and the smallest that was refused as too large."""

    taken: dict[int, int] = field(default_factory=dict)
    refused: dict[int, int] = field(default_factory=dict)

    def add(self, sent: Sent) -> None:
        """Take the answers to some sendings."""
        rows = sent.rows
        for topic in np.unique(sent.topic).tolist():
            sizes, errors = rows.size[sent.topic == topic], rows.error[sent.topic == topic]
            self.taken[topic] = max(self.taken.get(topic, 0), int(sizes[errors == _NO_ERROR].max(initial=0)))
            refused = int(sizes[errors == TOO_LARGE].min(initial=UNBOUNDED))
            self.refused[topic] = min(self.refused.get(topic, UNBOUNDED), refused)

    def limits(self, topics: Mapping[str, int], default: int) -> dict[str, int]:
        """max.message.bytes of the topics, numbered, to whose batches brokers gave other answers than by the default.

        Topics whose limit changed meanwhile are not among them: a batch was taken that is larger than one refused.
        """
        ranges = {topic: (self.taken.get(n, 0), self.refused.get(n, UNBOUNDED)) for topic, n in topics.items()}
        return {
            topic: roundest(taken, refused - 1 if refused < UNBOUNDED else UNBOUNDED)
            for topic, (taken, refused) in ranges.items()
            if taken < refused and not taken <= default < refused
        }
