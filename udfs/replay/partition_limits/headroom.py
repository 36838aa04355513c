"""Replicas by broker over time, and how far limits of KIP-578 (a proposal) are, as rows of the gold tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from schemas.tables.gold_limits import PARTITION_LIMIT_HEADROOM, PARTITIONS_PER_BROKER
from schemas.tables.table import Table
from udfs.columns.arrays import Floats, Ints
from udfs.columns.arrow_columns import array_of, repeated
from udfs.columns.time_units import US_PER_DAY
from udfs.facts.arrow_tables import rows_of
from udfs.facts.number_columns import Picked
from udfs.replay.partition_limits.placement.brokers import Brokers
from udfs.replay.partition_limits.rows import LIMIT_NAMES
from udfs.replay.partition_limits.schedule import UNLIMITED
from udfs.replay.partition_limits.state import MAX_BROKER_PARTITIONS, MAX_PARTITIONS

if TYPE_CHECKING:
    from udfs.replay.partition_limits.replay import Replayed

MOST_DAYS = 36_525
"""A breach that is farther away than a hundred years is none."""


def per_broker_rows(
    brokers: Brokers, samples: Ints, times: Ints, limit: Ints, lane: str, run_id: str
) -> tuple[Table, pa.RecordBatch]:
    """Rows of `partitions_per_broker`. samples: int64[times, brokers]; limit: int64[times]."""
    t, n = PARTITIONS_PER_BROKER, samples.size
    in_force = np.repeat(limit, len(brokers.node_id))
    counts = samples.reshape(-1)
    return t, rows_of(
        t,
        {
            t.run_id: repeated(run_id, n),
            t.scenario: repeated(lane, n),
            t.broker: np.tile(brokers.node_id, len(times)),
            t.at: np.repeat(times, len(brokers.node_id)),
            t.partitions: counts,
            t.limit_value: array_of(in_force, in_force != UNLIMITED),
            t.headroom: array_of(in_force - counts, in_force != UNLIMITED),
        },
    )


def headroom_rows(
    brokers: Brokers, done: Replayed, free: Ints, times: Ints, run_id: str
) -> tuple[Table, pa.RecordBatch]:
    """Rows of `partition_limit_headroom`: one a broker, and one for the cluster, where there is such a limit.

    free: int64[times, brokers], replicas as they come without a limit.
    """
    t = PARTITION_LIMIT_HEADROOM
    by_broker, total = int(done.lane.broker.values[-1]), int(done.lane.total.values[-1])
    k = len(brokers.node_id) if by_broker != UNLIMITED else 0
    c = 1 if total != UNLIMITED else 0
    counts = np.concatenate([done.topics.counts[:k], done.topics.total[:c]])
    without = np.concatenate([free[:, :k], free.sum(axis=1, keepdims=True)[:, :c]], axis=1)
    limit = np.array([by_broker] * k + [total] * c, np.int64)
    growth = growth_per_day(without, times)
    breach = breach_times(without, times, limit, growth)
    reason = pa.array([LIMIT_NAMES[MAX_BROKER_PARTITIONS]] * k + [LIMIT_NAMES[MAX_PARTITIONS]] * c, pa.string())
    n = k + c
    return t, rows_of(
        t,
        {
            t.run_id: repeated(run_id, n),
            t.scenario: repeated(done.lane.name, n),
            t.refused_by: reason,
            t.broker: array_of(np.append(brokers.node_id[:k], np.zeros(c, np.int64)), np.arange(n) < k),
            t.limit_value: limit,
            t.partitions: counts,
            t.headroom: limit - counts,
            t.growth_per_day: growth,
            t.breach_at: Picked(breach, known=breach != 0),
        },
    )


def growth_per_day(counts: Ints, times: Ints) -> Floats:
    """Replicas a day from the first time to the last; 0 where no time passes. counts: int64[times, of what]."""
    if len(times) < 2:
        return np.zeros(counts.shape[1])
    return (counts[-1] - counts[0]) * (US_PER_DAY / (times[-1] - times[0]))


def breach_times(counts: Ints, times: Ints, limit: Ints, growth: Floats) -> Ints:
    """When each count comes to be at its limit: within the run, or at the growth afterwards; 0 for never, us."""
    if len(times) == 0:
        return np.zeros(len(limit), np.int64)
    reached = counts >= limit
    within = times[np.argmax(reached, axis=0)]
    days = np.divide(limit - counts[-1], growth, out=np.full(len(limit), np.inf), where=growth > 0)
    after = times[-1] + np.minimum(days, MOST_DAYS) * US_PER_DAY
    later = np.where((days >= 0) & (days < MOST_DAYS), after, 0).astype(np.int64)
    return np.where(reached.any(axis=0), within, later)
