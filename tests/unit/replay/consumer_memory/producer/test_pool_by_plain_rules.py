"""Batches in a BufferPool by captured times are replayed as plain rules say, one event at a time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
import pytest

from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.producer.batches import BUFFERED_BATCH
from udfs.replay.consumer_memory.producer.captured_times import replay_lanes
from udfs.replay.consumer_memory.producer.state import BUFFER_OUTCOME, new_sim
from udfs.replay.consumer_memory.settings import BUFFER_SETTINGS
from udfs.replay.consumer_memory.usage import new_meter

RELEASE, EXPIRE, ALLOCATE, SEND = range(4)


def drawn(seed: int) -> tuple[Records, Records]:
    """(batches, settings of two lanes). Many things happen at the same time."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    appended_at, held_us = np.sort(rng.integers(0, 30, n)) * 10, rng.integers(0, 12, n) * 10
    batches = new_records(
        BUFFERED_BATCH, n, appended_at=appended_at, size=rng.choice([3, 10, 17, 30], n), held_us=held_us,
        sending_us=np.minimum(held_us, rng.integers(0, 5, n) * 10), may_grow=rng.integers(0, 2, n),
        filled_at=appended_at + rng.integers(-1, 8, n) * 10,
    )  # fmt: skip
    return batches, new_records(
        BUFFER_SETTINGS, 2, buffer_memory=rng.choice([16, 20, 29, 41, 1000], 2), batch_size=rng.choice([5, 10, 20], 2),
        max_block_us=rng.choice([30, 70, 1000]), threads=rng.integers(1, 4),
    )  # fmt: skip


@dataclass
class Waiter:
    number: int
    size: int
    has: int = 0


@dataclass
class Lane:
    """A lane by plain rules. waited: how long each batch waited under the captured settings; filled in if the lane is
    captured.
    """

    batches: Records
    memory: int
    sizes: list[int]
    max_block_us: int
    threads: int
    waited: dict[int, int]
    is_captured: bool
    events: list[tuple[int, int, int]] = field(default_factory=list)
    queue: list[Waiter] = field(default_factory=list)
    release_at: dict[int, int] = field(default_factory=dict)
    lingering: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    free: int = 0
    used: int = 0

    def count(self, name: str, more: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + more

    def note_most(self, name: str, value: int) -> None:
        self.counts[name] = max(self.counts.get(name, 0), value)

    def grant(self, number: int, time: int) -> None:
        batch = self.batches[number]
        waited, held = time - int(batch["appended_at"]), int(batch["held_us"])
        if self.is_captured:
            self.waited[number] = min(waited, held)
            self.count("late", int(time > max(batch["filled_at"], batch["appended_at"])))
        self.count("granted")
        self.note_most("longest_us", waited)
        self.used += self.sizes[number]
        self.note_most("used_max", self.used)
        self.release_at[number] = time + held - self.waited.get(number, 0)
        heapq.heappush(self.events, (self.release_at[number], RELEASE, number))
        heapq.heappush(self.events, (max(self.release_at[number] - int(batch["sending_us"]), time), SEND, number))
        self.lingering.append(number)
        self.look(time)

    def look(self, time: int) -> None:
        """The sender sends what lingers, if a batch waits."""
        if self.queue:
            for number in self.lingering:
                earlier = time + int(self.batches["sending_us"][number])
                if earlier < self.release_at.get(number, 0):
                    self.release_at[number] = earlier
                    heapq.heappush(self.events, (earlier, RELEASE, number))
            self.lingering.clear()

    def give_back(self, size: int, time: int) -> None:
        """Memory is free: the first that waits takes it, and the next one only once the first has all that it needs."""
        self.free += size
        woken = []
        while self.queue and self.free:
            waiter = self.queue[0]
            part = min(self.free, waiter.size - waiter.has)
            waiter.has += part
            self.free -= part
            if waiter.has == waiter.size:
                woken.append(self.queue.pop(0))
        for waiter in woken:
            self.grant(waiter.number, time)

    def happen(self, time: int, kind: int, number: int) -> None:
        waiting = [waiter for waiter in self.queue if waiter.number == number]
        size = self.sizes[number]
        if kind == ALLOCATE and size > self.memory:
            self.count("too_large")
        elif kind == ALLOCATE and size <= self.free:
            self.free -= size
            self.grant(number, time)
        elif kind == ALLOCATE:
            self.count("waits")
            self.queue.append(Waiter(number, size))
            heapq.heappush(self.events, (time + self.max_block_us, EXPIRE, number))
        elif kind == EXPIRE:
            self.count("exhausted")
            self.queue.remove(waiting[0])
            self.give_back(waiting[0].has, time)
        elif kind == RELEASE:
            del self.release_at[number]
            self.used -= size
            self.give_back(size, time)
            self.look(time)
        else:
            self.look(time)

    def is_over(self, time: int, kind: int, number: int) -> bool:
        """Whether an event of a batch has been overtaken by another one."""
        if kind == EXPIRE:
            return number not in [waiter.number for waiter in self.queue]
        release_at = self.release_at.get(number, NEVER)
        sent_at = release_at - int(self.batches["sending_us"][number])
        return kind != ALLOCATE and time != (release_at if kind == RELEASE else sent_at)

    def play(self) -> dict[str, int]:
        now = began_at = int(self.batches["appended_at"][0])
        self.free = self.memory
        self.events = [(int(at), ALLOCATE, number) for number, at in enumerate(self.batches["appended_at"])]
        while self.events:
            time, kind, number = heapq.heappop(self.events)
            if not self.is_over(time, kind, number):
                if kind != SEND:
                    self.count("wait_us", min(len(self.queue), self.threads) * (time - now))
                    now = time
                self.happen(time, kind, number)
        return self.counts | {"began_at": began_at, "ended_at": now}


def plain(batches: Records, settings: Records) -> list[dict[str, int]]:
    """The outcomes of both lanes."""
    waited: dict[int, int] = {}
    outcomes = []
    for lane, rules in enumerate(settings):
        sizes = [
            max(min(int(batch["size"]), int(settings["batch_size"][0])) if batch["may_grow"] else int(batch["size"]),
                int(rules["batch_size"]))
            for batch in batches
        ]  # fmt: skip
        limits = int(rules["buffer_memory"]), sizes, int(rules["max_block_us"]), int(rules["threads"])
        outcomes.append(Lane(batches, *limits, waited, is_captured=lane == 0).play())
    return outcomes


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_each_lane_is_replayed_as_plain_rules_say(first: int) -> None:
    names = (
        "granted", "exhausted", "too_large", "late", "waits", "wait_us", "longest_us", "used_max", "began_at",
        "ended_at",
    )  # fmt: skip
    for seed in range(first, first + 40):
        batches, settings = drawn(seed)
        sim = new_sim(batches, settings, new_meter(), np.zeros(2, BUFFER_OUTCOME))
        replay_lanes(sim)
        for lane, outcome in enumerate(plain(batches, settings)):
            found = dict(zip(names, sim.outcomes[[*names]][lane].tolist(), strict=True))
            assert (seed, lane, found) == (seed, lane, {name: outcome.get(name, 0) for name in names})
