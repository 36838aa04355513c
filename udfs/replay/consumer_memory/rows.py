"""The outcomes of consumers and brokers, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_memory import (
    BROKER_MEMORY,
    CONSUMER_MEMORY,
    CONSUMER_MEMORY_EXCEEDANCE,
    CONSUMER_MEMORY_TIMELINE,
)
from schemas.tables.table import Table
from schemas.tables.values import BROKER, BY_CAPTURE, BY_CLOSED_LOOP
from udfs.columns.arrays import Floats, Ints, Records
from udfs.columns.arrow_columns import dictionary_column, repeated_text_column
from udfs.columns.groups import group_numbers
from udfs.columns.records import pick_fields
from udfs.columns.time_units import US_PER_MS
from udfs.facts.arrow_tables import make_rows
from udfs.replay.consumer_memory.consumers import (
    Consumers,
    LanesReplayed,
    depleted_shares,
    relative_speeds,
    span_us,
    speed_of,
)
from udfs.replay.consumer_memory.settings import MEMORY_POOL, UNBOUNDED, VARIANTS, MemoryLanes
from udfs.replay.consumer_memory.state import Traces, UnitOutcomes
from udfs.replay.consumer_memory.units import Units
from udfs.replay.shared.fidelity_rows import FidelityCounts, fidelity_rows
from udfs.replay.shared.lanes import CAPTURED
from udfs.replay.shared.window import Window

if TYPE_CHECKING:
    Cell = npt.NDArray[np.generic] | pa.Array[Any]
    Rows = Iterator[tuple[Table, pa.RecordBatch]]

RESPONSE_LARGER_THAN_POOL, BUFFER_BELOW_FETCH_MAX_BYTES = "response_larger_than_pool", "buffer_below_fetch_max_bytes"
PINNED_RESPONSES = "pinned_responses"
"""Values of the column `deadlock`."""


def key_columns(units: Units, table: Table, unit: Ints, scenarios: pa.Array[Any], lane: Ints) -> dict[str, Cell]:
    """The columns that every row has: the run, the lane, and the client or broker. unit, lane: int64[rows], numbers."""
    names = pa.array(units.names, pa.string())
    if units.side == BROKER:
        who: dict[str, Cell] = {"broker": dictionary_column(names, unit)}
    else:
        addresses = pa.array(units.addresses, pa.string())
        who = {"client_id": dictionary_column(names, unit), "client_address": dictionary_column(addresses, unit)}
    return {
        table.run_id: repeated_text_column(units.run_id, len(unit)),
        table.scenario: dictionary_column(scenarios, lane),
        **who,
    }


def units_and_lanes(units: Ints, lanes: Ints) -> tuple[Ints, Ints]:
    """(unit, lane) of each row, if there is a row for each unit and lane, unit by unit: int64[rows] both."""
    return np.repeat(units, len(lanes)), np.tile(lanes, len(units))


def used_and_waits(outcomes: Records, clock: float = 1.0) -> dict[str, Cell]:
    """The columns of use, waits and time of every side.

    outcomes: POOL_OUTCOME[rows] or BUFFER_OUTCOME[rows]. clock: the factor by which their clock is faster than that of
    clients and brokers.
    """
    us_per_ms = US_PER_MS * clock
    used: dict[str, Cell] = {f"used_bytes_{name}": outcomes[f"used_{name}"] for name in ("p50", "p95", "p99", "max")}
    return {
        **used,
        "wait_ms_p50": outcomes["wait_p50"] / us_per_ms,
        "wait_ms_p99": outcomes["wait_p99"] / us_per_ms,
        "wait_ms_max": outcomes["longest_us"] / us_per_ms,
        "waits": outcomes["waits"],
        "span_ms": span_us(outcomes) / us_per_ms,
    }


def pool_columns(
    outcomes: Records, size: Ints, connections: Ints, speed: Floats, clock: float = 1.0
) -> dict[str, Cell]:  # fmt: skip
    """The columns of a pool, for consumers and brokers.

    outcomes: POOL_OUTCOME[rows]. size, connections: int64[rows]. speed: float64[rows]. clock: as in `used_and_waits`.
    """
    return {
        **used_and_waits(outcomes, clock),
        "pool_bytes": pa.array(size, mask=size == UNBOUNDED),
        "connections": connections,
        "smallest_pool_bytes": outcomes["smallest_pool"],
        "depleted_share": depleted_shares(outcomes),
        "starved_connections": outcomes["starved"],
        "throughput_ratio": pa.array(speed, mask=np.isnan(speed)),
    }


class InWindow(NamedTuple):
    """What units receive in the window: the numbers of connections, messages and records, int64[units] each."""

    connections: Ints
    messages: Ints
    records: Ints


def received_in(traces: Traces, window: Window) -> InWindow:
    """What units receive in response to requests in the window."""
    units, is_in_window = len(traces.traces), window.has(traces.messages["requested_at"])
    unit = np.repeat(np.arange(units), traces.traces["end_message"] - traces.traces["first_message"])[is_in_window]
    connection, of_message = pick_fields(traces.messages, is_in_window, "connection", "records")
    owner, records = unit[group_numbers(unit, connection)[1]], np.zeros(units, np.int64)
    np.add.at(records, unit, of_message)
    return InWindow(np.bincount(owner, minlength=units), np.bincount(unit, minlength=units), records)


def deadlocks(outcomes: Records, settings: Records, largest_fetch: Ints) -> list[str | None]:
    """Why connections are stuck, or None.

    outcomes: POOL_OUTCOME[rows]. settings: POOL_SETTINGS[rows]. largest_fetch: int64[rows], bytes of the largest
    response.
    """
    holds_back = settings["variant"] != MEMORY_POOL
    is_below = holds_back & (settings["size"] < largest_fetch)
    why = np.select(
        [outcomes["too_large"] > 0, outcomes["stuck"] == 0, is_below],
        [RESPONSE_LARGER_THAN_POOL, "", BUFFER_BELOW_FETCH_MAX_BYTES],
        PINNED_RESPONSES,
    )
    return [word or None for word in why.tolist()]


def consumer_memory_rows(units: Units, consumers: Consumers, lanes: MemoryLanes, done: LanesReplayed) -> Rows:
    """Rows of the consumers in some lanes."""
    t, scenarios = CONSUMER_MEMORY, pa.array(lanes.names, pa.string())
    number, fetched = done.fetch_number, consumers.fetched
    unit, lane = units_and_lanes(consumers.numbers, done.lanes)
    outcomes, settings = done.replayed.outcomes[consumers.numbers].ravel(), lanes.consumer[lane]
    is_captured, received = number == CAPTURED, received_in(done.traces, consumers.window)
    unmeasured = fetched["unmeasured_batches" if is_captured else "compressed_batches"][unit]
    record_bytes, largest_fetch = consumers.record_bytes(number)[unit], done.traces.traces["largest_fetch"][unit]
    speed = done.speed[consumers.numbers].ravel()
    columns: Mapping[str, Cell] = {
        **key_columns(units, t, unit, scenarios, lane),
        **pool_columns(outcomes, settings["size"], received.connections[unit], speed, done.clock),
        t.responses_of: repeated_text_column(BY_CAPTURE if is_captured else BY_CLOSED_LOOP, len(unit)),
        t.variant: dictionary_column(pa.array(VARIANTS, pa.string()), settings["variant"]),
        t.config_refused: settings["size"] <= largest_fetch,
        t.responses: outcomes["messages"],
        t.response_bytes: outcomes["bytes"],
        t.brokers: np.minimum(fetched["brokers"], consumers.partitions(number))[unit],
        t.partitions: consumers.partitions(number)[unit],
        t.records: received.records[unit],
        t.record_bytes: record_bytes,
        t.decompressed_bytes: pa.array(record_bytes + fetched["bytes_saved"][unit], mask=unmeasured > 0),
        t.unmeasured_batches: unmeasured,
        t.memory_bound_bytes: consumers.memory_bound(number)[unit],
        t.reckoned_bytes_max: outcomes["reckoned_max"],
        t.pinned_responses: outcomes["pinned"],
        t.unpooled_responses: outcomes["unpooled"],
        t.larger_than_pool: outcomes["too_large"],
        t.stuck_connections: outcomes["stuck"],
        t.deadlock: pa.array(deadlocks(outcomes, settings, largest_fetch), pa.string()),
        t.left_out: consumers.all_left_out(number)[unit],
    }
    yield t, make_rows(t, columns)
    yield CONSUMER_MEMORY_TIMELINE, timeline_rows(units, done.replayed, scenarios, done.lanes)
    yield CONSUMER_MEMORY_EXCEEDANCE, exceedance_rows(units, done, scenarios)


def timeline_rows(units: Units, replayed: UnitOutcomes, scenarios: pa.Array[Any], lanes: Ints) -> pa.RecordBatch:
    """Rows of `consumer_memory_timeline`: one for each slot of the curves. lanes: int64[n], their numbers."""
    t, slots = CONSUMER_MEMORY_TIMELINE, replayed.curves.slots[: replayed.curves.written[1]]
    unit, lane = slots["unit"], slots["lane"]
    slot_us, began_at = (replayed.outcomes[name][unit, lane] for name in ("slot_us", "began_at"))
    return make_rows(
        t,
        {
            **key_columns(units, t, unit, scenarios, lanes[lane]),
            t.slot_start: began_at + slots["slot"] * slot_us,
            t.slot_ms: slot_us / 1000,
            t.used_bytes_max: slots["most_used"],
            t.waiting_connections_max: slots["most_waiting"],
        },
    )


def exceedance_rows(units: Units, done: LanesReplayed, scenarios: pa.Array[Any]) -> pa.RecordBatch:
    """Rows of `consumer_memory_exceedance`: one for each step of the curves."""
    t, curves = CONSUMER_MEMORY_EXCEEDANCE, done.replayed.curves
    steps = curves.steps[: curves.written[0]]
    unit, lane = steps["unit"], steps["lane"]
    span = np.maximum(span_us(done.replayed.outcomes), 1)[unit, lane]
    return make_rows(
        t,
        {
            **key_columns(units, t, unit, scenarios, done.lanes[lane]),
            t.bytes: steps["bytes"],
            t.time_above_ms: steps["above_us"] / (US_PER_MS * done.clock),
            t.share_above: steps["above_us"] / span,
        },
    )


def broker_memory_rows(
    units: Units, traces: Traces, replayed: UnitOutcomes, lanes: MemoryLanes, handled_by: Ints, left_out: Ints
) -> Rows:  # fmt: skip
    """All rows of brokers.

    handled_by: int64[units, sources], from `traces.handled_by`. left_out: int64[units], exchanges for which there was
    no room.
    """
    t, all_lanes, received = BROKER_MEMORY, np.arange(len(lanes.names)), received_in(traces, lanes.window)
    unit, lane = units_and_lanes(np.flatnonzero(received.messages), all_lanes)
    outcomes, speed = replayed.outcomes[unit, lane], speed_of(replayed.outcomes, "bytes")
    ratio = relative_speeds(speed, speed[:, CAPTURED])[unit, lane]
    by_response, by_fetch, by_log, by_replicas, by_pace = handled_by[unit].T
    columns: Mapping[str, Cell] = {
        **key_columns(units, t, unit, pa.array(lanes.names, pa.string()), lane),
        **pool_columns(
            outcomes, lanes.pools_of_brokers(units.names)["size"][unit, lane], received.connections[unit], ratio
        ),
        t.requests: outcomes["messages"],
        t.request_bytes: outcomes["bytes"],
        t.held_until_response: by_response + by_replicas,
        t.held_until_fetched: by_fetch,
        t.held_as_logged: by_log,
        t.held_as_estimated: by_pace,
        t.larger_than_limit: outcomes["too_large"],
        t.left_out: left_out[unit],
    }
    yield t, make_rows(t, columns)


def client_fidelity_rows(units: Units, verdicts: Iterable[tuple[int, FidelityCounts]]) -> Rows:
    """Rows of `fidelity` on clients. verdicts: (the client's number, the fidelity counts of a metric)."""
    on_clients = [
        cases._replace(client_id=units.names[unit], client_address=units.addresses[unit], reader=units.side)
        for unit, cases in verdicts
    ]
    if on_clients:
        yield FIDELITY, fidelity_rows(on_clients, algorithms.CONSUMER_MEMORY, units.run_id)
