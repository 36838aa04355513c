"""A reader's nodes: each is a connection to a broker, with the connections that were opened anew in its place.

When a connection breaks, a client keeps its positions, its order of partitions and its buffered records. Its next
connection begins with a full fetch (FetchSessionHandler.handleError). Both connections are one node of the closed loop:
in every lane the reader goes on from where it is in that lane. The capture cannot tell a connection that was opened
anew from the connection of another process with the same name and address. It counts as the same reader's if it comes
within GONE_US, has the same limits, and fetches no partition from an offset below that of the last fetch. A reader that
starts over, or from an offset that was committed some time ago, is a node of its own and begins as captured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records, stretch_edges
from udfs.columns.records import pick_records
from udfs.columns.sentinels import NONE
from udfs.replay.fetch_max_bytes.closed_loop.events import BATCH_CAP, COUNTED, LIMITS, CapturedFetches

GONE_US = 60_000_000
"""The longest time that a reader may be gone and still count as one that only lost its connection."""


class Nodes(NamedTuple):
    """The nodes of a reader, and the connections that each is made of.

    reader: its kind. nodes: READER_CONNECTION[nodes], each as if its connections were one. ids: int64[n], the ids of
    all connections that the nodes are made of. is_one_process: all connections can be one process's. has_logs:
    bool[nodes], whether the logs were kept. node: int64[connections], the node of each connection, NONE for a
    connection without answered fetches. place: int64[connections], the connection's index among those of its node.
    fetches_before: int64[connections], how many fetches the node's earlier connections have. first_fetch: int64[nodes
    + 1], how many fetches the nodes before have.
    """

    reader: str
    nodes: Records
    ids: Ints
    is_one_process: bool
    has_logs: Bools
    node: Ints
    place: Ints
    fetches_before: Ints
    first_fetch: Ints


def ends_of_connections(connections: Records) -> Ints:
    """When the last response of each connection had come: int64[connections], us. connections: READER_CONNECTION."""
    return np.maximum(connections["begin"], connections["last_response"])


def is_one_process(connections: Records) -> bool:
    """Whether all connections can be one process's: a process has one connection to a broker at a time.

    If two connections to a broker overlap, several processes share name and address. The capture does not tell which
    connections to different brokers belong together, so each connection has an application of its own. connections:
    READER_CONNECTION[connections].
    """
    broker, begin, end = connections["broker"], connections["begin"], ends_of_connections(connections)
    order = np.lexsort((end, begin, broker))
    same_broker = broker[order][1:] == broker[order][:-1]
    return not (same_broker & (end[order][:-1] > begin[order][1:])).any()


def nodes_of(captured: CapturedFetches, reader: str) -> Nodes | None:
    """The nodes of a reader, once all of its fetches are known; None if none of them was answered.

    If there are several processes, it is not known which connection replaces which, so each is a node of its own.
    """
    connections = captured.connections.records
    answered = np.flatnonzero(connections["fetches"]).tolist()
    if not answered:
        return None
    is_one = is_one_process(pick_records(connections, np.array(answered)))
    chains = (
        chains_of_connections(captured, answered) if is_one else {connection: [connection] for connection in answered}
    )
    return nodes_of_chains(connections, [chains[first] for first in answered if first in chains], reader, is_one)


def chains_of_connections(captured: CapturedFetches, connections: Sequence[int]) -> dict[int, list[int]]:
    """One process's connections as chains, by their first connection; each further one replaced the one before it."""
    records = captured.connections.records
    begin, end, limits = records["begin"], ends_of_connections(records), limits_by_connection(records)
    latest, chains = dict[int, Chain](), list[Chain]()
    for connection in sorted(connections, key=lambda c: (begin[c], end[c])):
        first_offsets, last_offsets = offsets_of(captured, connection)
        chain = latest.get(int(records["broker"][connection]))
        if (
            chain is not None
            and begin[connection] - chain.end <= GONE_US
            and (limits[chain.connections[0]] == limits[connection]).all()
            and continues_reads(chain.last_offsets, first_offsets)
        ):
            chain.connections.append(connection)
            chain.end = max(chain.end, int(records["last_response"][connection]))
            chain.last_offsets |= last_offsets
        else:
            chain = Chain([connection], int(end[connection]), last_offsets)
            latest[int(records["broker"][connection])] = chain
            chains.append(chain)
    return {chain.connections[0]: chain.connections for chain in chains}


@dataclass
class Chain:
    """Connections that replaced one another, in time order.

    end: when their last response had come (us). last_offsets: the fetch_offset of the last read of each partition, by
    the partition's number.
    """

    connections: list[int]
    end: int
    last_offsets: dict[int, int]


def continues_reads(last_offsets: Mapping[int, int], first_offsets: Mapping[int, int]) -> bool:
    """Whether a new connection goes on from earlier reads: at least one partition was read before, and none of those
    begins below the offset of its last read.
    """
    common = last_offsets.keys() & first_offsets.keys()
    return bool(common) and all(first_offsets[number] >= last_offsets[number] for number in common)


def offsets_of(captured: CapturedFetches, connection: int) -> tuple[dict[int, int], dict[int, int]]:
    """The fetch_offsets of a connection's first and last read of each partition, by the partition's number."""
    fetched = captured.fetched.records
    rows = pick_records(fetched, fetched["connection"] == connection)
    number, first, last = (rows[name].tolist() for name in ("number", "first_offset", "last_offset"))
    return dict(zip(number, first, strict=True)), dict(zip(number, last, strict=True))


def limits_by_connection(connections: Records) -> Ints:
    """The LIMITS of each connection: int64[connections, limits]."""
    return np.stack([connections[name] for name in LIMITS], axis=1)


def nodes_of_chains(connections: Records, chains: Sequence[Sequence[int]], reader: str, is_one_process: bool) -> Nodes:
    """The chains as nodes: limits are those of a chain's first connection, counts are sums over all its connections.

    connections: READER_CONNECTION[connections]. chains: for each node the indices of its connections, in time order.
    """
    order = np.array([connection for chain in chains for connection in chain])
    first = stretch_edges([len(chain) for chain in chains])
    members, node = pick_records(connections, order), np.full(len(connections), NONE)
    nodes = pick_records(members, first[:-1])
    for name in ("fetches", "left_out", "reads", "batches", *COUNTED):
        nodes[name] = np.add.reduceat(members[name], first[:-1])
    nodes["last_response"] = np.maximum.reduceat(members["last_response"], first[:-1])
    node[order] = np.repeat(np.arange(len(chains)), np.diff(first))
    place, before = np.zeros_like(node), np.zeros_like(node)
    place[order] = np.arange(len(order)) - first[node[order]]
    before[order] = stretch_edges(members["fetches"])[:-1] - stretch_edges(members["fetches"])[first[node[order]]]
    return Nodes(
        reader=reader,
        nodes=nodes,
        ids=members["id"].copy(),
        is_one_process=is_one_process,
        has_logs=np.maximum.reduceat(members["batches"], first[:-1]) <= BATCH_CAP,
        node=node,
        place=place,
        fetches_before=before,
        first_fetch=stretch_edges(nodes["fetches"]),
    )
