"""Connections that share a pool, a consumer's or a broker's, are replayed as plain rules say."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.unit.replay.consumer_memory.traces import pools_of, trace_of
from udfs.columns.arrays import Records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.channels import replay_units
from udfs.replay.consumer_memory.state import Traces
from udfs.replay.consumer_memory.traces import with_wakes
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.replay.shared.window import Window

COMPLETE, RELEASE, POLL, REQUEST, ARRIVE, RESPONSE, SELECT = range(7)
SLEEP_US = 300_000
COUNTED = (
    "messages", "bytes", "records", "waits", "wait_us", "longest_us", "starved", "pinned", "unpooled", "too_large",
    "stuck", "depleted_us", "used_max", "smallest_pool", "ended_at",
)  # fmt: skip


def drawn(seed: int, threads: int, us_per_record: int) -> tuple[Traces, Records, list[int]]:
    """(the messages of a unit, the settings of one lane, the privileged connections)."""
    rng = np.random.default_rng(seed)
    exchanges, known = list[tuple[int, int, int, int, int]](), list[int]()
    step = 40_000 if threads else 10
    for connection in range(int(rng.integers(2, 8))):
        requested = complete = int(rng.integers(0, 2)) * step
        for _ in range(int(rng.integers(1, 4))):
            requested = max(requested, complete) if threads or rng.random() < 0.5 else requested
            begins = requested if threads else max(requested, complete) + int(rng.integers(0, 3)) * step
            complete = begins + int(rng.integers(0, 3)) * step
            held = int(rng.choice([0, step, 3 * step, 20 * step, NEVER], p=[0.3, 0.2, 0.3, 0.17, 0.03]))
            exchanges.append((connection, requested, complete, int(rng.choice([0, 1, 33, 70, 99, 250])), held))
            known.append(begins)
            requested += int(rng.integers(0, 4)) * step
    order = sorted(range(len(exchanges)), key=lambda i: (exchanges[i][1], exchanges[i][0]))
    privileged = [number for number in range(7) if rng.random() < 0.15]
    trace = trace_of(exchanges, privileged, size_known_at=[known[i] for i in order])
    trace.messages["records"] = rng.integers(0, 9, len(exchanges)) if us_per_record != AS_CAPTURED else 0
    pools = pools_of(
        int(rng.choice([90, 105, 260])), is_strict=bool(rng.random() < 0.3), us_per_record=us_per_record,
        max_poll_records=int(rng.choice([1, 3, 500])),
    )  # fmt: skip
    pools["network_threads"], pools["seed"] = threads, seed
    if threads:
        answered = rng.integers(0, 6, len(exchanges)) * step
        trace.messages["response_us"] = np.where(rng.random(len(exchanges)) < 0.2, NEVER, answered)
        trace = with_wakes(trace)
    return trace, pools, privileged


@dataclass
class Channel:
    messages: list[int]
    is_privileged: bool
    since: int | None = None
    is_reading: bool = False
    overtaken: int = 0
    is_starved: bool = False
    thread: int = 0


@dataclass
class Plain:
    """A lane of a pool by plain rules."""

    trace: Traces
    pool: np.void
    channels: list[Channel]
    events: list[tuple[int, int, int]] = field(default_factory=list)
    there: set[int] = field(default_factory=set)
    pooled: dict[int, int] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    queue: list[int] = field(default_factory=list)
    scheduled: set[int] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    free: int = 0
    random: int = 0
    now: int = 0
    depleted_since: int | None = None
    is_busy: bool = False

    def message(self, number: int, name: str) -> int:
        return int(self.trace.messages[name][number])

    def channel(self, number: int) -> Channel:
        return self.channels[self.message(number, "connection")]

    def push(self, time: int, kind: int, number: int = 0) -> None:
        heapq.heappush(self.events, (time, kind, number))

    def shuffled(self, numbers: list[int]) -> list[int]:
        """Fisher-Yates with Knuth's MMIX generator."""
        for place in range(len(numbers) - 1, 0, -1):
            self.random = (self.random * 6364136223846793005 + 1442695040888963407) % (1 << 64)
            other = (self.random >> 33) % (place + 1)
            numbers[place], numbers[other] = numbers[other], numbers[place]
        return numbers

    def wait(self, channel: Channel) -> None:
        channel.since, channel.overtaken = self.now, 0
        self.counts["waits"] += 1

    def end_depletion(self) -> None:
        self.counts["depleted_us"] += 0 if self.depleted_since is None else self.now - self.depleted_since
        self.depleted_since = None

    def take(self, number: int) -> bool:
        """A message takes its memory. Returns whether its connection goes on, or is closed."""
        size, channel, strict = self.message(number, "size"), self.channel(number), bool(self.pool["is_strict"])
        if size > self.pool["max_allocation"]:
            self.counts["too_large"] += 1
            self.counts["smallest_pool"] = max(self.counts["smallest_pool"], size)
            channel.messages.clear()
            return True
        is_refused = size > 0 and self.free < (size if strict else 1)
        if is_refused:
            self.depleted_since = self.now if self.depleted_since is None else self.depleted_since
            if not channel.is_privileged:
                return False
            self.counts["unpooled"] += 1
        elif size > 0:
            used = sum(self.pooled.values())
            needed = used + size if strict else max(used + 1, size)
            self.counts["smallest_pool"] = max(self.counts["smallest_pool"], needed)
            self.free -= size
            self.pooled[number] = size
            self.counts["used_max"] = max(self.counts["used_max"], used + size)
            self.end_depletion()
        for name, more in (("messages", 1), ("bytes", size), ("records", self.message(number, "records"))):
            self.counts[name] += more
        for other in (other for other in self.channels if other is not channel and other.since is not None):
            other.overtaken += 1
            if other.overtaken >= len(self.channels) and not other.is_starved:
                other.is_starved = True
                self.counts["starved"] += 1
        rest = self.message(number, "complete_at") - self.message(number, "size_known_at")
        channel.is_reading = rest > 0
        if rest > 0:
            self.push(self.now + rest, COMPLETE, number)
        else:
            self.finish(number)
        return True

    def finish(self, number: int) -> None:
        channel, complete_at = self.channel(number), self.message(number, "complete_at")
        channel.messages.pop(0)
        channel.is_reading = False
        if self.is_paced(number):
            self.queue.append(number)
            self.left[number] = self.message(number, "records")
            if not self.is_busy:
                self.is_busy = True
                self.push(self.now, POLL)
            return
        if self.message(number, "held_us") == NEVER:
            self.counts["pinned"] += 1
        else:
            self.push(self.now + self.message(number, "held_us"), RELEASE, number)
        response_us = self.message(number, "response_us")
        if self.pool["network_threads"] and self.now > complete_at and response_us != NEVER:
            self.push(self.now + response_us, RESPONSE, number)
        following = self.message(number, "next_request")
        if following != NONE and self.message(following, "requested_at") >= complete_at:
            self.push(self.message(following, "requested_at") + self.now - complete_at, REQUEST, following)

    def is_paced(self, number: int) -> bool:
        return self.pool["us_per_record"] != AS_CAPTURED and self.message(number, "records") > 0

    def may_read(self, channel: Channel) -> bool:
        return bool(channel.messages) and channel.messages[0] in self.there and not channel.is_reading

    def read(self, channel: Channel) -> None:
        while channel.since is None and self.may_read(channel):
            if not self.take(channel.messages[0]):
                self.wait(channel)

    def read_muted(self, thread: int | None) -> None:
        """Muted connections read one message each, again and again, as long as there is memory."""
        any_read = True
        while any_read and self.free > 0 and any(channel.since is not None for channel in self.channels):
            muted = [number for number, channel in enumerate(self.channels)
                     if channel.since is not None and thread in (None, channel.thread)]  # fmt: skip
            if self.free < self.pool["size"] // 10:
                muted = self.shuffled(muted)
            any_read = False
            for channel in (self.channels[number] for number in muted):
                since = channel.since or 0
                if self.take(channel.messages[0]):
                    any_read = True
                    self.counts["wait_us"] += self.now - since
                    self.counts["longest_us"] = max(self.counts["longest_us"], self.now - since)
                    channel.since = None
                    if self.may_read(channel):
                        self.wait(channel)

    def poll_thread(self, channel: Channel) -> None:
        if self.pool["network_threads"]:
            self.read_muted(channel.thread)

    def next_poll(self, thread: int) -> int:
        """What wakes the thread: what happens on those of its connections that do not wait for memory."""
        wakes = [time for time, number in zip(self.trace.wakes.time, self.trace.wakes.connection, strict=True)
                 if self.channels[number].thread == thread and self.channels[number].since is None]  # fmt: skip
        last = max((time for time in wakes if time <= self.now), default=self.now)
        until = self.now - (self.now - last) % SLEEP_US + SLEEP_US
        return int(min([until, *(time for time in wakes if time > self.now)]))

    def release(self, number: int) -> None:
        channel, following = self.channel(number), self.message(number, "next_request")
        if number in self.pooled:
            self.free += self.pooled.pop(number)
            self.end_depletion()
        in_turn = following != NONE and self.message(following, "requested_at") >= self.message(number, "complete_at")
        if self.is_paced(number) and in_turn:
            self.push(self.now, REQUEST, following)
        if not self.pool["network_threads"]:
            self.read_muted(None)
            return
        if self.message(number, "held_us") == 0:
            self.poll_thread(channel)
        for thread in dict.fromkeys(of.thread for of in self.channels if of.since is not None):
            if thread not in self.scheduled:
                self.scheduled.add(thread)
                self.push(self.next_poll(thread), SELECT, thread)

    def poll(self) -> None:
        room = int(self.pool["max_poll_records"])
        taken = 0
        while self.queue and taken < room:
            number = self.queue[0]
            part = min(self.left[number], room - taken)
            taken += part
            self.left[number] -= part
            if self.left[number] == 0:
                self.push(self.now, RELEASE, self.queue.pop(0))
        self.is_busy = taken > 0
        if taken:
            self.push(self.now + taken * int(self.pool["us_per_record"]), POLL)

    def happen(self, kind: int, number: int) -> None:
        if kind == POLL:
            self.poll()
        elif kind == SELECT:
            self.scheduled.discard(number)
            self.read_muted(number)
        elif kind == RELEASE:
            self.release(number)
        elif kind == REQUEST:
            late = self.now - self.message(number, "requested_at")
            self.push(self.message(number, "size_known_at") + late, ARRIVE, number)
            following = self.message(number, "next_request")
            if following != NONE and self.message(following, "requested_at") < self.message(number, "complete_at"):
                self.push(self.message(following, "requested_at") + late, REQUEST, following)
        else:
            if kind == COMPLETE:
                self.finish(number)
            if kind == ARRIVE:
                self.there.add(number)
            if kind != RESPONSE:
                self.read(self.channel(number))
            self.poll_thread(self.channel(number))

    def play(self) -> dict[str, int]:
        self.free, self.random = int(self.pool["size"]), int(self.pool["seed"])
        for channel in self.channels:
            self.push(self.message(channel.messages[0], "requested_at"), REQUEST, channel.messages[0])
        if self.pool["network_threads"]:
            for place, number in enumerate(self.shuffled([*range(len(self.channels))])):
                self.channels[number].thread = place % int(self.pool["network_threads"])
        while self.events:
            time, kind, number = heapq.heappop(self.events)
            self.now = max(self.now, time)
            self.happen(kind, number)
        self.end_depletion()
        self.counts["stuck"] = sum(channel.since is not None for channel in self.channels)
        self.counts["ended_at"] = self.now
        return self.counts


def plain(trace: Traces, pools: Records, privileged: list[int]) -> dict[str, int]:
    connection = trace.messages["connection"]
    channels = [Channel(np.flatnonzero(connection == number).tolist(), number in privileged)
                for number in range(len(trace.connections))]  # fmt: skip
    return Plain(trace, pools[0], channels).play()


@pytest.mark.parametrize("first", [0, 25, 50])
@pytest.mark.parametrize(
    ("threads", "us_per_record"), [(0, AS_CAPTURED), (0, 10), (1, AS_CAPTURED), (2, AS_CAPTURED)],
    ids=["a consumer", "a consumer with a pace", "one network thread", "two network threads"],
)  # fmt: skip
def test_a_pool_is_replayed_as_plain_rules_say(threads: int, us_per_record: int, first: int) -> None:
    waits = 0
    for seed in range(first, first + 25):
        trace, pools, privileged = drawn(seed, threads, us_per_record)
        expected = plain(trace, pools, privileged)
        outcome = replay_units(trace, pools[np.newaxis]).outcomes[0, 0]
        assert (seed, {name: int(outcome[name]) for name in COUNTED}) == (seed, expected)
        waits += expected["waits"]
    assert waits > 20


@pytest.mark.parametrize(("held_us", "stuck"), [(NEVER, 1), (500, 0)])
def test_connections_that_wait_at_the_windows_end_are_stuck_if_no_memory_is_to_come_back(
    held_us: int, stuck: int
) -> None:
    """The second one waits for what the first one holds. A message to a third one is on its way."""
    trace = trace_of([(0, 0, 10, 900, held_us), (1, 0, 10, 900, 0), (2, 100, 300, 1, 0)])
    (outcome,) = replay_units(trace, pools_of(900)[np.newaxis], Window(0, 200)).outcomes[0]
    assert (outcome["waits"], outcome["stuck"]) == (1, stuck)
