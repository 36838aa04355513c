"""Messages on connections that share a pool, as tests write them down, and their replay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.channels import replay_lanes
from udfs.replay.consumer_memory.events import EXCHANGE
from udfs.replay.consumer_memory.settings import MEMORY_POOL, POOL_SETTINGS, UNBOUNDED
from udfs.replay.consumer_memory.state import MESSAGE, MessageSim, Traces, simulations_of_units
from udfs.replay.consumer_memory.traces import chains_of_exchanges, traces_from
from udfs.replay.shared.lanes import AS_CAPTURED

Exchange = tuple[int, int, int, int, int]  # connection, requested at, complete at, size, held us
MOST = (1 << 31) - 1


def trace_of(
    exchanges: Iterable[Exchange],
    privileged: Iterable[int] = (),
    max_bytes: int = 0,
    records: int = 0,
    size_known_at: Iterable[int] | None = None,
) -> Traces:
    """The exchanges of one unit. size_known_at: by default a whole message comes at once."""
    rows = sorted(exchanges, key=lambda exchange: (exchange[1], exchange[0]))
    connection, requested_at, complete_at, size, held_us = (
        np.array(column, np.int64) for column in zip(*rows, strict=True)
    )
    n = len(rows)
    messages = new_records(
        MESSAGE,
        n,
        requested_at=requested_at,
        size_known_at=complete_at if size_known_at is None else list(size_known_at),
        complete_at=complete_at,
        size=size,
        held_us=held_us,
        response_us=NEVER,
        records=records,
        max_bytes=max_bytes,
    )
    chains = chains_of_exchanges(new_records(EXCHANGE, n, connection=connection))
    is_privileged = np.isin(np.unique(connection), list(privileged)).astype(np.int64)
    return traces_from(chains, np.zeros(n, np.int64), messages, is_privileged, 1)


def pools_of(
    *sizes: int,
    is_strict: bool = False,
    variant: int = MEMORY_POOL,
    us_per_record: int = AS_CAPTURED,
    max_poll_records: int = 500,
) -> Records:
    """POOL_SETTINGS of one lane for each size."""
    return new_records(
        POOL_SETTINGS,
        len(sizes),
        size=sizes,
        max_allocation=np.minimum(sizes, UNBOUNDED if UNBOUNDED in sizes else MOST),
        is_strict=is_strict,
        variant=variant,
        us_per_record=us_per_record,
        max_poll_records=max_poll_records,
        seed=np.arange(len(sizes)),
    )


class Run(NamedTuple):
    """The replay of one unit. sim: as the last lane left it."""

    sim: MessageSim

    def outcome(self, lane: int = 0) -> dict[str, int]:
        """The outcome of a lane, by field."""
        return {name: int(self.sim.outcomes[lane][name]) for name in self.sim.outcomes.dtype.names or ()}

    @property
    def available(self) -> int:
        """Bytes that are free in the pool at the end of the last lane."""
        return int(self.sim.pool[0]["available"])

    @property
    def waits_counted(self) -> int:
        """How many messages got memory in the last lane, whether they waited or not."""
        return int(self.sim.meter.waits.sum())

    def curve(self, lane: int = 0) -> dict[int, int]:
        """For each step of the curve (bytes), how long (us) more bytes than that were in use."""
        steps = self.sim.curves.steps[: self.sim.curves.written[0]]
        return {int(step["bytes"]): int(step["above_us"]) for step in steps[steps["lane"] == lane]}

    def time_above(self, used: int, lane: int = 0) -> int:
        """How long (us) more than `used` bytes were in use."""
        outcome = self.outcome(lane)
        below = [above_us for most, above_us in self.curve(lane).items() if most <= used]
        return min(below, default=outcome["ended_at"] - outcome["began_at"])

    def most_waiting(self, lane: int = 0) -> int:
        """The most connections that waited at the same time."""
        slots = self.sim.curves.slots[: self.sim.curves.written[1]]
        return int(slots["most_waiting"][slots["lane"] == lane].max())


def replayed(trace: Traces, settings: Records) -> Run:
    """Replay one unit. settings: POOL_SETTINGS[lanes]."""
    _, units = simulations_of_units(trace, settings[np.newaxis])
    ((unit, sim),) = units
    replay_lanes(sim, unit)
    return Run(sim)


def outcome(trace: Traces, settings: Records) -> dict[str, int]:
    """The outcome of the only lane, by field. settings: POOL_SETTINGS[1]."""
    return replayed(trace, settings).outcome()
