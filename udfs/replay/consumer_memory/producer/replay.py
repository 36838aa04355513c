"""Which lanes of a producer are replayed by its captured times, and which in closed loop.

Captured times show when memory is held for as long as nobody has to wait for it, and in the captured lane, whose waits
they contain. Where a batch of a busy producer would wait in another lane, what comes later does not come as captured. A
producer is busy whose requests were behind others of their connection for some of their time. One that is not sends
what lingers when it waits: requests far smaller than any that the capture has the time of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records, read_only
from udfs.replay.consumer_memory.producer.batches import Produced
from udfs.replay.consumer_memory.producer.captured_times import replay_lanes
from udfs.replay.consumer_memory.producer.pieces import loop_of
from udfs.replay.consumer_memory.producer.state import NONE, OUTCOME, new_sim
from udfs.replay.consumer_memory.producer.threads import loop_lanes
from udfs.replay.consumer_memory.usage import Meter, new_meter
from udfs.replay.shared.lanes import CAPTURED

BUSY = 0.1
"""From this share of the time that requests were on their way behind others: see VALIDATION.md."""


class ProducersReplayed(NamedTuple):
    """Producers in all lanes. outcomes: OUTCOME[units, lanes]. in_loop: bool[units, lanes], those in closed loop.

    late: int64[units], captured batches that the closed loop of the captured settings begins too late; NONE where no
    lane needs it.
    """

    outcomes: Records
    in_loop: Bools
    late: Ints


def replay_producers(produced: Produced, settings: Records, which: Ints) -> ProducersReplayed:
    """Replay producers in every lane; what a lane comes to in closed loop takes the place of what it did without.

    settings: BUFFER_SETTINGS[lanes]. which: their numbers; the others are not replayed.
    """
    units, lanes, meter = len(produced.producers), len(settings), new_meter()
    replayed = ProducersReplayed(
        np.zeros((units, lanes), OUTCOME), np.zeros((units, lanes), np.bool_), np.full(units, NONE)
    )
    for unit in which.tolist():
        producer, outcomes = produced.producers[unit], replayed.outcomes[unit]
        batches = produced.batches[producer["first_batch"] : producer["end_batch"]]
        replay_lanes(new_sim(batches, settings, meter, outcomes))
        in_loop = (outcomes["waits"] > 0) & (producer["share_behind"] >= BUSY)
        in_loop[CAPTURED] = False
        if in_loop.any():
            replayed.in_loop[unit] = in_loop
            replayed.late[unit] = loop_in(produced, unit, settings, meter, replayed)
    return replayed


def loop_in(produced: Produced, unit: int, settings: Records, meter: Meter, replayed: ProducersReplayed) -> int:
    """Replay a producer's lanes that are in closed loop; returns how many batches the captured lane begins too late."""
    lanes, outcomes = np.flatnonzero(replayed.in_loop[unit]), np.zeros(len(settings), OUTCOME)
    loop_lanes(loop_of(produced, unit, settings, meter, outcomes), read_only(np.append(CAPTURED, lanes)))
    replayed.outcomes[unit, lanes] = outcomes[lanes]
    return int(outcomes["late"][CAPTURED])
