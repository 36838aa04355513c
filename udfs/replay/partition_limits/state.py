"""What a lane of the replay of partition limits is: what it allows, what becomes of the changes, and working memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Floats, Ints
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.placement.brokers import Brokers
from udfs.replay.partition_limits.placement.java_random import java_random
from udfs.replay.partition_limits.placement.limited import Arranged, arranged_for
from udfs.replay.partition_limits.placement.striped import Stripes, stripes_for
from udfs.replay.partition_limits.schedule import UNLIMITED
from udfs.replay.partition_limits.topics import Changes, Topics

NO_LIMIT, MAX_BROKER_PARTITIONS, MAX_PARTITIONS, REQUEST_PARTITIONS, REQUEST_RECORDS, MUTATION_QUOTA = range(6)
REFUSED_BEFORE, AS_CAPTURED, NOT_TRIED = 6, 7, 8
"""What decided about a change; 0: Kafka's own checks alone."""

MOST_PER_REQUEST = 10_000
"""MAX_PARTITIONS_PER_BATCH and MAX_RECORDS_PER_USER_OP."""


class Limits(NamedTuple):
    """What a lane allows: the limits in force at each change, int64[changes], and numbers."""

    broker: Ints  # max.broker.partitions, UNLIMITED for none
    total: Ints  # max.partitions
    per_request: Ints  # int64[1] from here on. 1: today's limits on a request hold
    growth_checked: Ints  # 1: a CreatePartitions request is refused before it makes too many (4.4)
    striped: Ints  # 1: placed by StripedReplicaPlacer, unless max.broker.partitions is set
    mutation_rate: Floats  # float64[1]: controller_mutation_rate in partitions/s, 0 for none
    mutation_burst: Floats


class Outcomes(NamedTuple):
    """What became of each change in a lane, int64[changes]."""

    error: Ints  # Kafka's error code, 0: done
    reason: Ints  # what decided
    limit: Ints  # the limit's value
    present: Ints  # what there was of what it limits
    asked: Ints  # what the change asked for
    broker: Ints  # the broker that would be above the limit, -1 where it is no single one
    absent: Ints  # 1: the topic is not there after it, for its creation was refused


class Workspace(NamedTuple):
    """Working memory of a lane."""

    stripes: Stripes
    arranged: Arranged
    rng: Ints
    added: Ints  # int64[brokers]
    request: Ints  # int64[3]: the request at hand, what refuses it as a whole, records made so far
    tokens: Floats  # by client: what is left of its controller mutation quota
    token_time: Ints
    read: Ints  # int64[2]: the request at hand, and when its broker reads it, us
    muted: Ints  # by connection: until then its broker does not read it, us


class Lane(NamedTuple):
    """A lane while the changes are replayed in it, one after the other: what is asked for, and what has come of it."""

    changes: Changes
    brokers: Brokers
    limits: Limits
    topics: Topics
    work: Workspace
    outcomes: Outcomes


@kernel
def refuse(outcomes: Outcomes, change: int, error: int, reason: int, limit: int, present: int, asked: int) -> bool:
    """Note a refusal. Returns False."""
    outcomes.error[change], outcomes.reason[change], outcomes.limit[change] = error, reason, limit
    outcomes.present[change], outcomes.asked[change] = present, asked
    return False


def no_outcomes(changes: Changes) -> Outcomes:
    """Room for what becomes of the changes."""
    return Outcomes(*(np.zeros(len(changes.time), np.int64) for _ in Outcomes._fields))


def unlimited(changes: int) -> Limits:
    """No limit on so many changes, placement as the proposal has it."""
    none = np.zeros(1, np.int64)
    free = (np.full(changes, UNLIMITED), np.full(changes, UNLIMITED))
    return Limits(*free, none, none, none, np.zeros(1), np.zeros(1))


def workspace(brokers: Brokers, changes: Changes, burst: float = 0.0) -> Workspace:
    """Working memory; every client's bucket is full with `burst` partitions at first."""
    clients, connections = (int(of.max(initial=0)) + 1 for of in (changes.client, changes.connection))
    first = int(changes.time.min(initial=0))
    return Workspace(
        stripes_for(brokers), arranged_for(brokers), java_random(0), np.zeros(len(brokers.rack), np.int64),
        np.array([-1, 0, 0], np.int64), np.full(clients, burst), np.full(clients, first),
        np.array([-1, 0], np.int64), np.full(connections, first),
    )  # fmt: skip
