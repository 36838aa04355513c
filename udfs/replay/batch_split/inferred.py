"""max.message.bytes of a topic, as brokers' answers tell it where nobody states it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Ints
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.roundest import UNBOUNDED, roundest

_NO_ERROR = 0


@dataclass
class AnswersSeen:
    """The largest batch that was taken, and the smallest that was refused as too large: bytes, int64[topics] each."""

    taken: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    refused: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, sent: Sent) -> None:
        """Take the answers to some sendings."""
        rows, new = sent.rows, len(sent.topics) - len(self.taken)
        self.taken = np.pad(self.taken, (0, new))
        self.refused = np.pad(self.refused, (0, new), constant_values=UNBOUNDED)
        for error, note, sizes in ((_NO_ERROR, np.maximum, self.taken), (MESSAGE_TOO_LARGE, np.minimum, self.refused)):
            note.at(sizes, sent.topic[rows.error == error], rows.size[rows.error == error])

    def limits(self, topics: Iterable[str], default: int) -> dict[str, int]:
        """max.message.bytes of the topics, in the order of their numbers, whose answers the default does not give.

        Topics whose limit changed meanwhile are not among them: a batch was taken that is larger than one refused.
        """
        ranges = zip(topics, self.taken.tolist(), self.refused.tolist(), strict=True)
        return {
            topic: roundest(taken, refused - 1 if refused < UNBOUNDED else UNBOUNDED)
            for topic, taken, refused in ranges
            if taken < refused and not taken <= default < refused
        }
