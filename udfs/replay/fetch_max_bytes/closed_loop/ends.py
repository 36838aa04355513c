"""How a lane of a reader begins and ends."""

from __future__ import annotations

from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.simulation import note_rest
from udfs.replay.fetch_max_bytes.closed_loop.state import NO_BACKLOG, ReaderSim
from udfs.replay.fetch_max_bytes.closed_loop.timeline import reader_time
from udfs.replay.shared.event_heap import pop, push


@kernel
def start_lane(sim: ReaderSim, lane: int) -> int:
    """Set the state to the begin of the captured time; returns when that is (us)."""
    state, start, line, first = sim.state, sim.start, sim.outcome.timeline, NEVER
    for node in range(len(state.nodes)):
        state.nodes[node] = start.nodes[node]
        state.applications[node] = start.applications[node]
        first = min(first, start.nodes[node].now)
    line.lanes[lane].bucket = reader_time(line, first) // line.lanes[lane].width
    for p in range(len(state.partitions)):
        state.partitions[p] = start.partitions[p]
        total = sim.outcome.sums.partitions[sim.unit.partitions[p].number, lane]
        total.waiting, total.waiting_since = 0, NEVER
    state.random[0] = sim.rules[0, lane].seed
    return int(first)


@kernel
def end_lane(sim: ReaderSim, lane: int) -> None:
    """Write the lane's outcome."""
    outcome, nodes = sim.outcome, sim.state.nodes
    note_rest(sim, lane)
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
    """Pass the unread backlog of a partition that moved on to the broker that it moved to. Its catch-up time counts
    from the first request at the first broker.
    """
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
