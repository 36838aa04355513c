"""The ranges of the pools of consumers and brokers, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.gold_memory import BROKER_MEMORY, BROKER_MEMORY_RANGES, CONSUMER_MEMORY_RANGES
from schemas.tables.table import Table
from udfs.columns.arrays import Floats, Ints, Records
from udfs.columns.arrow_columns import dictionary_column
from udfs.columns.time_units import US_PER_MS
from udfs.facts.arrow_tables import make_rows
from udfs.replay.consumer_memory.consumers import Consumers, LanesReplayed, depleted_shares
from udfs.replay.consumer_memory.drawn_pace import PoolReplications, replicated
from udfs.replay.consumer_memory.rows import key_columns, received_in
from udfs.replay.consumer_memory.settings import MemoryLanes
from udfs.replay.consumer_memory.state import Traces, UnitOutcomes
from udfs.replay.consumer_memory.units import Units
from udfs.replay.shared.range_rows import range_columns
from udfs.replay.shared.replications import quantiles

if TYPE_CHECKING:
    from udfs.replay.consumer_memory.rows import Rows

_B = BROKER_MEMORY
FIGURES: Mapping[str, Callable[[Records], Floats]] = {
    str(_B.used_bytes_max): lambda outcomes: outcomes["used_max"].astype(np.float64),
    str(_B.smallest_pool_bytes): lambda outcomes: outcomes["smallest_pool"].astype(np.float64),
    str(_B.waits): lambda outcomes: outcomes["waits"].astype(np.float64),
    str(_B.wait_ms_max): lambda outcomes: outcomes["longest_us"] / US_PER_MS,
    str(_B.depleted_share): lambda outcomes: depleted_shares(outcomes),
}
"""The columns of `broker_memory` and `consumer_memory` that have a range, and how each follows from POOL_OUTCOME[...].
"""


class RangedPools(NamedTuple):
    """The pools of some units in some lanes, at the captured pace and at drawn paces.

    unit: int64[n], the numbers of the units. lane: int64[m], those of the lanes. outcomes: POOL_OUTCOME[n, m]. ranges:
    of the same units and lanes. clock: the factor by which their clock is faster than that of clients and brokers.
    """

    unit: Ints
    lane: Ints
    outcomes: Records
    ranges: PoolReplications
    clock: float = 1.0


def consumer_range_rows(
    units: Units, consumers: Consumers, lanes: MemoryLanes, done: LanesReplayed, settings: Records
) -> Rows:  # fmt: skip
    """The rows of `consumer_memory_ranges` for some lanes. settings: POOL_SETTINGS[units, lanes], of all lanes."""
    unit = consumers.numbers
    outcomes = done.replayed.outcomes[unit]
    ranges = replications_of(units, unit, done.traces, settings[:, done.lanes], lanes)
    pools = RangedPools(unit, done.lanes, outcomes, ranges, done.clock)
    yield CONSUMER_MEMORY_RANGES, range_rows(units, CONSUMER_MEMORY_RANGES, lanes.names, pools)


def broker_range_rows(
    units: Units, traces: Traces, replayed: UnitOutcomes, lanes: MemoryLanes, settings: Records
) -> Rows:  # fmt: skip
    """The rows of `broker_memory_ranges`. settings: POOL_SETTINGS[units, lanes]."""
    unit = np.flatnonzero(received_in(traces, lanes.window).messages)
    ranges = replications_of(units, unit, traces, settings, lanes)
    pools = RangedPools(unit, np.arange(len(lanes.names)), replayed.outcomes[unit], ranges)
    yield BROKER_MEMORY_RANGES, range_rows(units, BROKER_MEMORY_RANGES, lanes.names, pools)


def replications_of(
    units: Units, unit: Ints, traces: Traces, settings: Records, lanes: MemoryLanes
) -> PoolReplications:
    """Some units at drawn paces. unit: int64[n], their numbers. settings: POOL_SETTINGS[units, lanes], of all units."""
    outcomes, counts = replicated(traces, settings, units.names, lanes.window)
    return PoolReplications(outcomes[:, unit], counts[unit])


def range_rows(units: Units, table: Table, names: tuple[str, ...], pools: RangedPools) -> pa.RecordBatch:
    """The rows of a table of ranges: one for each unit, lane and figure. names: of all lanes."""
    (n, m), k = pools.outcomes.shape, len(FIGURES)
    again = figures_of(pools.ranges.outcomes, pools.clock)
    counts = np.repeat(pools.ranges.counts.ravel(), k)
    by_share = quantiles(again.reshape(len(again), -1), counts)
    lane = np.tile(np.repeat(pools.lane, k), n)
    return make_rows(
        table,
        {
            **key_columns(units, table, np.repeat(pools.unit, m * k), pa.array(names, pa.string()), lane),
            table.metric: dictionary_column(pa.array([*FIGURES], pa.string()), np.tile(np.arange(k), n * m)),
            **range_columns(figures_of(pools.outcomes, pools.clock).ravel(), by_share, counts),
        },
    )


def figures_of(outcomes: Records, clock: float) -> Floats:
    """The figures that have a range: float64[..., figures]. outcomes: POOL_OUTCOME[...]. clock: as in RangedPools."""
    figures = np.stack([figure(outcomes) for figure in FIGURES.values()], axis=-1)
    figures[..., [*FIGURES].index(str(_B.wait_ms_max))] /= clock
    return figures
