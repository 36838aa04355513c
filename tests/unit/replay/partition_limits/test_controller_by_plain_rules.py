"""What the controller decides about drawn changes is what the rules say, lane by lane and change by change."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from schemas.wire.errors import (
    INVALID_PARTITIONS,
    INVALID_REPLICATION_FACTOR,
    POLICY_VIOLATION,
    THROTTLING_QUOTA_EXCEEDED,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tests.unit.replay.partition_limits.clusters import CLUSTER_LIMIT, MUTATION_RATE, changing, settings_of
from tests.unit.replay.partition_limits.test_curve import history
from udfs.columns.arrays import Records, read_only
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.replay.partition_limits.controller import replay_lanes
from udfs.replay.partition_limits.schedule import UNLIMITED
from udfs.replay.partition_limits.state import (
    AUTO_CREATE,
    CAPTURED_ERROR,
    CHANGE,
    CREATE,
    DELETE,
    GROW,
    MAX_PARTITIONS,
    MUTATION_QUOTA,
    NO_LIMIT,
    NOT_TRIED,
    NOTHING,
    REFUSED_BEFORE,
    REQUEST_PARTITIONS,
    REQUEST_RECORDS,
    VANISH,
    new_sim,
)
from udfs.replay.partition_limits.topics import MOVED, slot_in_chunk

MOST = 10_000
BEYOND_ROOM = 7
"""So many replicas does a change ask for, in some of the changes, for which there is no room."""


class Lane(NamedTuple):
    """kraft: whether Kafka's limits on requests hold. checks_growth: also on a CreatePartitions request as a whole.
    limits: (first time, max.partitions).
    """

    settings: dict[str, Any]
    kraft: bool
    checks_growth: bool = False
    rate: float = 0.0
    limits: tuple[tuple[int, int], ...] = ((-UNLIMITED, UNLIMITED),)


LANES = (
    Lane({"kafka": "4.3"}, kraft=True),
    Lane({"kafka": "4.4"}, kraft=True, checks_growth=True),
    Lane({"kafka": "2.7", MUTATION_RATE: 3.0}, kraft=False, rate=3.0),
    Lane({"kafka": "4.4", MUTATION_RATE: 2.5}, kraft=True, checks_growth=True, rate=2.5),
    Lane({"kafka": "kip", CLUSTER_LIMIT: changing(40, (3_000_000, 25), (6_000_000, 60))}, kraft=False,
         limits=((-UNLIMITED, 40), (3_000_000, 25), (6_000_000, 60))),
)  # fmt: skip


def drawn(chance: random.Random, scale: int) -> Records:
    """Requests with one to three changes each. scale: how many partitions the larger topics have."""
    rows, time = list[dict[str, int]](), 0
    for request in range(chance.randint(3, 12)):
        time += chance.choice([0, 10, 400_000, 3_000_000])
        kind = chance.choice([CREATE] * 5 + [GROW] * 3 + [AUTO_CREATE, DELETE, DELETE, VANISH, NOTHING])
        together = 1 if kind in (AUTO_CREATE, VANISH, NOTHING) else chance.randint(1, 3)
        same = {"time": time, "request": request, "kind": kind, "client": chance.randint(0, 1)}
        same |= {"connection": chance.randint(0, 1), "is_strict": chance.randint(0, 2) > 0}
        same["by_broker"] = kind == AUTO_CREATE and chance.randint(0, 1)
        for topic in chance.sample(range(4), together):
            factor, configs = chance.choice([0, 1, 1, 1, 2]) if scale < MOST else 1, chance.choice([0, 2])
            partitions = chance.choice([0, 1, 3, 7, scale // 2, scale - 1, scale, scale + 1])
            slots = 2 * max(partitions, 1) - (BEYOND_ROOM if chance.randint(0, 9) == 0 and partitions < scale else 0)
            rows.append(same | {
                "topic": topic, "partitions": partitions, "replication_factor": factor, "configs": configs,
                "slots": max(slots, 0), "captured_error": chance.choice([0] * 9 + [41]), "is_internal": topic == 3,
                "validate_only": chance.randint(0, 5) == 0 and kind in (CREATE, GROW),
            })  # fmt: skip
    columns = {name: [int(row[name]) for row in rows] for name in rows[0]}
    changes = new_records(CHANGE, len(rows), named=NONE, **columns)
    changes["slot"] = np.cumsum(changes["slots"]) - changes["slots"]
    return changes


@dataclass
class Topic:
    partitions: int = 0
    factor: int = 0
    was_refused: bool = False


@dataclass
class Controller:
    """A lane's cluster, by the rules of ReplicationControlManager, KIP-599 and KIP-578."""

    lane: Lane
    changes: list[Any]
    topics: dict[int, Topic] = field(default_factory=lambda: {topic: Topic() for topic in range(4)})
    replicas: int = 0
    tokens: dict[int, tuple[float, int]] = field(default_factory=dict)
    muted: dict[int, int] = field(default_factory=dict)
    read: dict[int, int] = field(default_factory=dict)
    judged: dict[int, tuple[int, int]] = field(default_factory=dict)
    made: dict[int, int] = field(default_factory=dict)

    def decide(self, number: int) -> tuple[int, ...]:
        """(error, what decided, its limit, how many there were, how many more were asked for) of a change."""
        change = self.changes[number]
        topic, kind = self.topics[change.topic], change.kind
        if kind == NOTHING or (kind == AUTO_CREATE and topic.partitions > 0 and not change.captured_error):
            if kind == AUTO_CREATE:
                self.judge(number)
            return 0, NOT_TRIED, 0, self.replicas, 0
        if change.captured_error:
            return change.captured_error, CAPTURED_ERROR, 0, self.replicas, 0
        if kind == VANISH:
            return self.remove(change)
        if kind == DELETE:
            return self.delete(change)
        self.judge(number)
        return self.make(change)

    def remove(self, change: Any) -> tuple[int, ...]:
        before, topic = self.replicas, self.topics[change.topic]
        self.replicas -= 0 if change.is_internal else topic.partitions * topic.factor
        topic.partitions = topic.factor = 0
        return 0, NO_LIMIT, 0, before, 0

    def delete(self, change: Any) -> tuple[int, ...]:
        topic = self.topics[change.topic]
        if not topic.partitions:
            return UNKNOWN_TOPIC_OR_PARTITION, REFUSED_BEFORE if topic.was_refused else NO_LIMIT, 0, 0, 0
        if not self.has_quota(change, topic.partitions):
            return THROTTLING_QUOTA_EXCEEDED, MUTATION_QUOTA, int(self.lane.rate), 0, topic.partitions
        return self.remove(change)

    def error_of(self, change: Any) -> int:
        partitions = self.topics[change.topic].partitions
        if change.kind == GROW:
            wrong = INVALID_PARTITIONS if change.partitions <= partitions else 0
            return wrong if partitions else UNKNOWN_TOPIC_OR_PARTITION
        if partitions:
            return TOPIC_ALREADY_EXISTS
        if change.replication_factor <= 0:
            return INVALID_REPLICATION_FACTOR
        return 0 if change.partitions > 0 else INVALID_PARTITIONS

    def new_of(self, change: Any) -> int:
        return max(change.partitions - (self.topics[change.topic].partitions if change.kind == GROW else 0), 0)

    def judge(self, number: int) -> None:
        """Judge the request as a whole, when its first change is decided."""
        request, kind = self.changes[number].request, self.changes[number].kind
        if request in self.judged:
            return
        parts = [change for change in self.changes[number:] if change.request == request]
        valid = [change for change in parts if not change.captured_error and not self.error_of(change)]
        partitions = sum(map(self.new_of, valid if kind == GROW else parts))
        records = sum(self.new_of(change) + 1 + change.configs for change in valid)
        self.judged[request], self.made[request] = (NO_LIMIT, 0), 0
        if self.lane.kraft and (kind != GROW or self.lane.checks_growth):
            if partitions > MOST:
                self.judged[request] = REQUEST_PARTITIONS, partitions
            elif kind != GROW and records > MOST:
                self.judged[request] = REQUEST_RECORDS, records

    def has_quota(self, change: Any, cost: int) -> bool:
        rate = self.lane.rate
        if not rate or change.by_broker:
            return True
        burst = 11 * rate
        time = self.read.setdefault(change.request, max(change.time, self.muted.get(change.connection, -UNLIMITED)))
        tokens, since = self.tokens.get(change.client, (burst, time))
        tokens = min(burst, tokens + max(time - since, 0) * rate / 1_000_000)
        allowed = tokens >= 0 or not change.is_strict
        tokens -= cost if allowed else 0
        self.tokens[change.client] = tokens, max(since, time)
        is_told = change.is_strict and allowed  # a strict client that was served is not throttled
        if tokens < 0 and not is_told and change.kind != AUTO_CREATE:
            self.muted[change.connection] = time + int(-tokens / rate * 1_000_000) + 1000
        return allowed

    def make(self, change: Any) -> tuple[int, ...]:
        topic = self.topics[change.topic]
        error = self.error_of(change)
        if error:
            is_consequence = error == UNKNOWN_TOPIC_OR_PARTITION and topic.was_refused
            return error, REFUSED_BEFORE if is_consequence else NO_LIMIT, 0, topic.partitions, 0
        factor = topic.factor if change.kind == GROW else change.replication_factor
        made, told = self.allowed(change, self.new_of(change), factor)
        if change.validate_only:
            return told
        if made:
            topic.partitions, topic.factor = topic.partitions + made, factor
            self.replicas += 0 if change.is_internal else made * factor
        if change.kind != GROW:
            topic.was_refused = not made
        return told

    def allowed(self, change: Any, new: int, factor: int) -> tuple[int, tuple[int, ...]]:
        """(how many of the new partitions are made, the outcome)."""
        by, counted = self.judged[change.request]
        told: tuple[int, ...] = 0, NO_LIMIT, 0, self.replicas, new * factor
        if by != NO_LIMIT:
            return 0, (POLICY_VIOLATION, by, MOST, 0, counted)
        if not self.has_quota(change, new):
            return 0, (THROTTLING_QUOTA_EXCEEDED, MUTATION_QUOTA, int(self.lane.rate), 0, new)
        made = new
        if self.lane.kraft and change.kind == GROW:
            before = self.made[change.request]
            made = min(new, MOST - before)
            self.made[change.request] += made
            if made < new:
                told = UNKNOWN_SERVER_ERROR, REQUEST_RECORDS, MOST, before, new
        limit = [value for since, value in self.lane.limits if since <= change.time][-1]
        replicas, is_exempt = made * factor, change.is_internal or change.by_broker
        if made and not is_exempt and self.replicas + replicas > limit:
            return 0, (POLICY_VIOLATION, MAX_PARTITIONS, limit, self.replicas, replicas)
        if made and replicas > change.slots:
            return 0, (POLICY_VIOLATION, REQUEST_PARTITIONS, change.slots, 0, replicas)
        return made, told


def check_lanes(changes: Records) -> set[int]:
    """Compare every outcome in every lane. Returns what decided."""
    settings = settings_of({str(number): lane.settings for number, lane in enumerate(LANES)})
    of = history([], {})._replace(changes=read_only(changes), topics=4)
    sim, lanes = new_sim(of, settings, len(settings.names)), len(settings.names)
    replay_lanes(sim, read_only(np.zeros(0, np.int64)), np.zeros((lanes, 1, 0), np.int64))
    plain = changes.view(np.recarray)
    names = ["error", "decided_by", "limit", "present", "requested"]
    for number, lane in enumerate(LANES):
        controller = Controller(lane, list(plain))
        for change in range(len(changes)):
            expected = controller.decide(change)
            found = sim.outcomes[number + 1, change]
            assert (number, change, *(int(found[name]) for name in names)) == (number, change, *expected)
            topic = controller.topics[int(plain[change].topic)]
            assert bool(found["is_absent"]) == (topic.was_refused and not topic.partitions)
        assert sim.replicas[number + 1] == controller.replicas
    return set(sim.outcomes["decided_by"].ravel().tolist())


@pytest.mark.parametrize("seeds", [range(first, first + 15) for first in range(0, 60, 15)], ids=str)
def test_every_change_is_decided_as_the_rules_say(seeds: range) -> None:
    decided = set[int]()
    for seed in seeds:
        decided |= check_lanes(drawn(random.Random(seed), 30))  # noqa: S311  (not for secrets)
    assert {NO_LIMIT, MAX_PARTITIONS, MUTATION_QUOTA, REFUSED_BEFORE, CAPTURED_ERROR, NOT_TRIED} <= decided


@pytest.mark.parametrize("seeds", [range(first, first + 6) for first in range(100, 124, 6)], ids=str)
def test_requests_for_ten_thousand_partitions_are_decided_as_the_rules_say(seeds: range) -> None:
    decided = set[int]()
    for seed in seeds:
        decided |= check_lanes(drawn(random.Random(seed), MOST))  # noqa: S311  (not for secrets)
    assert {REQUEST_PARTITIONS, REQUEST_RECORDS} <= decided


def test_the_slots_of_a_partition_are_those_of_its_place_in_the_chunk_unless_it_was_moved() -> None:
    """The chunk has the partitions 2, 3 and 4 with two replicas each; partition 3 was moved elsewhere."""
    changes = new_records(CHANGE, 1, slot=10, slots=16)
    sim = new_sim(history([], {})._replace(changes=read_only(changes), topics=1), settings_of({}))
    sim.chunks["first_partition"], sim.chunks["partitions"], sim.chunks["replication_factor"] = 2, 3, 2
    sim.slots[12:14] -= MOVED
    found = [slot_in_chunk(sim, 0, partition) for partition in range(7)]
    assert found == [NONE, NONE, 10, NONE, 14, NONE, NONE]
    sim.chunks["replication_factor"] = 0
    assert slot_in_chunk(sim, 0, 2) == NONE
