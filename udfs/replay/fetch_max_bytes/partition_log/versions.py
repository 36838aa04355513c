"""How a compacted log changed: the sizes that its batches had from time to time, and when they were gone.

The log cleaner writes segments anew. A batch that loses some records becomes smaller and keeps its offsets. A batch
that loses all of them is gone (LogCleaner.cleanInto). Every response shows batches as they were then: those that it
has, and by the offsets that it leaves out, those that were gone. In between, a batch is taken to be as in the response
that is nearest in time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records, numbers_in_stretches, stretch_edges
from udfs.columns.records import int_fields, join_records, new_records, pick_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.partition_log.log import PartitionLog, run_ends

SIGHT = int_fields(
    "batch",  # its index in the log
    "time",  # us
    "size",  # bytes, 0 if the batch was gone
    "records",  # how many a consumer can be given
)
"""How a batch was at some time."""


class Versions(NamedTuple):
    """first: SIGHT[batches], how each batch of the log was at first. changes: SIGHT[n], how batches were from some time
    on, in the order of time.
    """

    first: Records
    changes: Records


def versions_of(log: PartitionLog, batches: Records, witnesses: Records) -> Versions:
    """How the batches of a log changed.

    batches: LOG_EVENT[n], those of which the log was built. witnesses: LOG_EVENT[m], reads that got records.
    """
    is_fetched, place = batches["append_after"] == ALWAYS, np.searchsorted(log.base, batches["position"])
    is_whole = np.zeros(len(log.base), np.bool_)
    is_whole[place[is_fetched & ~batches["is_sparse"]]] = True
    # A broker may recompress what is produced.
    counts = is_fetched | ~is_whole[place]
    offsets = batches["last_offset"] - batches["position"] + 1
    shown = new_records(
        SIGHT,
        len(batches),
        batch=place,
        time=np.where(batches["append_before"] == NEVER, batches["append_after"], batches["append_before"]),
        size=batches["size_bytes"],
        records=np.where(batches["records"] == NONE, offsets, batches["records"]),
    )
    fetched = pick_records(batches, is_fetched)
    sights = join_records(SIGHT, [pick_records(shown, counts), gone_batches(log, fetched, witnesses)])
    sights = sights[np.lexsort((sights["time"], sights["batch"]))]
    is_first = np.append(True, sights["batch"][1:] != sights["batch"][:-1])[: len(sights)]
    before, after = sights[:-1], sights[1:]
    is_changed = (before["size"] != after["size"]) | (before["records"] != after["records"])
    is_changed &= before["batch"] == after["batch"]
    changes = pick_records(after, is_changed)
    changes["time"] -= (changes["time"] - pick_records(before, is_changed)["time"]) // 2
    return Versions(pick_records(sights, is_first), changes[np.argsort(changes["time"], kind="stable")])


def gone_batches(log: PartitionLog, fetched: Records, witnesses: Records) -> Records:
    """The batches that responses show to be gone: SIGHT[n]. They are between two batches of a response, or between the
    fetch offset and its first batch.

    fetched: LOG_EVENT[n], fetched batches. witnesses: as in `versions_of`.
    """
    # If not all partitions that a fetch wanted are known, its offset may be that of an earlier fetch.
    asked = pick_records(witnesses, (witnesses["returned_bytes"] > 0) & witnesses["readable_known"])
    rows = np.concatenate(
        [
            np.stack([fetched["connection_id"], fetched["exchange_no"], fetched["position"]]),
            np.stack([asked["connection_id"], asked["exchange_no"], np.full(len(asked), NONE)]),
        ],
        axis=1,
    )
    # Where the part behind the row begins, and the batch from which on the row shows the log.
    behind = np.concatenate([fetched["last_offset"] + 1, asked["fetch_offset"]])
    at = np.concatenate([fetched["position"], np.full(len(asked), NONE)])
    time = np.concatenate([fetched["append_before"], np.full(len(asked), NONE)])
    order = np.lexsort(rows[::-1])
    here, there = order[:-1], order[1:]
    is_next = (rows[:2, here] == rows[:2, there]).all(axis=0) & (at[there] > behind[here])
    here, there = here[is_next], there[is_next]
    begin, end = np.searchsorted(log.last, behind[here]), np.searchsorted(log.base, at[there])
    count = np.maximum(end - begin, 0)
    return new_records(
        SIGHT, int(count.sum()), batch=numbers_in_stretches(begin, count), time=np.repeat(time[there], count)
    )


def log_after(log: PartitionLog, versions: Versions, applies: Bools) -> PartitionLog:
    """The log after some of its changes. A batch that is gone has its offsets in the next one, from which a read of
    them begins.

    applies: bool[changes].
    """
    now, changes = versions.first.copy(), pick_records(versions.changes, applies)
    now[changes["batch"]] = changes  # of several changes of a batch, the last one written stays
    is_there = now["size"] > 0
    kept = np.flatnonzero(is_there)
    behind = np.append(0, kept[:-1] + 1)[: len(kept)]
    contiguous = log.run_end[np.minimum(behind, len(log.base) - 1)] > kept
    base = np.where(contiguous, log.base[np.minimum(behind, len(log.base) - 1)], log.base[kept])
    size, records = now["size"][kept], now["records"][kept]
    is_left_out = (log.committed_records == 0) & (log.records > 0)
    return PartitionLog(
        base=base,
        last=log.last[kept],
        size=size,
        records=records,
        committed_records=np.where(is_left_out[kept], 0, records),
        after=log.after[kept],
        before=log.before[kept],
        run_end=run_ends(base, log.last[kept]),
        starts=stretch_edges(size),
    )


def places_after(versions: Versions, applies: Bools, places: Ints) -> Ints:
    """The places, in `log_after`, of batches of the log; of the next one for a batch that is gone: int64[n]."""
    now, changes = versions.first["size"].copy(), pick_records(versions.changes, applies)
    now[changes["batch"]] = changes["size"]
    return np.append(0, np.cumsum(now > 0))[places]


def passed_at(log: PartitionLog, offset: Ints, time: Ints) -> Ints:
    """When a reader had passed each batch of the log (us), NEVER if it did not: int64[batches].

    offset, time: int64[n], the fetch offsets and times of its requests, in the order of time.
    """
    place = np.searchsorted(np.maximum.accumulate(offset), log.last, side="right")
    return np.append(time, NEVER)[place]
