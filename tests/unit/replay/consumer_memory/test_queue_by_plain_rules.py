"""The queue of a librdkafka consumer is replayed like librdkafka's rules do it one look at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.consumer_memory.fetch_queue.captured import following_responses
from udfs.replay.consumer_memory.fetch_queue.fetcher import replay_queue
from udfs.replay.consumer_memory.fetch_queue.state import RECORDS_RESPONSE, THRESHOLDS, ApplicationPace, new_queue

BACKOFF_US = 1009
US_OF_TEN = 7301
"""How long the application works on ten messages. Neither number divides any other time."""
Response = tuple[int, int, int, int, int, int]
"""(fetcher, us to the answer, us of the gap before, messages, bytes of each, us from which on it is ready)."""
RESPONSES = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from([0, 500, 3000]), st.sampled_from([0, 200]), st.sampled_from([10, 20]),
        st.sampled_from([0, 100, 333]), st.sampled_from([ALWAYS, 20_000]),
    ),
    min_size=1,
    max_size=10,
)  # fmt: skip


@dataclass
class Plain:
    """The queue by plain rules. arrived: (begin and end of the work on a response, its bytes, its messages)."""

    max_bytes: int
    min_messages: int
    arrived: list[tuple[int, int, int, int]] = field(default_factory=list)
    most: tuple[int, int] = (0, 0)
    idle_us: int = 0
    full_us: int = 0
    full_until: int = 0
    held_back: int = 0

    def queued(self, at: int) -> tuple[int, int]:
        """(bytes, messages) that the application has not taken."""
        left = [0, 0]
        for begin, end, *amounts in self.arrived:
            share = min(max((at - begin) / (end - begin), 0), 1)
            left = [of + amount - int(share * amount) for of, amount in zip(left, amounts, strict=True)]
        return left[0], left[1]

    def is_full(self, at: int) -> bool:
        in_bytes, messages = self.queued(at)
        return in_bytes >= self.max_bytes or messages >= self.min_messages

    def until(self, at: int) -> int:
        """When the queue is no longer full."""
        low, high = at, max(end for _, end, _, _ in self.arrived) + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.is_full(middle) else (low, middle)
        return low

    def take(self, now: int, messages: int, size: int, asked_at: int) -> None:
        """A response comes. asked_at: when it was asked for after a backoff, or ALWAYS."""
        before = self.arrived[-1][1] if self.arrived else now
        begin = max(now, before)
        self.arrived.append((begin, begin + US_OF_TEN * messages // 10, size * messages, messages))
        self.idle_us += max(asked_at - before, 0)
        self.most = tuple(map(max, self.most, self.queued(now)))  # type: ignore[assignment]
        if self.is_full(now):
            until = self.until(now)
            self.full_us += max(until - max(now, self.full_until), 0)
            self.full_until = max(self.full_until, until)


def played(responses: list[Response], max_bytes: int, min_messages: int) -> Plain:
    """Each fetcher asks for its responses one after the other, and looks again after each backoff."""
    plain = Plain(max_bytes, min_messages)
    waiting = {of: [each for each in responses if each[0] == of] for of in sorted({each[0] for each in responses})}
    at = {of: (max(own[0][1], own[0][5]), True, ALWAYS) for of, own in waiting.items()}  # when, has it asked, since
    while at:
        of = min(at, key=lambda number: (at[number][0], number))
        now, has_asked, asked_at = at[of]
        _, answer_us, _, messages, size, ready_at = waiting[of][0]
        if has_asked:
            plain.take(now, messages, size, asked_at)
            del waiting[of][0], at[of]
            if waiting[of]:
                at[of] = now + waiting[of][0][2], False, ALWAYS
        elif plain.is_full(now):
            plain.held_back += 1
            at[of] = now + BACKOFF_US, False, NONE
        else:
            at[of] = max(now + answer_us, ready_at), True, now if asked_at == NONE else ALWAYS
    return plain


@given(RESPONSES, st.sampled_from([1, 1500, 4000, 1 << 40]), st.sampled_from([1, 15, 45, 1 << 40]))
def test_a_queue_is_replayed_as_plain_rules_say(responses: list[Response], max_bytes: int, min_messages: int) -> None:
    fetcher, answer_us, gap_us, messages, size, ready_at = map(np.array, zip(*responses, strict=True))
    numbers = np.unique(fetcher, return_inverse=True)[1]
    made = new_records(
        RECORDS_RESPONSE, len(responses), fetcher=numbers, following=following_responses(numbers), answer_us=answer_us,
        gap_us=gap_us, messages=messages, value_bytes=messages * size, ready_at=ready_at,
    )  # fmt: skip
    limits = new_records(THRESHOLDS, 1, max_bytes=max_bytes, min_messages=min_messages, backoff_us=BACKOFF_US)
    pace = ApplicationPace(np.array([0, 10]), np.array([0, US_OF_TEN]))
    sim = new_queue(made, pace, limits, np.array([ALWAYS, NEVER]))
    replay_queue(sim)
    plain, outcome = played(responses, max_bytes, min_messages), sim.outcome[0]
    assert (outcome["most_bytes"], outcome["most_messages"]) == plain.most
    assert (outcome["held_back"], outcome["idle_us"]) == (plain.held_back, plain.idle_us)
    assert outcome["ended_at"] == plain.arrived[-1][1]
    assert 0 <= outcome["full_us"] - plain.full_us <= len(responses), "it is rounded up to whole us"
