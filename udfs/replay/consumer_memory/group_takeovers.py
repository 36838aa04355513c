"""Partitions that pass from one member of a consumer group to another, as the fetches of both show.

No two members of a group have a partition at the same time. If one member fetched a partition and another fetches it
next, the first has lost it or given it up. The requests of a process to the coordinator name its group. A process that
names several groups has several consumers, and its fetches do not say which consumer sent them. A process that names no
group assigns its partitions itself. For neither of them are takeovers known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS
from schemas.tables.steps_memory import GROUP_FETCHES, MEMORY_EVENTS
from schemas.tables.values import ANSWERED, CONSUMER
from schemas.wire.consumer_group_heartbeat import CONSUMER_GROUP_HEARTBEAT_REQUEST
from schemas.wire.join_group import JOIN_GROUP_REQUEST
from schemas.wire.sync_group import SYNC_GROUP_REQUEST
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import arrow_array, concatenate_batches, us_since_1970
from udfs.columns.arrow_columns import compute as pc
from udfs.replay.consumer_memory.silver_events import kind_column
from udfs.replay.shared.columns import codes_of, int_column, rows_alike
from udfs.replay.shared.dealt_rows import Step
from udfs.replay.shared.process_addresses import ProcessAddresses, with_process_address
from udfs.replay.shared.silver_columns import (
    constant_text_column,
    event_rows,
    is_known,
    is_text,
    null_unless,
    partition_key,
    rows_where,
    same_columns,
    text_or_empty,
)

JOIN_GROUP = JOIN_GROUP_REQUEST.api_key
MEMBERSHIP_APIS = (JOIN_GROUP, SYNC_GROUP_REQUEST.api_key, CONSUMER_GROUP_HEARTBEAT_REQUEST.api_key)
"""APIs of consumer groups. ShareFetch is not among them: the members of a share group share partitions."""
_G, _X, _F = GROUP_FETCHES, EXCHANGES, FETCH_PARTITIONS
GROUPS = Step(_G, (_G.group_id, _G.topic, _G.partition), (_G.time, _G.connection_id, _G.exchange_no))
MEMBER_COLUMNS = (
    _X.connection_id, _X.client_id, _X.client_address, _X.api_key, _X.group_id, _X.status, _X.request_time,
    _X.response_time,
)  # fmt: skip
FETCH_COLUMNS = (
    _F.connection_id, _F.exchange_no, _F.client_id, _F.client_address, _F.reader, _F.request_time, _F.read_position,
    _F.topic, _F.partition,
)  # fmt: skip
_MEMBERS: list[pa.Field[Any]] = [
    pa.field("client_id", pa.string()),
    pa.field("client_address", pa.string()),
    pa.field("group_id", pa.string()),
    pa.field("joins", pa.int64()),
    pa.field("joined", pa.int64()),
]
MEMBERS = pa.schema(_MEMBERS)
"""Two kinds of rows: a process and a group that it names, with null times, once for each batch of exchanges; and each
JoinGroup that was answered, with the times of its request (joins) and its response (joined), in us."""
Process = tuple[str, str]
"""A client.id, empty if there is none, and an address."""


def member_rows(batches: Iterable[pa.RecordBatch], processes: ProcessAddresses) -> Iterator[pa.RecordBatch]:
    """Rows of MEMBERS from rows of EXCHANGES. processes: those of clients that are several."""
    x = EXCHANGES
    for batch in batches:
        of_group = pc.is_in(batch[x.api_key], value_set=pa.array(MEMBERSHIP_APIS, pa.int16()))
        rows = rows_where(batch, of_group)
        if not rows.num_rows:
            continue
        rows = with_process_address(rows, processes)
        named = text_or_empty(rows[x.client_id]), rows[x.client_address], rows[x.group_id]
        _, first = rows_alike(rows.num_rows, *named)
        joined = pc.and_(pc.equal(rows[x.api_key], JOIN_GROUP), is_text(rows[x.status], ANSWERED))
        joined = pc.and_(joined, pc.and_(is_known(rows[x.request_time]), is_known(rows[x.response_time])))
        yield _members(rows.take(first), with_times=False)
        yield _members(rows_where(rows, joined), with_times=True)


def _members(rows: pa.RecordBatch, *, with_times: bool) -> pa.RecordBatch:
    x = EXCHANGES
    texts: list[Any] = [text_or_empty(rows[x.client_id]), rows[x.client_address], rows[x.group_id]]
    times = [us_since_1970(rows[time]) for time in (x.request_time, x.response_time)]
    if not with_times:
        times = [null_unless(pa.repeat(False, rows.num_rows), time) for time in times]
    return pa.RecordBatch.from_arrays([*(text.dictionary_decode() for text in texts), *times], schema=MEMBERS)


class Joins(NamedTuple):
    """The answered JoinGroups of a process, in the order of their responses: int64[joins] each, the times of the
    requests (joins) and of the responses (joined), in us.
    """

    joins: Ints
    joined: Ints


def groups_of_processes(members: pa.Table) -> dict[Process, str]:
    """The group of each process that names only one group, if that has another member. members: rows of MEMBERS."""
    groups: dict[Process, set[str]] = {}
    for row in members.to_pylist():
        if row["group_id"] is not None:
            groups.setdefault((row["client_id"], row["client_address"]), set()).add(row["group_id"])
    of_one = {process: next(iter(named)) for process, named in groups.items() if len(named) == 1}
    processes = Counter(of_one.values())
    return {process: group for process, group in of_one.items() if processes[group] > 1}


def joins_of(members: pa.Table) -> dict[Process, Joins]:
    """The joins of each process. members: rows of MEMBERS."""
    times: dict[Process, list[tuple[int, int]]] = {}
    for row in members.to_pylist():
        if row["joined"] is not None:
            times.setdefault((row["client_id"], row["client_address"]), []).append((row["joined"], row["joins"]))
    return {process: Joins(*np.array(sorted(of_process), np.int64).T[::-1]) for process, of_process in times.items()}


def group_fetches(
    batches: Iterable[pa.RecordBatch], groups: Mapping[Process, str], processes: ProcessAddresses
) -> Iterator[pa.RecordBatch]:
    """Rows of GROUP_FETCHES from rows of FETCH_PARTITIONS. groups: the group of each process. processes: those of
    clients that are several.
    """
    g, f = GROUP_FETCHES, FETCH_PARTITIONS
    names = sorted(set(groups.values()))
    number = {name: place for place, name in enumerate(names)}
    for batch in batches:
        is_wanted = pc.and_(is_known(batch[f.request_time]), is_known(batch[f.read_position]))
        rows = rows_where(batch, pc.and_(is_text(batch[f.reader], CONSUMER), is_wanted))
        rows = with_process_address(rows, processes)
        process, names_of = processes_of(rows)
        of_process = np.array([number.get(groups.get(name, ""), -1) for name in names_of], np.int64)
        group = of_process[process] if len(process) else process
        kept = group >= 0
        members = rows.filter(pa.array(kept))
        yield event_rows(
            {
                **same_columns((g.topic, g.partition, g.connection_id, g.exchange_no, g.client_address), members),
                g.group_id: pa.DictionaryArray.from_arrays(group[kept].astype(np.int32), pa.array(names, pa.string())),
                g.time: us_since_1970(members[f.request_time]),
                g.client_id: text_or_empty(members[f.client_id]),
            }
        )


def processes_of(rows: pa.RecordBatch) -> tuple[Ints, list[Process]]:
    """(the number of each row's process, int64[rows]; the processes by number)."""
    f = FETCH_PARTITIONS
    columns = text_or_empty(rows[f.client_id]), rows[f.client_address]
    number, first = rows_alike(rows.num_rows, *columns)
    names: list[Any] = [texts.take(pa.array(first, pa.int64())).to_pylist() for texts in columns]
    return number, list(zip(*names, strict=True))


def takeover_rows(batches: Iterable[pa.RecordBatch], joins: Mapping[Process, Joins]) -> Iterator[pa.RecordBatch]:
    """Rows of MEMORY_EVENTS from rows of GROUP_FETCHES, which are in the order of GROUPS.

    There is a row for each time that a member fetches a partition that another member fetched before. It has the
    connection, exchange and time of the later fetch, and the process of the earlier fetch.
    """
    held: pa.RecordBatch | None = None
    for batch in batches:
        rows = batch if held is None else concatenate_batches([held, batch])
        process, processes = processes_of(rows)
        passes = is_same_partition(rows) & (process[1:] != process[:-1])
        if passes.any():
            yield takeover_events(rows, np.flatnonzero(passes), [processes[of] for of in process[1:][passes]], joins)
        held = rows.slice(rows.num_rows - 1) if rows.num_rows else held


def is_same_partition(rows: pa.RecordBatch) -> Bools:
    """Whether each row has the same partition as the row before it: bool[rows - 1]."""
    return np.logical_and.reduce([np.diff(codes_of(rows[column])[0]) == 0 for column in GROUPS.unit])


def takeover_events(
    rows: pa.RecordBatch, places: Ints, by: list[Process], joins: Mapping[Process, Joins]
) -> pa.RecordBatch:
    """Rows of MEMORY_EVENTS for partitions that pass to another process, one for each of `places`.

    places: int64[n], the rows with the last fetch of each earlier process; the row after each has the first fetch of
    the later process. by: the later processes.
    """
    t, g = MEMORY_EVENTS, GROUP_FETCHES
    before, after = rows.take(places), rows.take(places + 1)
    last_joins, last_joined, has_joined = joins_before(int_column(after, g.time, 0), by, joins)
    return event_rows(
        {
            t.side: constant_text_column(CONSUMER, before),
            t.unit: before[g.client_id],
            t.unit_address: before[g.client_address],
            **same_columns((t.connection_id, t.exchange_no, t.time), after),
            t.kind: kind_column(MemoryEvent.TAKEN_OVER, before),
            t.started: arrow_array(last_joins, has_joined),
            t.came: arrow_array(last_joined, has_joined),
            t.partition_key: partition_key(before[g.topic], before[g.partition]),
        }
    )


def joins_before(times: Ints, processes: list[Process], joins: Mapping[Process, Joins]) -> tuple[Ints, Ints, Bools]:
    """The last JoinGroup of each process that was answered by a time: (when it was requested, us, int64[n]; when it was
    answered, us, int64[n]; whether there is one, bool[n]).

    times: int64[n], us. processes: the process for each time.
    """
    last_joins, last_joined = np.zeros(len(times), np.int64), np.zeros(len(times), np.int64)
    has_joined = np.zeros(len(times), np.bool_)
    for process in set(processes) & joins.keys():
        rows = np.flatnonzero([of == process for of in processes])
        place = np.searchsorted(joins[process].joined, times[rows], side="right") - 1
        rows, place = rows[place >= 0], place[place >= 0]
        has_joined[rows] = True
        last_joins[rows], last_joined[rows] = joins[process].joins[place], joins[process].joined[place]
    return last_joins, last_joined, has_joined
