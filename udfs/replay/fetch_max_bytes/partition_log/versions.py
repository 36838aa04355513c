"""How a compacted log changed: the sizes that its batches had from time to time, and when they were gone.

The log cleaner writes segments anew. A batch that loses some records becomes smaller and keeps its offsets. A batch
that loses all of them is gone (LogCleaner.cleanInto). Every response shows batches as they were then: those that it
has, and by the offsets that it leaves out, those that were gone. In between, a batch is taken to be as in the response
that is nearest in time. Offsets that a response leaves out and no captured batch has were gone before.
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


class Holes(NamedTuple):
    """Offsets that responses leave out, from `begin` up to before the batch at `end`. time: of the response (us).
    int64[n] each.
    """

    begin: Ints
    end: Ints
    time: Ints


def shown_holes(batches: Records, witnesses: Records) -> Holes:
    """The holes between two batches of a response, and between the fetch offset and its first batch.

    batches: LOG_EVENT[n]. witnesses: LOG_EVENT[m], reads that got records.
    """
    fetched = pick_records(batches, batches["append_after"] == ALWAYS)
    # If not all partitions that a fetch wanted are known, its offset may be that of an earlier fetch.
    asked = pick_records(witnesses, (witnesses["returned_bytes"] > 0) & witnesses["readable_known"])
    connection, exchange = (np.concatenate([fetched[name], asked[name]]) for name in ("connection_id", "exchange_no"))
    at = np.concatenate([fetched["position"], np.full(len(asked), NONE)])
    behind = np.concatenate([fetched["last_offset"] + 1, asked["fetch_offset"]])
    time = np.concatenate([fetched["append_before"], np.full(len(asked), NONE)])
    order = np.lexsort((at, exchange, connection))
    here, there = order[:-1], order[1:]
    is_hole = (connection[here] == connection[there]) & (exchange[here] == exchange[there]) & (at[there] > behind[here])
    return Holes(behind[here][is_hole], at[there][is_hole], time[there][is_hole])


def batches_in_holes(log: PartitionLog, holes: Holes) -> tuple[Ints, Ints]:
    """(the first batch of the log in each hole, how many are in it): int64[holes] each."""
    begin = np.searchsorted(log.last, holes.begin)
    return begin, np.maximum(np.searchsorted(log.base, holes.end) - begin, 0)


def joined_over_holes(log: PartitionLog, holes: Holes) -> PartitionLog:
    """The log in which no offset of a hole is missing: the next batch has those that no known batch has."""
    begin, count = batches_in_holes(log, holes)
    place = numbers_in_stretches(begin, count + 1)
    before = np.where(place > 0, log.last[np.maximum(place - 1, 0)] + 1, 0)
    base = log.base.copy()
    is_there = place < len(base)
    np.minimum.at(base, place[is_there], np.maximum(before, np.repeat(holes.begin, count + 1))[is_there])
    return log._replace(base=base, run_end=run_ends(base, log.last))


def versions_of(log: PartitionLog, batches: Records, holes: Holes) -> Versions:
    """How the batches of a log changed. batches: LOG_EVENT[n], those of which the log was built."""
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
    begin, count = batches_in_holes(log, holes)
    gone = new_records(
        SIGHT, int(count.sum()), batch=numbers_in_stretches(begin, count), time=np.repeat(holes.time, count)
    )
    sights = join_records(SIGHT, [pick_records(shown, counts), gone])
    sights = sights[np.lexsort((sights["time"], sights["batch"]))]
    is_first = np.append(True, sights["batch"][1:] != sights["batch"][:-1])[: len(sights)]
    before, after = sights[:-1], sights[1:]
    is_changed = (before["size"] != after["size"]) | (before["records"] != after["records"])
    is_changed &= before["batch"] == after["batch"]
    changes = pick_records(after, is_changed)
    changes["time"] -= (changes["time"] - pick_records(before, is_changed)["time"]) // 2
    return Versions(pick_records(sights, is_first), changes[np.argsort(changes["time"], kind="stable")])


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
