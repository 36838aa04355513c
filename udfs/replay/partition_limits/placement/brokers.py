"""The brokers that replicas are placed on, as the placers take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, read_only
from udfs.kernels.kernel import kernel


class Brokers(NamedTuple):
    """Brokers by number, in the order of their node ids: int64[brokers] but for `draw_order`.

    Racks are numbered in the order of their names, brokers without one come first.
    """

    node_id: Ints
    rack: Ints  # as StripedReplicaPlacer sees them: those without a rack are a rack
    alternated_rack: Ints  # as AdminUtils sees them: all 0 unless every broker has a rack (RackAwareMode.Safe)
    unfenced: Ints  # 1: takes part; 0: is known by replicas alone, so it is down
    draw_order: Ints  # int64[racks], the order in which StripedReplicaPlacer draws for the racks


@kernel
def are_known(brokers: Brokers) -> bool:
    """Whether Metadata lists the brokers: without it those that requests name may not be all."""
    return bool(brokers.unfenced.any())


def brokers_of(node_ids: Sequence[int], racks: Sequence[str | None], unfenced: Sequence[bool]) -> Brokers:
    """Brokers by node id, rack name or None, and whether they are up; of the same length, node ids ascending."""
    names = sorted(set(racks), key=lambda name: (name is not None, _utf16(name)))
    number = np.array([names.index(rack) for rack in racks], np.int64)
    aware = all(rack is not None for rack in racks)
    order = [names.index(rack) for rack in hash_map_order(list(dict.fromkeys(racks)))]
    columns = (
        np.array(node_ids, np.int64), number, number if aware else np.zeros_like(number),
        np.array(unfenced).astype(np.int64), np.array(order, np.int64),
    )  # fmt: skip
    return Brokers(*map(read_only, columns))


def hash_map_order(racks: Sequence[str | None]) -> list[str | None]:
    """The racks as a java.util.HashMap<Optional<String>, ...> gives them that got them in this order."""
    buckets = 16
    while len(racks) > buckets * 3 // 4:
        buckets *= 2

    def bucket(rack: str | None) -> int:
        found = java_hash(rack)
        return (found ^ (found >> 16)) & (buckets - 1)

    return sorted(racks, key=bucket)


def java_hash(text: str | None) -> int:
    """String.hashCode as an unsigned number; 0 for none, as Optional.hashCode says."""
    found = 0
    units = np.frombuffer(_utf16(text), ">u2").tolist()
    for unit in units:
        found = (31 * found + unit) & 0xFFFFFFFF
    return found


def _utf16(text: str | None) -> bytes:
    """The text as Java compares and hashes it."""
    return (text or "").encode("utf-16-be", "surrogatepass")
