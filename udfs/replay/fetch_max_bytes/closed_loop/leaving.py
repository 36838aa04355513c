"""Readers that leave a broker before they have read everything there: in every lane they leave at the captured time.

A reader has left a broker if it sends no further fetch there while the capture goes on, or if its connection is closed
and it opens no other. Its process was stopped or killed, its group gave its partitions to other members, or it paused
all of them. The capture shows that it did not wait for records if its last fetch could have returned more than it did.

- Such a reader leaves in every lane just after its last captured response, however much it has read by then. What it
  has buffered is dropped.
- If its last fetch returned all that there was, it may have stopped because it had read everything, as a consumer does
  that reads a topic once. In each lane such a reader stays until it has read as much as in the capture.
- If the capture ends with the reader's last fetch, before the connection is closed, the reader goes on in the same way.

If one process reads from several brokers and leaves one of them, it leaves at the same time all those to which it sends
its last fetch then. Who reads a partition on begins in every lane where it began in the capture.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.by_node import NodeReads
from udfs.replay.fetch_max_bytes.closed_loop.changes import GIVEN_UP_US, ReaderFetches
from udfs.replay.fetch_max_bytes.closed_loop.nodes import Nodes, ends_of_connections
from udfs.replay.fetch_max_bytes.closed_loop.placing import ReaderLogs, reads_of_batches


def is_silent(fetches: ReaderFetches, max_wait_us: Ints, captured_until: Ints) -> Bools:
    """Whether the reader sends no further fetch to a node's broker while the capture goes on: bool[nodes].

    It is silent for GIVEN_UP_US, and for longer than before any earlier fetch; and a fetch that the capture lacks may
    wait for max_wait. A reader that a quota holds back after its last response is not silent.

    max_wait_us: int64[nodes]. captured_until: int64[nodes], us, the last time at which the capture shows the broker.
    """
    last = np.unique(fetches.last)
    paused, pause = np.flatnonzero(fetches.first < np.arange(len(fetches.request))), np.zeros_like(last)
    np.maximum.at(pause, fetches.node[paused], fetches.request[paused] - fetches.response[paused - 1])
    silence = captured_until - fetches.horizon - max_wait_us
    return (silence > np.maximum(pause, GIVEN_UP_US)) & ~fetches.is_throttled[last]


def has_closed(nodes: Nodes, connections: Records, closed_at: Mapping[int, int], captured_until: Ints) -> Bools:
    """Whether each node's connection was closed, and the reader opened no other to that broker: bool[nodes].

    connections: READER_CONNECTION[connections], also those without answered fetches. closed_at: when connections ended
    (us), by their ids. captured_until: int64[nodes], us, the last time at which the capture shows the broker.
    """
    ends, broker = ends_of_connections(connections), connections["broker"]
    in_order = np.lexsort((ends, nodes.node))
    in_order = in_order[nodes.node[in_order] != NONE]
    last = in_order[np.flatnonzero(np.diff(nodes.node[in_order], append=NONE))]
    newest = np.full(broker.max() + 1, NONE)
    np.maximum.at(newest, broker, connections["begin"])
    closed = np.array([closed_at.get(number, NEVER) for number in connections["id"][last].tolist()])
    return (closed <= captured_until) & (newest[broker[last]] <= ends[last])


def has_unread(reads: NodeReads, logs: ReaderLogs, fetches: ReaderFetches) -> Bools:
    """Whether the last fetch of a partition's node could have returned more of the partition: bool[partitions]."""
    partitions, rows = reads.partitions, np.arange(len(reads.partitions))
    returned = np.maximum(partitions["last_returned"], 0)
    end = reads_of_batches(logs, rows, partitions["last_offset"], returned)["end"]
    last_request = fetches.request[np.unique(fetches.last)][reads.node]
    return (end < logs.partitions["end_batch"]) & (logs.batches["visible_at"][end] <= last_request)


def nodes_left(fetches: ReaderFetches, silent: Bools, unread: Bools, max_wait_us: Ints, is_one_process: bool) -> Bools:
    """Which nodes the reader leaves before it has read everything: bool[nodes].

    silent: bool[nodes], from `is_silent`. unread: bool[nodes], whether its last fetch could have returned more.
    max_wait_us: int64[nodes]. is_one_process: one process reads from all nodes.
    """
    left = silent & unread
    if is_one_process and left.any():
        apart = np.abs(fetches.horizon[:, np.newaxis] - fetches.horizon[left])
        left |= silent & (apart <= GIVEN_UP_US + max_wait_us[:, np.newaxis]).any(axis=1)
    return left
