"""KIP-74 on one core: a grid of limits beside one, from a reader's fetches to the rows of gold tables."""

from __future__ import annotations

import time

import numpy as np

from tests.bench.table import timed, told
from tests.unit.replay.captured_reader import SIZE, batch_rows, catch_up, lanes_of, reads_of
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.fetch_max_bytes.fetch_replay import replay_fetches

GRID = SIZE // 2, 50 * SIZE
"""fetch.max.bytes of the grid's ends: half a batch, and 50."""


def compare_lanes(partitions: int, batches: int, count: int) -> str:
    """A grid of fetch.max.bytes beside its middle; a lane of the grid sends twice the fetches, or a 25th of them."""
    events = batch_rows(partitions, batches) + catch_up(partitions=partitions, batches=batches)
    reads = reads_of(events).to_batches(max_chunksize=10_000)

    def replay(lanes: FetchLanes) -> None:
        for _ in replay_fetches(reads, lanes, "bench"):
            pass

    grid = np.geomspace(*GRID, count).astype(np.int64).tolist()
    many = timed(f"refetch, {count} lanes", lambda: replay(lanes_of(*grid)), clock=time.process_time)
    one = timed("refetch, one lane", lambda: replay(lanes_of(grid[count // 2])), clock=time.process_time)
    title = f"Closed and open loop of a backlog of {partitions} partitions, {count} lanes, CPU time"
    return told(title, partitions * batches // 2, "fetches", many, [one])
