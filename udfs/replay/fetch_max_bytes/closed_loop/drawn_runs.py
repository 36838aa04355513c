"""How much the next run may differ from the captured one in the batches that its producers make, and in when a reader
starts. VALIDATION.md says what was measured.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints
from udfs.columns.time_units import ALWAYS
from udfs.replay.fetch_max_bytes.closed_loop.state import Unit

STARTS_DIFFER = 0.4
"""How much equal runs in the lab differ in when a reader starts, and in when batches are produced: the standard
deviation of the logarithm, as BATCHES_DIFFER."""
BATCHES_DIFFER = 0.5
"""How much equal runs in the lab differ in how many batches producers make of the same records."""
BATCH_OVERHEAD = 110
"""How many bytes each further batch of the same records adds: 61 bytes of header, and fewer records compress less well.
In the lab it was 63 bytes without compression, and 120 to 190 bytes with it."""


def in_other_batches(unit: Unit, times_as_many: float) -> Unit:
    """The unit if producers had made `times_as_many` times the captured number of batches of the same records.

    Only the bytes change: each batch that the capture shows being produced gets the overhead of that many batches. No
    batch becomes smaller than half of its captured size.
    """
    batches = unit.batches.copy()
    before: Ints = batches["bytes_before"]
    sizes = np.diff(before)
    more = max(round((times_as_many - 1.0) * BATCH_OVERHEAD), -BATCH_OVERHEAD)
    is_produced = batches["visible_at"][:-1] > ALWAYS
    batches["bytes_before"][1:] = before[0] + np.cumsum(sizes + np.where(is_produced, np.maximum(more, -sizes // 2), 0))
    return unit._replace(batches=batches)
