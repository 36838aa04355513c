"""The capture set that another one continues (`--continue`). In a replay it comes before that one: it warms up the
state, and nothing of it is counted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from jobs.captures.capture_quality import KAFKA_PROTOCOL
from jobs.lake.delta_tables import stored_rows
from jobs.lake.migration import check_complete
from jobs.replays.algorithm import Lookups, Source
from jobs.replays.capture_window import capture_span, micros_since_1970
from jobs.replays.silver import Read, read_small_table
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
from schemas.tables.values import CONTINUED, NO_REQUEST, ORPHAN_RESPONSE
from udfs.columns.arrow_columns import us_since_1970
from udfs.columns.time_units import ALWAYS, US_PER_MS
from udfs.replay.shared.dealing import Events
from udfs.replay.shared.silver_columns import ByConnection
from udfs.replay.shared.window import Window

MOST_PAUSE_US = 10_000_000
"""Between the two sets. A restarted capture lacks about a second; in a longer pause caches change unseen."""
_C, _X, _F = CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
_ENDS = (_C.connection_id, _C.server, _C.client, _C.protocol, _C.first_time, _C.continuation)


class Cut(NamedTuple):
    """Where one set ends and the next continues it.

    begin_us: when the later set begins, us since 1970. names: for ids of connections in the earlier set, the ids that
    they have in the later one, if they differ. answered: for each connection of the later set, when the request that
    waited between the sets was answered, us since 1970.
    """

    begin_us: int
    names: ByConnection
    answered: ByConnection


@dataclass(frozen=True)
class WarmUpSet:
    """The earlier set as a source of rows, and where the later one continues it."""

    source: Source
    cut: Cut

    def read(self, read: Read) -> Read:
        """The same read of the earlier set: its rows from before the later one, with the later one's connection ids."""
        return read._replace(mapped=partial(rows_before, read.mapped, self.cut))

    def connections(self, own: pa.Table, columns: tuple[str, ...]) -> pa.Table:
        """The connections of both sets, each once, from its first packet in the earlier set on.

        own: those of the later set, with these columns: connection_id, first_time, last_time and others.
        """
        earlier = read_small_table(self.source, CONNECTIONS, columns).combine_chunks()
        batches = [_renamed(batch, self.cut.names) for batch in earlier.to_batches()]
        both = pa.concat_tables([own, pa.Table.from_batches(batches, own.schema)])
        how: dict[str, Literal["min", "max"]] = {_C.first_time: "min", _C.last_time: "max"}
        others: list[tuple[str, Literal["min", "max", "first"]]] = [
            (column, how.get(column, "first")) for column in columns if column != _C.connection_id
        ]
        merged = both.group_by(str(_C.connection_id), use_threads=False).aggregate(others)
        return merged.rename_columns([_C.connection_id, *(column for column, _ in others)]).select(list(columns))

    def window(self, window: Window) -> Window:
        """The window without the time of the earlier set."""
        return window._replace(begin=self.cut.begin_us) if window.begin == ALWAYS else window


def warm_up_set(source: Source) -> WarmUpSet | None:
    """The set that the source's set continues. None if there is no such set, if it is gone, which is written to stderr,
    or if the pause between them is too long.

    Raises LakeError if its rows were made by an older release.
    """
    spark, lake = source.spark, source.run.lake
    row = source.rows(CAPTURES).select(CAPTURES.continues).first()
    earlier = None if row is None else row[0]
    if earlier is None:
        return None
    if stored_rows(spark, lake, CAPTURES, earlier).isEmpty():
        sys.stderr.write(f"refetch: capture set {earlier} is gone, which this one goes on from: caches begin empty\n")
        return None
    check_complete(spark, lake, (CONNECTIONS, EXCHANGES, FETCH_PARTITIONS), earlier)
    begin_us, _ = capture_span(spark, lake, source.capture_id)
    _, end_us = capture_span(spark, lake, earlier)
    if begin_us - end_us > MOST_PAUSE_US:
        return None
    of_earlier = replace(source, capture_id=earlier, lookups=Lookups())
    names = names_of_connections(*(read_small_table(of, CONNECTIONS, _ENDS) for of in (of_earlier, source)))
    return WarmUpSet(of_earlier, Cut(begin_us, names, _first_answers(source)))


def _first_answers(source: Source) -> ByConnection:
    """For each connection the time of the first response whose request the set lacks, us since 1970."""
    orphans = source.rows(EXCHANGES).where(F.col(_X.status) == ORPHAN_RESPONSE)
    first = F.min(micros_since_1970(_X.response_time)).alias("first")
    rows = orphans.groupBy(_X.connection_id).agg(first).where("first IS NOT NULL").orderBy(_X.connection_id).toArrow()
    return ByConnection(rows[_X.connection_id].to_numpy(), rows["first"].to_numpy())


def names_of_connections(earlier: pa.Table, own: pa.Table) -> ByConnection:
    """For ids of connections in the earlier set the ids that they have in the later one, if they differ.

    Only the last connection between two endpoints may continue in the later set. There it has the id that the first
    connection between them has in the earlier set, also if it has no more requests. The others are not in the later
    set: if a connection there has the same id, they get an unused one.

    earlier, own: connection_id, server, client, protocol, first_time and continuation of CONNECTIONS.
    """
    earlier = earlier.filter(pc.equal(earlier[_C.protocol], pa.scalar(KAFKA_PROTOCOL)))
    ids = earlier[_C.connection_id].to_numpy()
    first_id, last_id = dict[tuple[str, str], int](), dict[tuple[str, str], int]()
    in_time = np.lexsort((ids, earlier[_C.first_time].cast(pa.int64()).to_numpy()))
    ends = list(zip(earlier[_C.server].to_pylist(), earlier[_C.client].to_pylist(), strict=True))
    for place in in_time.tolist():
        first_id.setdefault(ends[place], int(ids[place]))
        last_id[ends[place]] = int(ids[place])
    goes_on = pc.is_in(own[_C.continuation], value_set=pa.array([CONTINUED, NO_REQUEST]))
    continued = set(own.filter(goes_on)[_C.connection_id].to_pylist())
    taken = set(own[_C.connection_id].to_pylist())
    renamed = {last_id[of]: first for of, first in first_id.items() if first in continued and last_id[of] != first}
    going_on = {last_id[of] for of, first in first_id.items() if first in continued}
    free = (number for number in range(len(ids) + len(taken) + 1) if number not in taken)
    renamed |= {one: next(free) for one in map(int, ids) if one in taken and one not in going_on}
    known = sorted(renamed)
    return ByConnection(np.array(known, np.int64), np.array([renamed[one] for one in known], np.int64))


def rows_before(mapped: Events, cut: Cut, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What `mapped` makes of the rows with requests from before the later set."""
    yield from mapped(_as_before(batch, cut) for batch in batches)


def _as_before(batch: pa.RecordBatch, cut: Cut) -> pa.RecordBatch:
    """The rows with requests from before the later set, with its connection ids.

    A fetch that waits between the sets waits at most until its response in the later set.
    """
    times = us_since_1970(batch[_X.request_time])
    batch = _renamed(batch.filter(pc.less(times, pa.scalar(cut.begin_us))), cut.names)
    place = batch.schema.get_field_index(_F.max_wait_ms)
    if place < 0:
        return batch
    waited_us = pc.subtract(cut.answered.of(batch[_C.connection_id], None), us_since_1970(batch[_F.request_time]))
    waited = pc.divide(pc.max_element_wise(waited_us, pa.scalar(0), skip_nulls=False), pa.scalar(US_PER_MS)).cast(
        batch[place].type
    )
    shorter = pc.if_else(pc.less(waited, batch[place]), waited, batch[place])
    return batch.set_column(place, batch.schema.field(place), pc.coalesce(shorter, batch[place]))


def _renamed(batch: pa.RecordBatch, names: ByConnection) -> pa.RecordBatch:
    """The rows with other ids of connections."""
    place = batch.schema.get_field_index(_C.connection_id)
    ids = pc.coalesce(names.of(batch[_C.connection_id], None), batch[_C.connection_id])
    return batch.set_column(place, batch.schema.field(place), ids)
