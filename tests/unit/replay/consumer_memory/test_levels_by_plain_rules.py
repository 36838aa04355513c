"""What the fetches of a librdkafka consumer show of its queue is what follows from each event, one by one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.replay.consumer_memory.fetch_queue.levels import PARSED_US, known_levels
from udfs.replay.consumer_memory.fetch_queue.state import RECORDS_RESPONSE, THRESHOLDS


def drawn(seed: int) -> Records:
    """The responses of some fetchers, each of which asks for one after the other."""
    rng = np.random.default_rng(seed)
    step = int(rng.choice([10, PARSED_US // 2]))
    rows = []
    for fetcher in range(int(rng.integers(1, 4))):
        now = int(rng.integers(0, 5)) * step
        for _ in range(int(rng.integers(1, 7))):
            requested, arrived = now + int(rng.integers(0, 4)) * step, now + int(rng.integers(4, 8)) * step
            messages = int(rng.integers(1, 13))
            rows.append((fetcher, requested, arrived, messages, messages * int(rng.choice([0, 50, 100, 333])) // 2))
            now = arrived
    rows.sort(key=lambda row: row[2])
    names = ("fetcher", "requested_at", "arrived_at", "messages", "value_bytes")
    return new_records(
        RECORDS_RESPONSE, len(rows), **dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    )


Amount = tuple[int, int]  # messages, bytes


def first_of(responses: list[Amount], amount: int, which: int) -> int:
    """The bytes of the first messages (which = 0), or the messages that the first bytes (which = 1) are. The messages
    of a response are equally large.
    """
    other = 0
    for response in responses:
        if amount <= 0:
            break
        if amount <= response[which]:
            return other + response[1 - which] * amount // response[which]
        amount -= response[which]
        other += response[1 - which]
    return other


@dataclass
class Queue:
    """The queue, as far as it is known. most: the messages and bytes that fill it. open: by fetcher, its last response,
    as long as that may not be queued.
    """

    most: Amount
    come: list[Amount] = field(default_factory=list)
    open: dict[int, tuple[int, Amount]] = field(default_factory=dict)
    taken: Amount = (0, 0)
    may_be_full: set[int] = field(default_factory=set)
    is_full: set[int] = field(default_factory=set)

    def look(self, time: int, fetchers: range) -> Amount:
        """Note for each fetcher how full the queue can be. Returns what may not be in the queue yet."""
        self.open = {number: (at, of) for number, (at, of) in self.open.items() if time - at <= PARSED_US}
        for number in fetchers:
            others = [of for other, (_, of) in self.open.items() if other != number]
            for less, full in (([], self.may_be_full), (others, self.is_full)):
                messages, size = (
                    sum(of[i] for of in self.come) - self.taken[i] - sum(of[i] for of in less) for i in (0, 1)
                )
                if messages >= self.most[0] or size >= self.most[1]:
                    full.add(number)
        return sum(of[0] for _, of in self.open.values()), sum(of[1] for _, of in self.open.values())

    def take(self, messages: int, size: int) -> None:
        """Note that the application has taken at least these messages, and at least these bytes."""
        self.taken = (
            max(self.taken[0], messages, first_of(self.come, size, 1)),
            max(self.taken[1], size, first_of(self.come, messages, 0)),
        )


def plain_levels(responses: Records, limits: Amount) -> list[tuple[int, int, int]]:
    """The level at each response."""
    fetchers, queue = range(int(responses["fetcher"].max()) + 1), Queue(limits)
    most, full = [0] * len(responses), [(0, 0)] * len(responses)
    events = [(int(of["arrived_at"]), 0, number) for number, of in enumerate(responses)]
    events += [(int(of["requested_at"]), 1, number) for number, of in enumerate(responses)]
    for time, is_request, number in sorted(events):
        fetcher, *amount = responses[number][["fetcher", "messages", "value_bytes"]].tolist()
        if is_request:
            queue.open.pop(fetcher, None)
            pending = queue.look(time, fetchers)
            full[number] = int(fetcher in queue.may_be_full), int(fetcher in queue.is_full)
            come = [sum(of[i] for of in queue.come) for i in (0, 1)]
            queue.take(come[0] - pending[0] - limits[0] + 1, come[1] - pending[1] - limits[1] + 1)
            continue
        queue.come.append((amount[0], amount[1]))
        queue.open[fetcher] = time, (amount[0], amount[1])
        queue.may_be_full.discard(fetcher)
        queue.is_full.discard(fetcher)
        queue.look(time, fetchers)
        most[number] = sum(size for _, size in queue.come) - queue.taken[1]
    return [(most_bytes, *flags) for most_bytes, flags in zip(most, full, strict=True)]


@pytest.mark.parametrize("first", [0, 50, 100])
@pytest.mark.parametrize(("messages", "size"), [(25, 1500), (1, 1 << 40), (1 << 40, 1)])
def test_the_levels_of_a_queue_are_those_of_plain_rules(first: int, messages: int, size: int) -> None:
    """A queue that one message or byte fills was empty at every request."""
    limits = new_records(THRESHOLDS, 1, max_bytes=size, min_messages=messages)
    for seed in range(first, first + 50):
        responses = drawn(seed)
        levels = known_levels(responses, limits)[["most_bytes", "may_be_full", "is_full_at_most"]].tolist()
        assert (seed, levels) == (seed, plain_levels(responses, (messages, size)))


def test_messages_without_values_may_be_in_the_queue_when_all_bytes_before_them_are_taken() -> None:
    """One byte fills the queue, so all 500 are taken. The five messages that follow have no bytes, and one more makes
    six, which fill the queue, too.
    """
    limits = new_records(THRESHOLDS, 1, max_bytes=1, min_messages=6)
    responses = new_records(
        RECORDS_RESPONSE, 4, requested_at=[0, 20, 40, 60], arrived_at=[10, 30, 50, 70], messages=[5, 5, 1, 1],
        value_bytes=[500, 0, 0, 0],
    )  # fmt: skip
    assert known_levels(responses, limits)["may_be_full"].tolist() == [0, 1, 0, 1]
