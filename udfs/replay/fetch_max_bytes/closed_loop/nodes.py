"""A reader's nodes: its connections, with those that it opened anew to a broker in place of the ones before.

A client keeps its positions, its order of partitions and what is buffered when a connection breaks; its next one begins
with a full fetch (FetchSessionHandler.handleError). The two are one node of the closed loop: in every lane the reader
goes on from where it is in that lane. The capture does not tell a connection that was opened anew from one of another
process of the same name and address: it is taken for the same reader's where it comes within GONE_US, under the same
limits, and fetches no partition from an offset below that of the last fetch. A reader that starts over, or from an
offset that was committed some time ago, begins as captured.
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
"""The longest that a reader may be gone and be taken for one that only lost its connection."""


class Nodes(NamedTuple):
    """The nodes of a reader, and which connections make them.

    reader: its kind. nodes: READER_CONNECTION[nodes], each as if its connections were one. is_one_process: the
    connections can be one process's. has_logs: bool[nodes]. node: int64[connections], NONE for one without answered
    fetches. place: int64[connections], among those of its node. fetches_before: int64[connections], fetches of those
    before it. first_fetch: int64[nodes + 1], fetches of the nodes before.
    """

    reader: str
    nodes: Records
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
    """Whether the connections can be one process's, which has one to a broker at a time.

    Where two overlap, several processes share name and address: the capture does not tell whose connections to
    different brokers belong together, and each has an application of its own. connections:
    READER_CONNECTION[connections].
    """
    broker, begin, end = connections["broker"], connections["begin"], ends_of_connections(connections)
    order = np.lexsort((end, begin, broker))
    same_broker = broker[order][1:] == broker[order][:-1]
    return not (same_broker & (end[order][:-1] > begin[order][1:])).any()


def nodes_of(captured: CapturedFetches, reader: str) -> Nodes | None:
    """The nodes of a reader all of whose fetches have come; None where none of them was answered.

    If there are several processes, it is not known which connection replaces which: each is a node of its own.
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
    """One process's connections, by the first of each chain: each other one was opened anew for the one before it."""
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
    """Connections that follow one another: when the last response had come (us), and, by the number of each partition,
    where it was read last.
    """

    connections: list[int]
    end: int
    last_offsets: dict[int, int]


def continues_reads(last_offsets: Mapping[int, int], first_offsets: Mapping[int, int]) -> bool:
    """Whether reads begin with a partition that was read before, and with none before where it was read last."""
    common = last_offsets.keys() & first_offsets.keys()
    return bool(common) and all(first_offsets[number] >= last_offsets[number] for number in common)


def offsets_of(captured: CapturedFetches, connection: int) -> tuple[dict[int, int], dict[int, int]]:
    """Where a connection read each partition first and last, by the partition's number."""
    fetched = captured.fetched.records
    rows = pick_records(fetched, fetched["connection"] == connection)
    number, first, last = (rows[name].tolist() for name in ("number", "first_offset", "last_offset"))
    return dict(zip(number, first, strict=True)), dict(zip(number, last, strict=True))


def limits_by_connection(connections: Records) -> Ints:
    """int64[connections, limits]."""
    return np.stack([connections[name] for name in LIMITS], axis=1)


def nodes_of_chains(connections: Records, chains: Sequence[Sequence[int]], reader: str, is_one_process: bool) -> Nodes:
    """The chains as nodes: what each one's first connection requested, and what all of its connections had.

    connections: READER_CONNECTION[connections]. chains: of each node, the places of its connections in the order of
    time.
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
        is_one_process=is_one_process,
        has_logs=np.maximum.reduceat(members["batches"], first[:-1]) <= BATCH_CAP,
        node=node,
        place=place,
        fetches_before=before,
        first_fetch=stretch_edges(nodes["fetches"]),
    )
