"""The brokers on which replicas are placed, and the topics to be placed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.columns.records import int_fields
from udfs.kernels.kernel import kernel

BROKER = int_fields(
    "node_id",
    "rack",  # as StripedReplicaPlacer sees it: brokers without a rack are a rack of their own
    "alternated_rack",  # as AdminUtils sees it: 0 unless every broker has a rack (RackAwareMode.Safe)
    "unfenced",  # 1: it takes part; 0: it is known from replicas only, so it is down
)
"""A broker. Racks are numbered in the order of their names; brokers without a rack come first."""

PLACEMENT = int_fields(
    "first_partition",
    "partitions",
    "replication_factor",
    "start",  # fixedStartIndex of AdminUtils, or DRAWN
    "limit",  # replicas that a broker may have
    "slot",  # where the slots for the brokers' numbers begin, partition by partition
)
"""A request to a placer, like Kafka's PlacementSpec: partitions of one topic."""
DRAWN = -1
"""A start that is drawn at random."""


class Brokers(NamedTuple):
    """The brokers of a cluster, numbered in the order of their node ids.

    table: BROKER[brokers]. draw_order: int64[racks], the order in which StripedReplicaPlacer draws for the racks.
    """

    table: Records
    draw_order: Ints


@kernel
def are_known(brokers: Brokers) -> bool:
    """Whether Metadata lists the brokers. Without it, there may be more brokers than requests name."""
    broker = 0
    while broker < len(brokers.table) and not brokers.table[broker].unfenced:
        broker += 1
    return broker < len(brokers.table)


def brokers_of(node_ids: Sequence[int], racks: Sequence[str | None], unfenced: Sequence[bool]) -> Brokers:
    """Brokers from node ids in ascending order, their racks, None for no rack, and whether each takes part."""
    names = sorted(set(racks), key=lambda name: (name is not None, _utf16(name)))
    table = np.zeros(len(node_ids), BROKER)
    table["node_id"], table["unfenced"] = node_ids, unfenced
    table["rack"] = [names.index(rack) for rack in racks]
    if None not in racks:
        table["alternated_rack"] = table["rack"]
    order = [names.index(rack) for rack in hash_map_order(list(dict.fromkeys(racks)))]
    return Brokers(read_only(table), read_only(np.array(order, np.int64)))


def these_brokers(brokers: Brokers, numbers: Ints) -> Brokers:
    """Some brokers of a cluster as a cluster of their own. numbers: int64[n], the numbers of the brokers, ascending."""
    table = brokers.table[numbers].copy()
    racks, table["rack"] = np.unique(table["rack"], return_inverse=True)
    kept = brokers.draw_order[np.isin(brokers.draw_order, racks)]
    return Brokers(read_only(table), read_only(np.searchsorted(racks, kept)))


def hash_map_order(racks: Sequence[str | None]) -> list[str | None]:
    """The racks in the order of a java.util.HashMap<Optional<String>, ...> that got them in the given order."""
    buckets = 16
    while len(racks) > buckets * 3 // 4:
        buckets *= 2

    def bucket(rack: str | None) -> int:
        code = java_hash(rack)
        return (code ^ (code >> 16)) & (buckets - 1)

    return sorted(racks, key=bucket)


def java_hash(text: str | None) -> int:
    """String.hashCode as an unsigned number; 0 for no text, as in Optional.hashCode."""
    code = 0
    for unit in np.frombuffer(_utf16(text), ">u2").tolist():
        code = (31 * code + unit) & 0xFFFFFFFF
    return code


def _utf16(text: str | None) -> bytes:
    """The text as Java compares and hashes it."""
    return (text or "").encode("utf-16-be", "surrogatepass")
