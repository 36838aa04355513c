"""What clients would exchange under other fetch limits: the closed loop's responses in place of captured fetches.

Everything else stays as captured, and so does a connection that the closed loop does not have. The closed loop tells
record bytes. What a response has beside them, and how long it takes to come, is measured on the captured responses of
the same connection, so that those would add up to what they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.steps import CLOSED_RESPONSES, MEMORY_EVENTS
from udfs.columns.arrays import Ints, Records
from udfs.columns.groups import group_numbers
from udfs.columns.picking import pick
from udfs.columns.records import GrowingRecords, int_fields, records_of
from udfs.columns.searches import first_at
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.facts.arrow_tables import unpack_rows
from udfs.replay.consumer_memory.events import EXCHANGE
from udfs.replay.consumer_memory.given_up import GIVEN_UP, when_gone
from udfs.replay.consumer_memory.state import NONE
from udfs.replay.consumer_memory.takeovers import FETCH
from udfs.replay.shared.caps import MOST_RESPONSES
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.line_fit import fitted_line

RESPONSE = int_fields(
    "unit",
    "fetch_number",  # which of the fetch limits
    "number",  # its place among those of the unit under these limits
    "connection",  # its id
    "requested_at",  # us
    "complete_at",  # us
    "held_us",  # from complete_at on; NEVER: only what is given up of it tells how long
    "record_bytes",
    "records",
    "partitions",  # with records
)
"""A response of the closed loop."""
OVERHEAD = np.dtype([("base_bytes", np.float64), ("partition_bytes", np.float64), ("byte_us", np.float64)])
"""What a connection's responses have beside their records, in all and for each partition with records, and how long a
byte takes to come."""


@dataclass
class ClosedLoop:
    """The closed loop's responses of several clients, MOST_RESPONSES of each.

    left_out: by unit and number of the fetch limits, how many responses there was no room for. unchecked: by unit, why
    its closed loop cannot be held against the capture.
    """

    responses: GrowingRecords = field(default_factory=lambda: GrowingRecords(RESPONSE))
    given_up: GrowingRecords = field(default_factory=lambda: GrowingRecords(GIVEN_UP))
    counts: Counter[int] = field(default_factory=Counter)
    left_out: Counter[tuple[int, int]] = field(default_factory=Counter)
    unchecked: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, rows: pa.RecordBatch, unit: Ints) -> None:
        """Take rows of MEMORY_EVENTS of kinds RESPONSES and GIVEN_UP. unit: int64[rows]."""
        is_given_up = int_column(rows, MEMORY_EVENTS.kind, 0) == MemoryEvent.GIVEN_UP
        self.given_up.add(given_up_of(rows.filter(pa.array(is_given_up)), unit[is_given_up]))
        self._add_responses(rows.filter(pa.array(~is_given_up)), unit[~is_given_up].tolist())

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
                self.responses.add(responses_of(kept, unit, lane))
        for unit, reason in zip(units, rows[t.unchecked].to_pylist(), strict=True):
            if reason:
                self.unchecked[unit].add(reason)

    def responses_under(self, fetch_number: int) -> Records:
        """RESPONSE[n]: those under the fetch limits of this number, each unit's in the order of their requests."""
        found = self.responses.records
        return found[found["fetch_number"] == fetch_number]

    def given_up_under(self, fetch_number: int) -> Records:
        """GIVEN_UP[n]: what is given up of them."""
        found = self.given_up.records
        return found[found["fetch_number"] == fetch_number]


def responses_of(rows: pa.RecordBatch, unit: int, fetch_number: int) -> Records:
    """RESPONSE[rows] of rows of CLOSED_RESPONSES."""
    t = CLOSED_RESPONSES
    return records_of(
        RESPONSE,
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
    """GIVEN_UP[rows] of rows of MEMORY_EVENTS of that kind."""
    t = MEMORY_EVENTS
    return records_of(
        GIVEN_UP,
        rows.num_rows,
        unit=unit,
        fetch_number=int_column(rows, t.lane, 0),
        response=int_column(rows, t.exchange_no, NONE),
        partition_key=int_column(rows, t.partition_key, 0),
        since=int_column(rows, t.started, NEVER),
        until=int_column(rows, t.released, NEVER),
        turn_at=int_column(rows, t.came, NEVER),
    )


def hold_given_up(responses: Records, given_up: Records, takeovers: Records, exchanges: Records) -> None:
    """Have the responses be held until all that is given up of them is gone, too.

    responses: RESPONSE[n], rewritten. given_up: GIVEN_UP, of the same fetch limits. takeovers: TAKEOVER. exchanges:
    EXCHANGE, all captured ones of the clients.
    """
    order = np.lexsort((responses["number"], responses["unit"]))
    of_unit, number = responses["unit"][order], responses["number"][order]
    place = first_at(of_unit, number, given_up["unit"], given_up["response"])
    is_here = (place != NONE) & (pick(number, place, NONE) == given_up["response"])
    given_up, which = given_up[is_here], order[place[is_here]]
    complete_at = responses["complete_at"][which]
    gone_at = when_gone(given_up, responses["connection"][which], takeovers, exchanges)
    held_us = np.where(gone_at == NEVER, NEVER, np.maximum(gone_at, complete_at) - complete_at)
    np.maximum.at(responses["held_us"], which, held_us)


def overhead_of(fetches: Records) -> tuple[float, float, float]:
    """The OVERHEAD of the captured fetches of one connection, EXCHANGE[n]."""
    beside = np.maximum(fetches["size"] - fetches["record_bytes"], 0)
    base_bytes, partition_bytes = fitted_line(fetches["partitions"], beside)
    started_at = np.clip(fetches["size_known_at"], fetches["requested_at"], fetches["complete_at"])
    took_us = int(np.maximum(fetches["complete_at"] - started_at, 0).sum())
    return base_bytes, partition_bytes, float(took_us) / max(int(fetches["size"].sum()), 1)


def overheads_of(fetches: Records, number: Ints, numbers: Ints) -> Records:
    """The OVERHEAD of connections: OVERHEAD[len(numbers)].

    fetches: EXCHANGE[n], captured ones. number: int64[n], the connection of each. numbers: those that are wanted.
    """
    order = np.argsort(number, kind="stable")
    first, end = (np.searchsorted(number[order], numbers, side=side) for side in ("left", "right"))
    found = [overhead_of(fetches[order[begin:stop]]) for begin, stop in zip(first.tolist(), end.tolist(), strict=True)]
    return np.array(found, OVERHEAD)


def as_exchanges(responses: Records, overhead: Records, max_bytes: Ints) -> Records:
    """EXCHANGE[n] of RESPONSE[n]. overhead: OVERHEAD[n], of the connection of each. max_bytes: int64[n]."""
    beside = overhead["base_bytes"] + overhead["partition_bytes"] * responses["partitions"]
    size = responses["record_bytes"] + np.round(beside).astype(np.int64)
    complete_at, is_pinned = responses["complete_at"], responses["held_us"] == NEVER
    return records_of(
        EXCHANGE,
        len(responses),
        unit=responses["unit"],
        connection=responses["connection"],
        requested_at=responses["requested_at"],
        size_known_at=complete_at - np.round(overhead["byte_us"] * size).astype(np.int64),
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


def in_closed_loop(captured: Records, responses: Records, max_bytes: Ints) -> Records:
    """The exchanges of clients with the closed loop's responses in place of the captured fetches of their connections:
    EXCHANGE, each unit's in the order of their requests.

    captured: EXCHANGE, those that were answered. responses: RESPONSE. max_bytes: int64[units], what each unit asks for
    at most.
    """
    known = len(captured)
    number, _ = group_numbers(*(np.append(captured[name], responses[name]) for name in ("unit", "connection")))
    numbers, which = np.unique(number[known:], return_inverse=True)
    is_replayed = (captured["api_key"] == FETCH) & np.isin(number[:known], numbers)
    overheads = overheads_of(captured[is_replayed], number[:known][is_replayed], numbers)
    found = as_exchanges(responses, overheads[which], max_bytes[responses["unit"]])
    exchanges = np.concatenate([captured[~is_replayed], found])
    return exchanges[np.lexsort((exchanges["requested_at"], exchanges["unit"]))]
