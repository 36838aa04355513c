"""Connections that a reader reopens to a broker: in every lane it goes on from where it is in that lane.

A client keeps its positions, its order of partitions and what is buffered when a connection breaks; its next one begins
with a full fetch (FetchSessionHandler.handleError). The two are one node of the closed loop. The capture does not tell
a connection that was opened anew from one of another process of the same name and address: it is taken for the same
reader's where it comes within GONE_US, asks under the same limits, and for no partition from before what was asked for
last. A reader that starts over, or from what was committed some time ago, begins as captured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np

from schemas.tables.steps import READS
from udfs.replay.fetch_max_bytes.closed_changes import Moves
from udfs.replay.fetch_max_bytes.observed import NOT_READ, Observed

GONE_US = 60_000_000
"""The longest that a reader may be gone and be taken for one that only lost its connection."""


def span(seen: Observed) -> tuple[int, int]:
    """When the connection's first fetch was sent, and when its last response had come (us)."""
    response = max(int(piece[READS.response_time].max()) for piece in seen.fetches)
    begin = int(seen.fetches[0][READS.request_time][0])
    return begin, max(begin, response)


def is_one_process(connections: Iterable[Observed]) -> bool:
    """Whether the connections can be one process's, which has one to a broker at a time.

    Where two overlap, several processes share name and address: the capture does not tell whose connections to
    different brokers belong together, and each has an application of its own.
    """
    spans = sorted((seen.broker, *span(seen)) for seen in connections)
    return all(broker != other or end <= begin for (broker, _, end), (other, begin, _) in pairwise(spans))


def nodes_of(connections: Mapping[int, Observed]) -> dict[int, Observed]:
    """One process's connections, by id, each joined with the one that it was opened anew for."""
    nodes, latest = dict(connections), dict[str, int]()
    for connection, seen in sorted(connections.items(), key=lambda item: span(item[1])):
        before = latest.get(seen.broker)
        if before is not None and goes_on(nodes[before], seen):
            nodes[before] = joined_nodes(nodes[before], nodes.pop(connection))
        else:
            latest[seen.broker] = connection
    return nodes


def goes_on(before: Observed, seen: Observed) -> bool:
    """Whether the connection can be the one before, opened anew."""
    common = before.last.keys() & seen.first.keys()
    soon = span(seen)[0] - span(before)[1] <= GONE_US
    onward = all(seen.first[n].fetch_offset >= before.last[n].fetch_offset for n in common)
    return soon and onward and bool(common) and seen.limits == before.limits


def joined_nodes(before: Observed, seen: Observed) -> Observed:
    """Both as if they had been one connection: the fetches of the second come behind those of the first."""
    flags = {name: before.flags[name] + seen.flags[name] for name in before.flags | seen.flags}
    later = {n: read._replace(fetch=read.fetch + before.count) for n, read in seen.last.items()}
    logs = {key: before.logs.get(key, []) + seen.logs.get(key, []) for key in before.logs | seen.logs}
    return Observed(
        before.broker, before.fetches + seen.fetches, before.servings + seen.servings, before.told + seen.told, logs,
        before.first | {n: read for n, read in seen.first.items() if n not in before.first}, before.last | later,
        [*before.moves, *(moved_on(before, m) for m in seen.moves)],
        before.limits, flags, before.bounds | seen.bounds, before.count + seen.count,
        before.left_out + seen.left_out, before.reads + seen.reads, before.batches + seen.batches,
        before.has_logs and seen.has_logs, seen.last_sent,
    )  # fmt: skip


def moved_on(before: Observed, moves: Moves) -> Moves:
    """Moves of the second connection behind the first, whose last read of a partition is the one before its first."""
    last = [before.last.get(n, NOT_READ) for n in moves.partition.tolist()]
    fetch, offset, returned = np.array(last, np.int64).reshape(-1, 3).T
    first = moves.before < 0
    return moves._replace(
        fetch=moves.fetch + before.count,
        before=np.where(first, fetch, moves.before + before.count),
        from_offset=np.where(first, offset, moves.from_offset),
        returned=np.where(first, returned, moves.returned),
    )
