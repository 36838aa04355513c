"""Replicas that requests name themselves, out of the texts of `topic_changes`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Ints, edges
from udfs.columns.arrow_columns import compute as pc


class Assigned(NamedTuple):
    """By change, int64[changes]: partitions named (0: none), replicas of each, and where its nodes begin.

    Where partitions of one change have different numbers of replicas, or none, width is UNEVEN.
    nodes: node ids, partition by partition in their order.
    """

    partitions: Ints
    width: Ints
    first: Ints
    nodes: Ints


UNEVEN = -2


def parse_assignments(column: pa.ChunkedArray[Any]) -> Assigned:
    """From lists of PARTITION:NODE,NODE..."""
    lists: Any = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.list_(pa.string()))
    parent = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    parts = pc.split_pattern(pc.list_flatten(lists), ":", max_splits=1)
    partition = pc.list_element(parts, 0).cast(pa.int64()).to_numpy().astype(np.int64)
    nodes = pc.split_pattern(pc.list_element(parts, 1), ",")
    order = pa.array(np.lexsort((partition, parent)))
    nodes = nodes.take(order)  # by change, and then by partition: the order of `parent` is kept
    texts = pc.list_flatten(nodes)
    node = pc.if_else(pc.equal(texts, ""), "-1", texts).cast(pa.int64()).to_numpy().astype(np.int64)
    width = pc.list_value_length(nodes).to_numpy().astype(np.int64)
    n = len(lists)
    sums = np.bincount(parent, width, n).astype(np.int64)
    count = np.bincount(parent, minlength=n)
    widest = np.zeros(n, np.int64)
    np.maximum.at(widest, parent, width)
    even = (widest * count == sums) & (np.bincount(np.repeat(parent, width)[node < 0], minlength=n) == 0)
    first = edges(sums)[:-1]
    return Assigned(count, np.where(even, widest, UNEVEN), first, node)
