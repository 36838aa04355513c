"""Which lanes of a producer are replayed by its captured times, and which in closed loop.

Captured times tell when memory is held for as long as nobody has to wait for it, and in the captured lane, whose waits
they contain. Where a batch of a busy producer would wait in another lane, what comes behind it does not come as
captured. A producer is busy whose requests were behind others of their connection for some of their time. One that is
not sends what lingers where it waits: requests far smaller than any that the capture has the time of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfs.columns.arrays import Bools
from udfs.replay.consumer_memory.producer.batches import Sent
from udfs.replay.consumer_memory.producer.captured_times import BufferBounds, Buffered, replay_producer
from udfs.replay.consumer_memory.producer.requests import share_behind
from udfs.replay.consumer_memory.producer.threads import replay_sends

CAPTURED = 0
BUSY = 0.1
"""From this share of the time that requests were on their way behind others: see VALIDATION.md."""


@dataclass(frozen=True)
class Followed:
    """A producer in all lanes. in_loop: bool[lanes], those in closed loop.

    late: captured batches that the closed loop of the captured settings begins too late, None where no lane needs it.
    behind: the share of the time of requests that they were behind others.
    """

    sim: Buffered
    behind: float
    in_loop: Bools
    late: int | None


def followed(sent: Sent, bounds: BufferBounds) -> Followed:
    """Replay a producer in every lane; what a lane comes to in closed loop takes the place of what it did without."""
    sim, behind = replay_producer(sent.batches, bounds), share_behind(sent.sends.requests)
    in_loop = (sim.runs["waits"] > 0) & (behind >= BUSY)
    in_loop[CAPTURED] = False
    lanes = np.flatnonzero(in_loop)
    if not len(lanes):
        return Followed(sim, behind, in_loop, None)
    loop = replay_sends(sent.sends, BufferBounds(*(column[[CAPTURED, *lanes]] for column in bounds)))
    tables = (sim.waits, sim.usages, sim.runs, *sim.spent)
    for told, instead in zip(tables, (loop.waits, loop.usages, loop.runs, *loop.spent), strict=True):
        told[lanes] = instead[1:]
    return Followed(sim, behind, in_loop, int(loop.runs["late"][CAPTURED]))
