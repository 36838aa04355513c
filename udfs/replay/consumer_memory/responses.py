"""The exchanges of clients under other fetch limits: the closed loop's responses replace the captured fetches.

All other exchanges stay as captured, and so do connections that are not in the closed loop. The closed loop gives only
the record bytes of a response. Its other bytes, and how long it takes to come, are measured on the captured responses
of the same connection. Applied to these captured responses, the measures add up to the captured totals.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.steps_memory import CLOSED_RESPONSES, MEMORY_EVENTS
from udfs.columns.arrays import Ints, Records
from udfs.columns.groups import group_numbers
from udfs.columns.picking import pick_values
from udfs.columns.records import GrowingRecords, int_fields, new_records
from udfs.columns.searches import place_of_first
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.facts.arrow_tables import unpack_rows
from udfs.replay.consumer_memory.events import EXCHANGE
from udfs.replay.consumer_memory.given_up import GIVEN_UP, when_gone
from udfs.replay.consumer_memory.takeovers import FETCH
from udfs.replay.shared.caps import MOST_RESPONSES
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.line_fit import fit_line

CLOSED_RESPONSE = int_fields(
    "unit",
    "fetch_number",  # which of the fetch limits
    "number",  # its index among the unit's responses under these limits
    "connection",  # its id
    "requested_at",  # us
    "complete_at",  # us
    "held_us",  # us: how long it is held from complete_at on; NEVER: until all its records that are given up are gone
    "record_bytes",
    "records",
    "partitions",  # with records
)
"""A response of the closed loop."""
LOOPED = int_fields("unit", "connection")
"""A connection, by its id, whose captured fetches the closed loop replaces. The closed loop need not have a response on
it: responses of a connection that was opened anew count with the first one, and of several consumers that share
partitions, one may have none there."""
OVERHEAD = np.dtype([("base_bytes", np.float64), ("partition_bytes", np.float64), ("byte_us", np.float64)])
"""The bytes of a connection's responses besides their records, for each response and for each partition with records;
and how long a byte takes to come (us)."""


@dataclass
class ClosedLoop:
    """The responses that several clients get in closed loop, at most MOST_RESPONSES of each.

    counts: how many there are, by unit. left_out: for how many there was no room, by unit and number of the fetch
    limits. unchecked: why the closed loop cannot be compared with the capture, by unit.
    """

    responses: GrowingRecords = field(default_factory=lambda: GrowingRecords(CLOSED_RESPONSE))
    given_up: GrowingRecords = field(default_factory=lambda: GrowingRecords(GIVEN_UP))
    looped: GrowingRecords = field(default_factory=lambda: GrowingRecords(LOOPED))
    counts: Counter[int] = field(default_factory=Counter)
    left_out: Counter[tuple[int, int]] = field(default_factory=Counter)
    unchecked: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, rows: pa.RecordBatch, unit: Ints) -> None:
        """Take rows of MEMORY_EVENTS of kinds RESPONSES, GIVEN_UP and IN_LOOP. unit: int64[rows]."""
        kind = int_column(rows, MEMORY_EVENTS.kind, 0)
        is_given_up, has_responses = kind == MemoryEvent.GIVEN_UP, kind == MemoryEvent.RESPONSES
        self.given_up.add(given_up_of(rows.filter(pa.array(is_given_up)), unit[is_given_up]))
        self._add_responses(rows.filter(pa.array(has_responses)), unit[has_responses].tolist())
        is_in_loop, ids = kind == MemoryEvent.IN_LOOP, int_column(rows, MEMORY_EVENTS.connection_id, NONE)
        self.looped.add(new_records(LOOPED, int(is_in_loop.sum()), unit=unit[is_in_loop], connection=ids[is_in_loop]))

    def _add_responses(self, rows: pa.RecordBatch, units: list[int]) -> None:
        t = MEMORY_EVENTS
        lanes, left_out = (int_column(rows, name, 0).tolist() for name in (t.lane, t.left_out))
        for unit, lane, left, stream in zip(units, lanes, left_out, rows[t.responses], strict=True):
            self.left_out[unit, lane] += left
            for responses in unpack_rows(stream):
                room = max(MOST_RESPONSES - self.counts[unit], 0)
                kept = responses.slice(0, room)
                self.left_out[unit, lane] += responses.num_rows - kept.num_rows
                self.counts[unit] += kept.num_rows
                self.responses.add(responses_from_rows(kept, unit, lane))
        for unit, reason in zip(units, rows[t.unchecked].to_pylist(), strict=True):
            if reason:
                self.unchecked[unit].add(reason)

    def responses_under(self, fetch_number: int) -> Records:
        """Responses under the fetch limits of this number, by unit and in request order: CLOSED_RESPONSE[n]."""
        return records_under(self.responses.records, fetch_number)

    def given_up_under(self, fetch_number: int) -> Records:
        """The records that are given up under the fetch limits of this number: GIVEN_UP[n]."""
        return records_under(self.given_up.records, fetch_number)


def records_under(records: Records, fetch_number: int) -> Records:
    """The records of the fetch limits of this number.

    records: CLOSED_RESPONSE[n] or GIVEN_UP[n].
    """
    return records[records["fetch_number"] == fetch_number]


def responses_from_rows(rows: pa.RecordBatch, unit: int, fetch_number: int) -> Records:
    """CLOSED_RESPONSE[n] from rows of CLOSED_RESPONSES."""
    t = CLOSED_RESPONSES
    return new_records(
        CLOSED_RESPONSE,
        rows.num_rows,
        unit=unit,
        fetch_number=fetch_number,
        number=int_column(rows, t.number, NONE),
        connection=int_column(rows, t.connection_id, NONE),
        requested_at=int_column(rows, t.time, NEVER),
        complete_at=int_column(rows, t.came, NEVER),
        held_us=int_column(rows, t.held, NEVER),
        record_bytes=int_column(rows, t.returned_bytes, 0),
        records=int_column(rows, t.records, 0),
        partitions=int_column(rows, t.partitions, 0),
    )


def given_up_of(rows: pa.RecordBatch, unit: Ints) -> Records:
    """GIVEN_UP[n] from rows of MEMORY_EVENTS of that kind. unit: int64[n]."""
    t = MEMORY_EVENTS
    return new_records(
        GIVEN_UP,
        rows.num_rows,
        unit=unit,
        fetch_number=int_column(rows, t.lane, 0),
        response=int_column(rows, t.exchange_no, NONE),
        partition_key=int_column(rows, t.partition_key, 0),
        last_requested_at=int_column(rows, t.started, NEVER),
        requested_again_at=int_column(rows, t.released, NEVER),
        turn_at=int_column(rows, t.came, NEVER),
    )


def hold_given_up(responses: Records, given_up: Records, takeovers: Records, exchanges: Records) -> None:
    """Hold responses until all records of them that are given up are gone, too.

    responses: CLOSED_RESPONSE[n], written in place. given_up: GIVEN_UP[m], of the same fetch limits. takeovers:
    TAKEOVER[k]. exchanges: EXCHANGE[l], all captured exchanges of the clients.
    """
    order = np.lexsort((responses["number"], responses["unit"]))
    unit, number = responses["unit"][order], responses["number"][order]
    place = place_of_first(unit, number, given_up["unit"], given_up["response"])
    is_kept = (place != NONE) & (pick_values(number, place, NONE) == given_up["response"])
    given_up, response = given_up[is_kept], order[place[is_kept]]
    complete_at, connection = responses["complete_at"][response], responses["connection"][response]
    gone_at = when_gone(given_up, connection, takeovers, exchanges)
    held_us = np.where(gone_at == NEVER, NEVER, np.maximum(gone_at, complete_at) - complete_at)
    np.maximum.at(responses["held_us"], response, held_us)


def overhead_of(fetches: Records) -> tuple[float, float, float]:
    """The OVERHEAD of the captured fetches of one connection, EXCHANGE[n]."""
    beside = np.maximum(fetches["size"] - fetches["record_bytes"], 0)
    base_bytes, partition_bytes = fit_line(np.ascontiguousarray(fetches["partitions"]), beside, 0.0)
    started_at = np.clip(fetches["size_known_at"], fetches["requested_at"], fetches["complete_at"])
    took_us = int(np.maximum(fetches["complete_at"] - started_at, 0).sum())
    return base_bytes, partition_bytes, float(took_us) / max(int(fetches["size"].sum()), 1)


def overheads_of(fetches: Records, connection: Ints, wanted: Ints) -> Records:
    """The OVERHEAD of connections by their numbers: OVERHEAD[len(wanted)].

    fetches: EXCHANGE[n], captured fetches. connection: int64[n], the connection's number of each. wanted: the numbers,
    rising.
    """
    order = np.argsort(connection, kind="stable")
    first, end = (np.searchsorted(connection[order], wanted, side=side).tolist() for side in ("left", "right"))
    by_connection = [order[begin:behind] for begin, behind in zip(first, end, strict=True)]
    return np.array([overhead_of(fetches[places]) for places in by_connection], OVERHEAD)


def as_exchanges(responses: Records, overhead: Records, max_bytes: Ints, speed: float = 1.0) -> Records:
    """The responses of the closed loop as exchanges, by the capture's clock: EXCHANGE[n].

    responses: CLOSED_RESPONSE[n]. overhead: OVERHEAD[n], for the connection of each. max_bytes: int64[n], for each.
    speed: the factor by which records are produced faster than captured.
    """
    beside = overhead["base_bytes"] + overhead["partition_bytes"] * responses["partitions"]
    size = responses["record_bytes"] + np.round(beside).astype(np.int64)
    complete_at, is_pinned = responses["complete_at"], responses["held_us"] == NEVER
    return new_records(
        EXCHANGE,
        len(responses),
        unit=responses["unit"],
        connection=responses["connection"],
        requested_at=responses["requested_at"],
        size_known_at=complete_at - np.round(speed * overhead["byte_us"] * size).astype(np.int64),
        complete_at=complete_at,
        size=size,
        max_bytes=max_bytes,
        api_key=FETCH,
        records=responses["records"],
        record_bytes=responses["record_bytes"],
        partitions=responses["partitions"],
        undrained=is_pinned,
        drained_at=np.where(is_pinned, ALWAYS, complete_at + responses["held_us"]),
        lost_at=ALWAYS,
        taken_over_at=ALWAYS,
    )


def in_closed_loop(
    captured: Records, responses: Records, looped: Records, max_bytes: Ints, begins_at: int = ALWAYS,
    speed: float = 1.0,
) -> Records:  # fmt: skip
    """The exchanges of clients, with the closed loop's responses instead of the captured fetches of its connections:
    EXCHANGE[n], each unit's in the order of their requests. Fetches from before the closed loop begins stay as
    captured.

    captured: EXCHANGE[m], the answered ones. responses: CLOSED_RESPONSE[k]. looped: LOOPED[l]. max_bytes:
    int64[units], fetch.max.bytes. begins_at: us, when the closed loop begins. speed: the factor by which records are
    produced faster than captured.
    """
    parts = (captured, responses, looped)
    numbers, _ = group_numbers(*(np.concatenate([of[name] for of in parts]) for name in ("unit", "connection")))
    connection, replayed, in_loop = np.split(numbers, np.cumsum([len(captured), len(responses)]))
    in_loop = np.union1d(replayed, in_loop)
    place = np.searchsorted(in_loop, replayed)
    is_fetch = (captured["api_key"] == FETCH) & np.isin(connection, in_loop)
    overheads = overheads_of(captured[is_fetch], connection[is_fetch], in_loop)
    is_replaced = is_fetch & (captured["requested_at"] >= begins_at)
    instead = as_exchanges(responses, overheads[place], max_bytes[responses["unit"]], speed)
    exchanges = np.concatenate([captured[~is_replaced], instead])
    return exchanges[np.lexsort((exchanges["requested_at"], exchanges["unit"]))]
