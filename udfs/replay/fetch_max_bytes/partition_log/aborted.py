"""Which batches of a log are of transactions that were aborted: a consumer of committed records is given none of them.

The rules are those of CompletedFetch.nextFetchedRecord of kafka-clients 4.3: a producer's batches are left out from the
first offset of its aborted transaction on, which a response names, until its end marker.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Bools, Records
from udfs.replay.fetch_max_bytes.state import UNKNOWN

END, BEGIN, DATA = range(3)
"""What comes first of a producer at the same offset."""


def in_aborted_transaction(batches: Records, aborted: Records) -> Bools:
    """bool[n] of LOG_EVENT[n], batches in any order. aborted: LOG_EVENT[m], the transactions that were aborted."""
    n = len(batches)
    in_aborted = np.zeros(n, np.bool_)
    if not len(aborted):
        return in_aborted
    producer = np.concatenate([batches["producer_id"], aborted["producer_id"]])
    offset = np.concatenate([batches["position"], aborted["position"]])
    what = np.concatenate([np.where(batches["is_control"], END, DATA), np.full(len(aborted), BEGIN)])
    order = np.lexsort((what, offset, producer))
    what, producer = what[order], producer[order]
    place = np.arange(len(order))
    latest = np.maximum.accumulate(np.where(what == DATA, -1, place))
    marks = np.maximum(latest, 0)
    is_aborted = (latest >= 0) & (what[marks] == BEGIN) & (producer[marks] == producer) & (producer != UNKNOWN)
    is_batch = order < n
    in_aborted[order[is_batch]] = (is_aborted & (what == DATA))[is_batch]
    return in_aborted
