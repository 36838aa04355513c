"""A lane of a producer at the window's begin and at its end."""

from __future__ import annotations

from udfs.columns.arrays import Records
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.usage import Meter, advance_meter, begin_window, enters_window
from udfs.replay.shared.event_heap import Heap


@kernel
def count_from_here(meter: Meter, outcomes: Records, no_outcome: Records, lane: int) -> None:
    """Let the lane count from the window's begin on. Memory in use and waits stay as they are.

    outcomes: BUFFER_OUTCOME[lanes]. no_outcome: BUFFER_OUTCOME[1].
    """
    waits = outcomes[lane].waits
    begin_window(meter)
    outcomes[lane] = no_outcome[0]
    outcomes[lane].waits_before = waits


@kernel
def end_window(meter: Meter, outcomes: Records, no_outcome: Records, lane: int, heap: Heap) -> None:
    """Stop at the end of the window, or after the last event. If that is before the window, nothing counts.

    outcomes: BUFFER_OUTCOME[lanes]; the lane's is written. no_outcome: BUFFER_OUTCOME[1], zeros.
    """
    usage = meter.usage[0]
    if enters_window(meter, usage.window_begins_at):
        count_from_here(meter, outcomes, no_outcome, lane)
    if heap.events[0] > 0:
        advance_meter(meter, max(usage.time, usage.window_ends_at))
        heap.events[0] = 0
