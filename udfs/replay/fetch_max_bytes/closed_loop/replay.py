"""The closed loop of readers: replay their nodes in every lane, sum up, and compare lane 0 with the capture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from schemas.tables.values import FOLLOWER
from udfs.columns.arrays import Floats, Ints, Records
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.fetchers import (
    can_be_dealt,
    dealt_of_threads,
    threads_of_follower,
)
from udfs.replay.fetch_max_bytes.closed_loop.fidelity import Verdicts, judge_nodes
from udfs.replay.fetch_max_bytes.closed_loop.intent import Intent
from udfs.replay.fetch_max_bytes.closed_loop.more_consumers import replay_dealt
from udfs.replay.fetch_max_bytes.closed_loop.more_fetchers import common_time
from udfs.replay.fetch_max_bytes.closed_loop.outcomes import new_outcome
from udfs.replay.fetch_max_bytes.closed_loop.settings import rules_by_node
from udfs.replay.fetch_max_bytes.closed_loop.state import NO_BACKLOG, ReaderLanes, Unit
from udfs.replay.fetch_max_bytes.closed_loop.timeline import BUCKETS
from udfs.replay.fetch_max_bytes.closed_loop.together import ReaderInLanes
from udfs.replay.fetch_max_bytes.quotas import OwnQuota, QuotaOf
from udfs.replay.fetch_max_bytes.settings import FetchLanes, Reader
from udfs.replay.shared.lanes import AS_CAPTURED


class Member(NamedTuple):
    """A reader that is replayed, alone or together with those that share quotas with it.

    response_room: how many responses are kept of each lane, at most.
    """

    intent: Intent
    reader: Reader
    response_room: int = 0


class ReplayedReader(NamedTuple):
    """A reader's outcome, the backlog of each partition, int64[numbers], bytes, and the verdicts of fidelity."""

    outcome: ReaderLanes
    backlog: Ints
    verdicts: Verdicts


def replayed_readers(members: Sequence[Member], lanes: FetchLanes) -> list[ReplayedReader]:
    """Replay readers together in every lane."""
    rules = rules_of_members(members, lanes)
    in_lanes = readers_in_lanes(members, [member.intent.unit for member in members], rules, BUCKETS)
    replay_by_clients_clock(in_lanes)
    return [
        ReplayedReader(
            of.outcome,
            backlogs_of_partitions(of.unit, len(member.intent.keys)),
            judge_nodes(member.intent, of.outcome.captured),
        )
        for member, of in zip(members, in_lanes, strict=True)
    ]


def readers_in_lanes(
    members: Sequence[Member], units: Sequence[Unit], rules: Sequence[Records], buckets: int
) -> list[ReaderInLanes]:
    """Readers before their first lane. units: what each reader reads. rules: RULES[nodes, lanes] of each. buckets: the
    number of buckets of the timeline, at most.
    """
    numbers = [len(member.intent.keys) for member in members]
    stays, buckets = common_time(rules, units, numbers, buckets)
    return [
        ReaderInLanes(
            unit, of_reader, new_outcome(unit, count, of_reader.shape[1], member.response_room, buckets, stays)
        )
        for member, unit, of_reader, count in zip(members, units, rules, numbers, strict=True)
    ]


def rules_of_members(members: Sequence[Member], lanes: FetchLanes) -> list[Records]:
    """The rules of each reader's nodes in each lane: RULES[nodes, lanes] of each."""
    rules = [lane_rules(member.intent, member.reader, lanes) for member in members]
    if lanes.deals_fetchers and members[0].reader.kind == FOLLOWER and not can_be_dealt(threads_of(members)):
        for of_reader in rules:
            of_reader["readers"] = AS_CAPTURED
    if len(members) > 1:
        quotas = [lanes.quotas_of(member.reader) for member in members]
        for lane in range(len(lanes.names)):
            share_meters(rules, members, lane, [of_reader[lane] for of_reader in quotas])
    return rules


def share_meters(
    rules: Sequence[Records], members: Sequence[Member], lane: int, quotas: Sequence[OwnQuota | None]
) -> None:  # fmt: skip
    """Number the meters of a lane: each broker has one for each user, client.id or pair of both with a quota, and one
    without a quota for the fetchers of a follower.

    rules: RULES[nodes, lanes] of each reader; the lane's meters are written in place. quotas: one for each reader.
    """
    numbers: dict[tuple[QuotaOf | None, str], int] = {}
    for of, member, quota in zip(rules, members, quotas, strict=True):
        if quota is not None or member.reader.kind == FOLLOWER:
            meter = None if quota is None else quota.meter
            brokers = [member.intent.brokers[broker] for broker in member.intent.nodes.nodes["broker"].tolist()]
            of["meter"][:, lane] = [numbers.setdefault((meter, broker), len(numbers)) for broker in brokers]


def with_known_dealing(members: Sequence[Member], lanes: FetchLanes) -> list[Member]:
    """The members with the numbers by which their partitions are dealt; where Kafka's rule does not say the fetcher,
    the partition is dealt by the captured one.
    """
    threads = threads_of_follower(threads_of(members))
    if not lanes.deals_fetchers or members[0].reader.kind != FOLLOWER or threads is None:
        return list(members)
    found = list[Member]()
    for member, dealt in zip(members, dealt_of_threads(threads), strict=True):
        partitions = np.array(member.intent.unit.partitions)
        partitions["dealt"] = dealt[partitions["number"]]
        unit = member.intent.unit._replace(partitions=partitions)
        found.append(member._replace(intent=member.intent._replace(unit=unit)))
    return found


def threads_of(members: Sequence[Member]) -> list[tuple[str, Sequence[str]]]:
    """The client.id of each reader, and the keys of its partitions."""
    return [(member.reader.client_id, member.intent.keys) for member in members]


def lane_rules(intent: Intent, reader: Reader, lanes: FetchLanes) -> Records:
    """The rules of each node of a reader in each lane: RULES[nodes, lanes]."""
    return rules_by_node(intent.nodes, intent.profiles, intent.work, lanes, reader, intent.brokers)


def backlogs_of_partitions(unit: Unit, numbers: int) -> Ints:
    """The bytes that were there of each partition when the captured reader first asked for it: int64[numbers]."""
    before, partitions = unit.batches["bytes_before"], unit.partitions
    backlog = np.zeros(numbers, np.int64)
    size = before[partitions["backlog_end"]] - before[partitions["start_batch"]]
    np.add.at(backlog, partitions["number"], np.maximum(size, 0))
    return backlog


def replay_by_clients_clock(readers: Sequence[ReaderInLanes]) -> None:
    """Replay readers together in every lane, and write their outcomes, with times by the clients' clock."""
    replay_dealt(readers)
    for reader in readers:
        by_their_own_clock(reader.outcome, reader.rules["speed"].max(axis=0))


def by_their_own_clock(outcome: ReaderLanes, speed: Floats) -> None:
    """Convert the times of waits and backlogs from the capture's clock to the clients' clock.

    speed: float64[lanes], the factor by which records are produced faster than captured.
    """
    if (speed == 1.0).all():
        return
    took = outcome.catch_up_us
    took[:] = np.where((took == NEVER) | (took == NO_BACKLOG), took, np.rint(took / speed))
    for waits in (outcome.sums.partitions["longest_us"], outcome.timeline.buckets["wait"].T):
        waits[:] = np.rint(waits / speed)
