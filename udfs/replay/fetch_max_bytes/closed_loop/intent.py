"""A reader's intent, from its captured fetches: which partitions it wants, from which broker, and when. The same for
all lanes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.tables.values import FOLLOWER
from udfs.columns.arrays import Bools, Ints, Records, stretch_edges
from udfs.columns.records import new_records
from udfs.columns.time_units import ALWAYS, NEVER, US_PER_MS
from udfs.replay.fetch_max_bytes.closed_loop.by_node import (
    NodeReads,
    first_at_their_time,
    handovers_of,
    node_reads,
    wanted_since,
    when_left,
)
from udfs.replay.fetch_max_bytes.closed_loop.changes import (
    Changes,
    ReaderFetches,
    changes_of_nodes,
    partitions_given_up,
)
from udfs.replay.fetch_max_bytes.closed_loop.events import CapturedFetches
from udfs.replay.fetch_max_bytes.closed_loop.fetchers import fetcher_hashes
from udfs.replay.fetch_max_bytes.closed_loop.leaving import has_closed, has_unread, is_silent, nodes_left
from udfs.replay.fetch_max_bytes.closed_loop.logs import readable_logs
from udfs.replay.fetch_max_bytes.closed_loop.nodes import Nodes, ends_of_connections, nodes_of
from udfs.replay.fetch_max_bytes.closed_loop.pace import CapturedPace, PacedFetches, ReaderPace, observed_pace, pace_of
from udfs.replay.fetch_max_bytes.closed_loop.placing import (
    ReaderLogs,
    Servings,
    build_logs,
    destinations_of,
    places_in_deal,
    segment_ends_of_batches,
    servings_of,
    times_of_enough,
)
from udfs.replay.fetch_max_bytes.closed_loop.settings import CapturedWork, profiles_of_nodes
from udfs.replay.fetch_max_bytes.closed_loop.state import NODE, Unit
from udfs.replay.fetch_max_bytes.closed_loop.stays import refused_nodes, with_stays
from udfs.replay.fetch_max_bytes.settings import JAVA_3, JAVA_4, LIBRDKAFKA, FetchLanes, Reader
from udfs.replay.shared.lanes import CAPTURED

REQUESTS_A_FETCH, MORE_REQUESTS = 64, 1000
"""A node's replay in a lane ends after REQUESTS_A_FETCH requests for each captured fetch and each batch, plus
MORE_REQUESTS."""
TURNS_A_SERVING, MORE_TURNS = 2, 16
"""Lane 0 keeps at most TURNS_A_SERVING turns for each captured serving of a node, plus MORE_TURNS."""


class Intent(NamedTuple):
    """A reader with answered fetches, ready to be replayed in any lane, and what the capture shows of it.

    keys: broker, topic and partition of each partition that the fetches name, by the partition's number. brokers: the
    names of the brokers, by the numbers in `nodes`. observed: what the capture shows of the reader's pace.
    requested_at: int64[partitions], when each partition is first asked for (us). profiles: int64[nodes], which client's
    rules each node follows (`PROFILES`). work: what the capture shows of the application's work. throttled:
    int64[nodes], how many responses a quota emptied. is_delayed: bool[nodes], whether a quota held back responses with
    records. lost_seeks: int64[nodes], how many seeks could not be followed. lost_fetches: bool[nodes], the capture
    lacks bytes of the node, and with them it may lack fetches that matter. is_refused: bool[nodes], the broker refused
    a partition that the reader went on reading there.
    """

    keys: list[str]
    brokers: list[str]
    nodes: Nodes
    unit: Unit
    observed: CapturedPace
    servings: Servings
    requested_at: Ints
    profiles: Ints
    work: CapturedWork
    throttled: Ints
    is_delayed: Bools
    lost_seeks: Ints
    lost_fetches: Bools
    is_refused: Bools


def intent_of(captured: CapturedFetches, reader: Reader, lanes: FetchLanes) -> Intent | None:
    """The intent of a reader, once all of its fetches are known; None if none of them was answered. lanes: only what
    they say of the capture counts, and the limits of the captured lane.
    """
    nodes, keys = nodes_of(captured, reader.kind), list(captured.partitions)
    if nodes is None:
        return None
    reads = with_stays(node_reads(captured, nodes), nodes, keys)
    handovers = handovers_of(reads, nodes, keys)
    reads.partitions["since"] = wanted_since(handovers, reads)
    logs = build_logs(reads, readable_logs(captured, nodes, reads, handovers), handovers)
    dealt = fetcher_hashes(keys) if reader.kind == FOLLOWER else places_in_deal(keys)
    logs.partitions["dealt"] = dealt[logs.partitions["number"]]
    of_brokers = [int(lanes.limits(reader, broker)["broker_max_bytes"][CAPTURED]) for broker in captured.brokers]
    max_bytes = np.minimum(nodes.nodes["max_bytes"], np.array(of_brokers, np.int64)[nodes.nodes["broker"]])
    servings = servings_of(reads, logs)
    logs.batches["segment_end"][:-1] = segment_ends_of_batches(reads, logs, servings, max_bytes)
    fetches, left_at = fetches_for_changes(reads, nodes, reader.kind), when_left(handovers, reads)
    leaves_nothing_out = nodes.nodes["profile"] == JAVA_4
    gone = np.zeros(len(reads.partitions), np.bool_)
    gone[partitions_given_up(reads, fetches, leaves_nothing_out)] = True
    wanted = ~gone & (left_at == NEVER)
    left = departures(captured, nodes, fetches, reads.node[wanted & has_unread(reads, logs, fetches)], lanes)
    changes = changes_of_nodes(
        reads, fetches, destinations_of(reads, logs), left_at, leaves_nothing_out,
        abandoned=np.flatnonzero(wanted & left[reads.node]),
    )  # fmt: skip
    profiles, paced = profiles_of_nodes(nodes, reads), paced_fetches(reads, nodes, logs, servings, changes)
    one_polls_for_all = nodes.is_one_process and bool((profiles < LIBRDKAFKA).all())
    is_java = bool(np.isin(nodes.nodes["profile"], (JAVA_3, JAVA_4)).all())  # as its software says
    observed = observed_pace(paced, len(nodes.nodes), one_polls_for_all, one_polls_for_all and is_java)
    first, is_throttled = nodes.first_fetch[:-1], reads.fetches["throttled"] == 1
    return Intent(
        keys=keys,
        brokers=list(captured.brokers),
        nodes=nodes,
        unit=unit_of(nodes, reads, logs, changes, pace_of(observed)),
        observed=observed,
        servings=servings,
        requested_at=reads.partitions["first_request"],
        profiles=profiles,
        work=CapturedWork(np.maximum.reduceat(paced.records, first), observed.is_at_work),
        throttled=np.add.reduceat(is_throttled & (paced.size == 0), first, dtype=np.int64),
        is_delayed=np.logical_or.reduceat(is_throttled & (paced.size != 0), first),
        lost_seeks=changes.lost,
        lost_fetches=lossy_nodes(captured, nodes, lanes.lossy) & (changes.gaps > 0),
        is_refused=refused_nodes(reads, len(nodes.nodes)),
    )


def departures(
    captured: CapturedFetches, nodes: Nodes, fetches: ReaderFetches, unread: Ints, lanes: FetchLanes
) -> Bools:
    """Which nodes the reader leaves before it has read everything: bool[nodes].

    unread: int64[n], the nodes of partitions of which the last fetch could have returned more. A reader does not leave
    a broker of which `lanes` does not say how long the capture shows it.
    """
    captured_until = lanes.replayed_until()
    until = np.array([captured_until.get(broker, ALWAYS) for broker in captured.brokers], np.int64)
    max_wait_us = nodes.nodes["max_wait_ms"] * US_PER_MS
    until = until[nodes.nodes["broker"]]
    silent = is_silent(fetches, max_wait_us, until)
    silent |= has_closed(nodes, captured.connections.records, lanes.closed_at, until)
    is_unread = np.isin(np.arange(len(nodes.nodes)), unread)
    return nodes_left(fetches, silent, is_unread, max_wait_us, nodes.is_one_process)


def lossy_nodes(captured: CapturedFetches, nodes: Nodes, lossy: frozenset[int]) -> Bools:
    """Whether the capture lacks bytes of a connection of each node: bool[nodes]. lossy: the ids of such connections."""
    is_lossy = np.array([number in lossy for number in captured.connections.records["id"].tolist()])
    return np.isin(np.arange(len(nodes.nodes)), nodes.node[is_lossy])


def fetches_for_changes(reads: NodeReads, nodes: Nodes, kind: str) -> ReaderFetches:
    """The fetches in the form that `changes_of_nodes` takes. kind: of the reader."""
    fetches, first = reads.fetches, nodes.first_fetch
    node = nodes.node[fetches["connection"]]
    request, took_us = fetches["request"], fetches["response"] - fetches["request"]
    is_early = (fetches["returned"] == 0) & (took_us < nodes.nodes["max_wait_ms"][node] * US_PER_MS)
    may_open = (nodes.nodes["in_session"][node] == 1) | (request == request[first[node]])
    return ReaderFetches(
        request=request,
        response=fetches["response"],
        returned=fetches["returned"],
        node=node,
        first=first[node],
        last=first[node + 1] - 1,
        opens_session=(fetches["opens_session"] == 1) & may_open,
        is_throttled=(fetches["throttled"] == 1) & (fetches["returned"] == 0),
        is_beyond_bound=(fetches["beyond_bound"] == 1) & is_early & (kind != FOLLOWER),
        horizon=ends_of_connections(nodes.nodes),
    )


def paced_fetches(
    reads: NodeReads, nodes: Nodes, logs: ReaderLogs, servings: Servings, changes: Changes
) -> PacedFetches:
    """The fetches in the form that `observed_pace` takes."""
    fetches = reads.fetches
    node = nodes.node[fetches["connection"]]
    alike = first_at_their_time(fetches, nodes)
    is_stopped = np.zeros(len(fetches), np.bool_)
    is_stopped[alike[changes.stopped]] = True
    records, before = np.zeros(len(fetches), np.int64), logs.batches["records_before"]
    np.add.at(records, servings.fetch, np.maximum(before[servings.end] - before[servings.begin], 0))
    enough_at = times_of_enough(logs, servings, bytes_waited_for(nodes)[node])
    return PacedFetches(
        node=node,
        request=fetches["request"],
        response=fetches["response"],
        records=records,
        size=fetches["returned"],
        ready_at=np.where(fetches["returned"] > 0, enough_at, 0),
        is_stopped=is_stopped[alike],
        max_wait_us=nodes.nodes["max_wait_ms"][node] * US_PER_MS,
    )


def bytes_waited_for(nodes: Nodes) -> Ints:
    """The record bytes for which a broker lets a fetch wait: int64[nodes]. A fetch with a max_wait of 0 is answered
    with whatever there is (ReplicaManager.fetchMessages), so any record is enough.
    """
    limits = nodes.nodes
    needed = np.where(limits["max_wait_ms"] > 0, np.minimum(limits["min_bytes"], limits["max_bytes"]), 1)
    return np.maximum(needed, 1)


def unit_of(nodes: Nodes, reads: NodeReads, logs: ReaderLogs, changes: Changes, pace: ReaderPace) -> Unit:
    """The unit that lanes replay: the reader's nodes, with the partitions, batches and changes of each."""
    count = len(nodes.nodes)
    first_partition, first_change = (np.searchsorted(node, np.arange(count + 1)) for node in (reads.node, changes.node))
    batches = np.diff(np.append(logs.partitions["first_batch"], len(logs.captured))[first_partition])
    turns = np.bincount(reads.node[reads.servings["partition"]], minlength=count) * TURNS_A_SERVING + MORE_TURNS
    return Unit(
        partitions=logs.partitions,
        batches=logs.batches,
        changes=changes.changes,
        nodes=with_pace(
            new_records(
                NODE,
                count,
                first_partition=first_partition[:-1],
                end_partition=first_partition[1:],
                first_change=first_change[:-1],
                end_change=first_change[1:],
                first_turn=stretch_edges(turns)[:-1],
                end_turn=stretch_edges(turns)[1:],
                begin=nodes.nodes["begin"],
                horizon=ends_of_connections(nodes.nodes),
                request_cap=REQUESTS_A_FETCH * (np.diff(nodes.first_fetch) + batches) + MORE_REQUESTS,
            ),
            pace,
        ),
        taking=pace.taking.points,
        sending=pace.sending.points,
    )


def with_pace(nodes: Records, pace: ReaderPace) -> Records:
    """The nodes with their pace: NODE[nodes]. Nodes whose records one application takes share one curve of taking."""
    for name in ("gap_us", "start_us", "poll_us", "answer_us", "late_us"):
        nodes[name] = getattr(pace, name)
    nodes["first_taking"], nodes["end_taking"] = pace.taking.first[:-1], pace.taking.first[1:]
    nodes["first_sending"], nodes["end_sending"] = pace.sending.first[:-1], pace.sending.first[1:]
    return nodes
