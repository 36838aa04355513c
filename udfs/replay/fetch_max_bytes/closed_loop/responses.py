"""The responses that a reader gets in closed loop, kept one by one for replays that go on from them."""

from __future__ import annotations

from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.closed_loop.state import GO_ON, ReaderSim, position_behind


@kernel
def keep_response(sim: ReaderSim, lane: int, node: int) -> None:
    """Keep a response that has come, before the client takes it, if there is room."""
    outcome, state = sim.outcome, sim.state.nodes[node]
    at = outcome.lanes[lane].responses
    outcome.lanes[lane].responses += 1
    if at >= outcome.responses.shape[1]:
        return
    response, batches = outcome.responses[lane, at], sim.unit.batches
    response.node, response.requested_at, response.arrived_at = node, state.sent_at, state.now
    first = sim.unit.nodes[node].first_partition
    for i in range(first, first + state.requested):
        p, returned = sim.state.orders.requested[i], sim.state.answers[i].returned
        if returned > 0:
            position = sim.state.partitions[p].position
            response.size += returned
            response.partitions += 1
            response.records += (
                batches[position_behind(sim, p, returned)].records_before - batches[position].records_before
            )


@kernel
def given_up_by(sim: ReaderSim, node: int, partition: int, time: int) -> int:
    """The change by which the client gives up the records that came of a partition, or seeks, before it has taken them;
    NONE if there is no such change before `time` (us).
    """
    changes, of = sim.unit.changes, sim.unit.nodes[node]
    following = of.first_change + sim.state.nodes[node].changes
    if sim.state.partitions[partition].has_moved == 1:
        for at in range(following - 1, of.first_change - 1, -1):
            if changes[at].partition == partition and changes[at].to != GO_ON:
                return at
    for at in range(following, of.end_change):
        if changes[at].time >= time:
            break
        if changes[at].partition == partition and changes[at].to != GO_ON:
            return at
    return NONE


@kernel
def keep_given_up(sim: ReaderSim, lane: int, partition: int, by: int) -> bool:
    """Note the records of the last response that the change `by` gives up; returns whether there was room."""
    outcome = sim.outcome
    at = outcome.lanes[lane].given_up
    if at >= outcome.given_up.shape[1]:
        return False
    given_up = outcome.given_up[lane, at]
    given_up.response, given_up.number = outcome.lanes[lane].responses - 1, sim.unit.partitions[partition].number
    given_up.since, given_up.until = sim.unit.changes[by].since, sim.unit.changes[by].until
    given_up.turn_at = sim.state.partitions[partition].turn_at
    outcome.lanes[lane].given_up += 1
    return True


@kernel
def keep_drained(sim: ReaderSim, lane: int, node: int, following: int) -> None:
    """Note when the last kept response is drained. following: when the client fetches again (us)."""
    at, outcome = sim.outcome.lanes[lane].responses - 1, sim.outcome
    if at >= outcome.responses.shape[1]:
        return
    response, first = outcome.responses[lane, at], sim.unit.nodes[node].first_partition
    drained, taken = response.arrived_at, 0
    for i in range(first, first + sim.state.nodes[node].requested):
        p = sim.state.orders.requested[i]
        if sim.state.answers[i].returned > 0:
            taken_at = sim.state.partitions[p].taken_at
            by = given_up_by(sim, node, p, taken_at)
            if by == NONE:
                drained, taken = max(drained, taken_at), taken + 1
            elif not keep_given_up(sim, lane, p, by):
                drained = max(drained, sim.unit.changes[by].until)
    is_whole = taken > 0 and taken == response.partitions
    response.drained_at = max(drained, following) if is_whole else drained
