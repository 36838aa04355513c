"""Limits of topics that nobody states: what brokers' responses show of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Ints
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.stored_size import checked_sizes
from udfs.replay.shared.batch_size_ranges import UNBOUNDED, roundest_number
from udfs.replay.shared.window import WHOLE, Window

_NO_ERROR = 0


@dataclass
class Answers:
    """The largest batch of each topic that brokers took, and the smallest that they refused as too large, in a window.

    taken, refused: int64[topics], the bytes that brokers checked, if they are known. window: the time of the requests.
    """

    taken: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    refused: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    window: Window = WHOLE

    def add(self, sent: Sent, stored: Ints) -> None:
        """Take the responses to some sendings.

        A batch that brokers compress anew may have been refused for its new size, so its own size is no bound. stored:
        int64[topics], as in `checked_sizes`.
        """
        sendings, new = sent.sendings, len(sent.topics) - len(self.taken)
        checked, in_window = checked_sizes(sendings, stored), self.window.has(sendings["request_time"])
        self.taken = np.pad(self.taken, (0, new))
        self.refused = np.pad(self.refused, (0, new), constant_values=UNBOUNDED)
        for error, note, sizes in ((_NO_ERROR, np.maximum, self.taken), (MESSAGE_TOO_LARGE, np.minimum, self.refused)):
            shows = (sendings["error"] == error) & (checked.is_known | (error == _NO_ERROR)) & in_window
            note.at(sizes, sendings["topic"][shows], checked.size[shows])

    def allow(self, topic: int, limit: int) -> bool:
        """Whether a topic, by its number, can have had this max.message.bytes all the time."""
        return bool(self.taken[topic] <= limit < self.refused[topic])

    def limits(self, topics: Iterable[str], default: int) -> dict[str, int]:
        """max.message.bytes of the topics whose responses the default does not explain.

        topics: in the order of their numbers. A topic is left out if its limit changed meanwhile: a batch was taken
        that is larger than a refused one.
        """
        ranges = zip(topics, self.taken.tolist(), self.refused.tolist(), strict=True)
        return {
            topic: roundest_number(taken, refused - 1 if refused < UNBOUNDED else UNBOUNDED)
            for topic, taken, refused in ranges
            if taken < refused and not taken <= default < refused
        }
