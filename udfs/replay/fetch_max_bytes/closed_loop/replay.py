"""The closed loop of one reader: its nodes replayed in every lane, summed up and compared with the capture."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Floats, Ints, Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.fidelity import Verdicts, judge_nodes
from udfs.replay.fetch_max_bytes.closed_loop.intent import Intent
from udfs.replay.fetch_max_bytes.closed_loop.settings import rules_by_node
from udfs.replay.fetch_max_bytes.closed_loop.simulation import run_lane
from udfs.replay.fetch_max_bytes.closed_loop.state import (
    GIVEN_UP,
    LANE_OUTCOME,
    LANE_RESPONSE,
    NO_BACKLOG,
    ReaderLanes,
    ReaderSim,
    Unit,
    new_captured_lane,
    new_sim,
)
from udfs.replay.fetch_max_bytes.closed_loop.timeline import BUCKETS, align_lanes, new_timeline, reader_time, stays_of
from udfs.replay.fetch_max_bytes.settings import FetchLanes
from udfs.replay.fetch_max_bytes.state import Reader, no_sums
from udfs.replay.shared.event_heap import pop, push
from udfs.replay.shared.lanes import CAPTURED


class ReplayedReader(NamedTuple):
    """What a reader comes to. backlog: int64[numbers] bytes."""

    outcome: ReaderLanes
    backlog: Ints
    verdicts: Verdicts


def replayed_reader(intent: Intent, reader: Reader, lanes: FetchLanes, response_room: int = 0) -> ReplayedReader:
    """A reader replayed in every lane. response_room: so many responses are kept of each lane."""
    outcome = new_outcome(intent.unit, len(intent.keys), len(lanes.names), response_room)
    replay_reader(intent.unit, lane_rules(intent, reader, lanes), outcome)
    return ReplayedReader(
        outcome, backlogs_of_partitions(intent.unit, len(intent.keys)), judge_nodes(intent, outcome.captured)
    )


def lane_rules(intent: Intent, reader: Reader, lanes: FetchLanes) -> Records:
    """By which rules each node reads in each lane: RULES[nodes, lanes]. What a client does at random is the same in all
    lanes, so that lanes with the same rules are the same.
    """
    seed = zlib.crc32("/".join([lanes.names[CAPTURED], *reader]).encode())
    return rules_by_node(intent.nodes, intent.profiles, intent.largest, lanes, seed)


def new_outcome(unit: Unit, numbers: int, lanes: int, response_room: int = 0, buckets: int = BUCKETS) -> ReaderLanes:
    """The outcome before the first lane. Of each change something may be given up twice: what is buffered, and what is
    under way. buckets: of the timeline.
    """
    given_up_room = 2 * len(unit.changes) if response_room else 0
    return ReaderLanes(
        sums=no_sums(numbers, lanes),
        timeline=new_timeline(lanes, numbers, stays_of(unit.nodes["begin"], unit.nodes["horizon"]), buckets),
        lanes=new_records(LANE_OUTCOME, lanes, is_finished=1),
        catch_up_us=np.full((numbers, lanes), NO_BACKLOG),
        given_up_backlogs=np.zeros(numbers, np.int64),
        captured=new_captured_lane(unit),
        responses=np.zeros((lanes, response_room), LANE_RESPONSE),
        given_up=np.zeros((lanes, given_up_room), GIVEN_UP),
    )


def backlogs_of_partitions(unit: Unit, numbers: int) -> Ints:
    """Bytes that were there of each partition when the capture first asked for it: int64[numbers]."""
    before, partitions = unit.batches["bytes_before"], unit.partitions
    backlog = np.zeros(numbers, np.int64)
    size = before[partitions["backlog_end"]] - before[partitions["start_batch"]]
    np.add.at(backlog, partitions["number"], np.maximum(size, 0))
    return backlog


@kernel
def start_lane(sim: ReaderSim, lane: int) -> None:
    """Set the state to what is captured first."""
    state, start, line, first = sim.state, sim.start, sim.outcome.timeline, NEVER
    for node in range(len(state.nodes)):
        state.nodes[node] = start.nodes[node]
        state.applications[node] = start.applications[node]
        state.meters.meters[node].samples = 0
        first = min(first, start.nodes[node].now)
    line.lanes[lane].bucket = reader_time(line, first) // line.lanes[lane].width
    for p in range(len(state.partitions)):
        state.partitions[p] = start.partitions[p]
        total = sim.outcome.sums.partitions[sim.unit.partitions[p].number, lane]
        total.waiting, total.waiting_since = 0, NEVER
    state.random[0] = sim.rules[0, lane].seed


@kernel
def end_lane(sim: ReaderSim, lane: int) -> None:
    """Sum up the lane's outcome."""
    outcome, nodes = sim.outcome, sim.state.nodes
    for node in range(len(nodes)):
        outcome.lanes[lane].requests += nodes[node].requests
    if lane == 0:
        for p in range(len(sim.state.partitions)):
            outcome.captured.catch_up_us[p] = sim.state.partitions[p].catch_up_us
    hand_on_backlogs(sim)
    for p in range(len(sim.state.partitions)):
        partition, state = sim.unit.partitions[p], sim.state.partitions[p]
        number, leaves = partition.number, state.is_assigned == 0 or state.position >= partition.backlog_end
        if lane == 0 and state.catch_up_us == NEVER and leaves:
            outcome.given_up_backlogs[number] = 1
        outcome.catch_up_us[number, lane] = max(outcome.catch_up_us[number, lane], state.catch_up_us)


@kernel
def hand_on_backlogs(sim: ReaderSim) -> None:
    """Hand a backlog that was not read on to the broker that its partition went to, timed from its beginning."""
    state = sim.state
    for p in range(len(state.partitions)):
        if sim.unit.partitions[p].previous != NONE:
            push(state.moved, state.partitions[p].requested_at, p)
    while state.moved.events[0] > 0:
        _, p = pop(state.moved)
        here, there = state.partitions[p], state.partitions[sim.unit.partitions[p].previous]
        if there.catch_up_us == NEVER and here.requested_at != NEVER:
            here.catch_up_us += here.requested_at - there.requested_at if here.catch_up_us != NEVER else 0
            here.requested_at, there.catch_up_us = there.requested_at, NO_BACKLOG


@kernel
def replay_lanes(sim: ReaderSim) -> None:
    """The reader in every lane; lanes do not affect one another."""
    for lane in range(len(sim.outcome.lanes)):
        start_lane(sim, lane)
        run_lane(sim, lane)
        end_lane(sim, lane)
    align_lanes(sim.outcome.timeline)


def replay_reader(unit: Unit, rules: Records, outcome: ReaderLanes) -> None:
    """Replay a reader in every lane, into the outcome. rules: RULES[nodes, lanes]."""
    replay_lanes(new_sim(unit, rules, outcome))
    by_their_own_clock(outcome, rules["speed"].max(axis=0))


def by_their_own_clock(outcome: ReaderLanes, speed: Floats) -> None:
    """Measure how long waits and backlogs last by the clock of clients, not of the capture.

    speed: float64[lanes], how many times as fast as captured records are produced.
    """
    if (speed == 1.0).all():
        return
    took = outcome.catch_up_us
    took[:] = np.where((took == NEVER) | (took == NO_BACKLOG), took, np.rint(took / speed))
    for waits in (outcome.sums.partitions["longest_us"], outcome.timeline.buckets["wait"].T):
        waits[:] = np.rint(waits / speed)
