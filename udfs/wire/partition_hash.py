"""The hash of a partition, for hash tables in kernels."""

from __future__ import annotations

from udfs.kernels.kernel import kernel

# Odd 64-bit constants of splitmix64 and xorshift64*, as int64. They spread keys over the whole table.
MIX_PARTITION, MIX_BOTH = -7046029254386353131, 2685821657736338717


@kernel
def partition_hash(topic: int, partition: int) -> int:
    """A number whose low bits depend on all bits of the topic and the partition; topic: a hash or a number."""
    return ((topic ^ (partition * MIX_PARTITION)) * MIX_BOTH) >> 20
