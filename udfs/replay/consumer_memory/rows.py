"""What the memory of a consumer, broker or producer comes to, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    PRODUCER_MEMORY,
)
from schemas.tables.table import Table
from schemas.tables.values import BY_CAPTURE, BY_CLOSED_LOOP
from udfs.columns.arrays import Floats, Ints
from udfs.columns.arrow_columns import repeated
from udfs.facts.arrow_tables import rows_of
from udfs.replay.consumer_memory import fidelity as memory_fidelity
from udfs.replay.consumer_memory.consumers import (
    Consumed,
    LanesReplayed,
    ratio,
    span_us,
    speeds,
)
from udfs.replay.consumer_memory.draining import AGREED, CODES, UNCHECKED, Reason
from udfs.replay.consumer_memory.pool import UNBOUNDED
from udfs.replay.consumer_memory.producer.batches import Sent
from udfs.replay.consumer_memory.producer.captured_times import BufferBounds, Buffered
from udfs.replay.consumer_memory.producer.replay import Followed
from udfs.replay.consumer_memory.state import MEMORY_POOL, Bounds, Sim
from udfs.replay.consumer_memory.traces import Gathered, releases
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.shared.captured_pieces import PIECES
from udfs.replay.shared.fidelity_rows import Compared, fidelity_rows
from udfs.replay.shared.histogram import quantile_within
from udfs.replay.shared.lanes import CAPTURED

VARIANTS = ("memory_pool", "in_flight_estimate", "requests_in_flight", "completed_as_max")
WITHOUT_WAIT = "batches_without_wait"
WAITED = "waited_for_memory"
"""A reason of producers' fidelity: the replay lets a batch wait for longer than the capture can have."""
NOT_JAVA = "not_a_java_client"
"""... the producer is another client than the one whose buffer.memory is replayed."""
SENT_LATER = "sent_later"
"""... the closed loop of the captured settings sends a record later than the capture."""
if TYPE_CHECKING:
    Cell = npt.NDArray[np.generic] | pa.Array[Any]
    Rows = Iterator[tuple[Table, pa.RecordBatch]]


@dataclass(frozen=True)
class MemoryLanes:
    """The lanes of a replay: names, and settings for each side; lane 0 is the captured one.

    fetch_limits: what consumers ask of a fetch, by number, 0 as captured. fetch_number: int64[lanes], that of each.
    """

    names: tuple[str, ...]
    consumer: Bounds
    broker: Bounds
    producer: BufferBounds
    fetch_number: Ints
    fetch_limits: FetchLanes


@dataclass(frozen=True)
class Unit:
    """Whose memory it is: a consumer process, a broker or a producer process."""

    side: str
    name: str
    address: str
    run_id: str

    @property
    def names(self) -> tuple[str, str, str]:
        """What tells it from others."""
        return self.side, self.name, self.address


def whose(unit: Unit, table: Table, scenarios: Sequence[str]) -> dict[str, Cell]:
    """The key columns of a unit's rows: the run, the lane of each row, and the client or broker."""
    n = len(scenarios)
    who: dict[str, str] = (
        {"broker": unit.name} if unit.side == "broker" else {"client_id": unit.name, "client_address": unit.address}
    )
    return {
        table.run_id: repeated(unit.run_id, n),
        table.scenario: pa.array(list(scenarios), pa.string()),
        **{name: repeated(text, n) for name, text in who.items()},
    }


def quantiles(prefix: str, counts: Ints, most: Ints, divisor: float | None = None) -> dict[str, Cell]:
    """Columns PREFIX_p50 and so on of a histogram a lane; divisor: to another unit, else whole numbers."""
    found: dict[str, Cell] = {}
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        values = [quantile_within(counts[lane], share, int(most[lane])) or 0 for lane in range(len(most))]
        found[f"{prefix}_{name}"] = np.array(values) if divisor is None else np.array(values) / divisor
    found[f"{prefix}_max"] = most if divisor is None else most / divisor
    return found


def used_and_waits(sim: Sim | Buffered) -> dict[str, Cell]:
    """The columns of use, waits and time that every side has."""
    waits = quantiles("wait_ms", sim.waits, sim.runs["longest_us"], 1000.0)
    waits.pop("wait_ms_p95")
    return {
        **quantiles("used_bytes", sim.spent.time, sim.usages["most"]),
        **waits,
        "waits": sim.runs["waits"],
        "span_ms": span_us(sim) / 1000,
    }


def pool_columns(sim: Sim, speed: Floats) -> dict[str, Cell]:
    """The columns of a pool that consumers and brokers have."""
    span = np.maximum(span_us(sim), 1)
    return {
        **used_and_waits(sim),
        "pool_bytes": pa.array(sim.bounds.size, mask=sim.bounds.size == UNBOUNDED),
        "connections": np.full(len(span), len(sim.trace.first)),
        "smallest_pool_bytes": sim.runs["smallest"],
        "depleted_share": sim.pools["dry_us"] / span,
        "starved_connections": sim.runs["starved"],
        "throughput_ratio": pa.array(speed, mask=np.isnan(speed)),
    }


def largest_fetch(sim: Sim) -> int:
    """The largest fetch.max.bytes asked for."""
    return int(sim.trace.max_bytes.max(initial=0))


def deadlock(sim: Sim, lane: int) -> str | None:
    """Why connections of a lane are stuck, or None."""
    run = sim.runs[lane]
    if run["larger"]:
        return "response_larger_than_pool"
    if not run["stuck"]:
        return None
    holds_back = sim.bounds.variant[lane] != MEMORY_POOL
    if holds_back and sim.bounds.size[lane] < largest_fetch(sim):
        return "buffer_below_fetch_max_bytes"
    return "pinned_responses"


def consumer_rows(unit: Unit, done: LanesReplayed, gathered: Gathered) -> Rows:
    """Rows of some lanes of a consumer process."""
    n, t, sim = len(done.names), CONSUMER_MEMORY, done.sim
    unmeasured = gathered.numbers["unmeasured_batches" if done.number == CAPTURED else "compressed_batches"]
    decompressed = done.record_bytes + gathered.numbers["bytes_saved"]
    columns: Mapping[str, Cell] = {
        **whose(unit, t, done.names),
        **pool_columns(sim, done.speed),
        t.responses_of: repeated(BY_CAPTURE if done.number == CAPTURED else BY_CLOSED_LOOP, n),
        t.variant: pa.array([VARIANTS[code] for code in sim.bounds.variant]),
        t.config_refused: (sim.bounds.size <= largest_fetch(sim)),
        t.responses: sim.runs["read"],
        t.response_bytes: sim.runs["bytes"],
        t.brokers: np.full(n, len(gathered.brokers)),
        t.partitions: np.full(n, len(gathered.partition_index)),
        t.records: np.full(n, int(sim.trace.records.sum())),
        t.record_bytes: np.full(n, done.record_bytes),
        t.decompressed_bytes: pa.array([None if unmeasured else decompressed] * n, pa.int64()),
        t.unmeasured_batches: np.full(n, unmeasured),
        t.memory_bound_bytes: np.full(n, done.bound),
        t.reckoned_bytes_max: sim.runs["reckoned"],
        t.pinned_responses: sim.runs["pinned"],
        t.unpooled_responses: sim.runs["unpooled"],
        t.larger_than_pool: sim.runs["larger"],
        t.stuck_connections: sim.runs["stuck"],
        t.deadlock: pa.array([deadlock(sim, lane) for lane in range(n)], pa.string()),
        t.left_out: np.full(n, done.left_out),
    }
    yield t, rows_of(t, columns)
    yield CONSUMER_MEMORY_TIMELINE, timeline_rows(unit, sim, done.names)
    yield CONSUMER_MEMORY_EXCEEDANCE, exceedance_rows(unit, sim, done.names)


def timeline_rows(unit: Unit, sim: Sim, names: Sequence[str]) -> pa.RecordBatch:
    """Rows of `consumer_memory_timeline`: the slots up to each lane's end."""
    t, slot_us = CONSUMER_MEMORY_TIMELINE, sim.usages["slot_us"]
    slots = span_us(sim) // slot_us + 1
    lane = np.repeat(np.arange(len(slots)), slots)
    slot = np.arange(len(lane)) - np.repeat(np.cumsum(slots) - slots, slots)
    starts = sim.usages["start"][lane] + slot * slot_us[lane]
    return rows_of(
        t,
        {
            **whose(unit, t, [names[number] for number in lane.tolist()]),
            t.slot_start: starts,
            t.slot_ms: slot_us[lane] / 1000,
            t.used_bytes_max: sim.spent.most[lane, slot],
            t.waiting_connections_max: sim.spent.waiting[lane, slot],
        },
    )


def exceedance_rows(unit: Unit, sim: Sim, names: Sequence[str]) -> pa.RecordBatch:
    """Rows of `consumer_memory_exceedance`: a step wherever time was spent, at the most bytes in use there."""
    t, span = CONSUMER_MEMORY_EXCEEDANCE, np.maximum(span_us(sim), 1)
    lane, bucket = np.nonzero(sim.spent.time)
    above = span_us(sim)[:, None] - np.cumsum(sim.spent.time, axis=1)
    return rows_of(
        t,
        {
            **whose(unit, t, [names[number] for number in lane.tolist()]),
            t.bytes: sim.spent.highest[lane, bucket],
            t.time_above_ms: above[lane, bucket] / 1000,
            t.share_above: above[lane, bucket] / span[lane],
        },
    )


def broker_rows(unit: Unit, sim: Sim, gathered: Gathered, lanes: MemoryLanes) -> Rows:
    """All rows of a broker."""
    t, n = BROKER_MEMORY, len(lanes.names)
    by_response, by_replication, by_log = releases(gathered).tolist()
    columns: Mapping[str, Cell] = {
        **whose(unit, t, lanes.names),
        **pool_columns(sim, ratio(speeds(sim, "bytes"), speeds(sim, "bytes")[0])),
        t.requests: sim.runs["read"],
        t.request_bytes: sim.runs["bytes"],
        t.held_until_response: np.full(n, by_response),
        t.held_until_fetched: np.full(n, by_replication),
        t.held_as_logged: np.full(n, by_log),
        t.larger_than_limit: sim.runs["larger"],
        t.left_out: np.full(n, gathered.left_out),
    }
    yield t, rows_of(t, columns)


def producer_rows(unit: Unit, done: Followed, lanes: MemoryLanes, sent: Sent, left_out: int) -> Rows:
    """All rows of a producer process."""
    t, n, sim = PRODUCER_MEMORY, len(lanes.names), done.sim
    batches = len(sim.batches.time)
    columns: Mapping[str, Cell] = {
        **whose(unit, t, lanes.names),
        **used_and_waits(sim),
        t.times_of: pa.array(np.where(done.in_loop, BY_CLOSED_LOOP, BY_CAPTURE).tolist(), pa.string()),
        t.sending_threads: sim.bounds.threads,
        t.share_behind: np.full(n, done.behind),
        t.buffer_bytes: sim.bounds.total,
        t.batch_size: sim.bounds.poolable,
        t.batches: np.full(n, batches),
        t.batch_bytes: np.full(n, int(sim.batches.size.sum())),
        t.batches_begun: sim.waits.sum(axis=1),
        t.wait_ms_total: sim.runs["wait_us"] / 1000,
        t.late_ms_max: pa.array(sim.runs["late_us"] / 1000, mask=~done.in_loop),
        t.resent: np.full(n, sent.resent),
        t.split_parts: np.full(n, sent.split_parts),
        t.exhausted: sim.runs["exhausted"],
        t.larger_than_buffer: sim.runs["larger"],
        t.left_out: np.full(n, left_out),
    }
    yield t, rows_of(t, columns)
    waited = int(sum(sim.runs[count][0] for count in ("late", "exhausted", "larger")))
    yield FIDELITY, fidelity_row(unit, WITHOUT_WAIT, batches, batches - waited, 0, {WAITED: waited})
    if done.late is not None:
        agreed = batches - done.late
        yield FIDELITY, fidelity_row(unit, "closed_loop_sends", batches, agreed, 0, {SENT_LATER: done.late})


def without_buffer(unit: Unit, sent: Sent) -> Rows:
    """The row of `fidelity` on a producer process that is no Java client, which may bound its memory otherwise."""
    batches = len(sent.batches.time)
    yield FIDELITY, fidelity_row(unit, WITHOUT_WAIT, 0, 0, batches, {NOT_JAVA: batches})


def consumer_fidelity(unit: Unit, consumed: Consumed, lanes: MemoryLanes) -> Rows:
    """Rows of `fidelity` on a consumer process."""
    yield FIDELITY, drained_rows(unit, consumed.captured)
    if consumed.closed.count:
        yield FIDELITY, closed_loop_row(unit, consumed, lanes.fetch_limits)


def closed_loop_row(unit: Unit, consumed: Consumed, limits: FetchLanes) -> pa.RecordBatch:
    """The row of `fidelity` on the memory of the closed loop at the captured settings.

    What several processes of one name held is not known: each one's fetches seem to drain what the others got.
    """
    metric, obstacles = "closed_loop_held", sorted(consumed.closed.unchecked)
    if consumed.captured.verdicts[CODES[Reason.ANOTHER_CONNECTION]]:
        obstacles.append(Reason.ANOTHER_CONNECTION)
    if obstacles:
        return fidelity_row(unit, metric, 0, 0, PIECES, {obstacles[0]: PIECES})
    since = consumed.closed.left(CAPTURED).since
    captured, replayed = consumed.captured_trace, consumed.closed_trace(CAPTURED, limits)
    found = memory_fidelity.held_alike(captured, replayed, int(since.min()) if len(since) else None)
    agreed = found.pop(memory_fidelity.AGREED, 0)
    return fidelity_row(unit, metric, found.total() + agreed, agreed, 0, found)


def drained_rows(unit: Unit, gathered: Gathered) -> pa.RecordBatch:
    """The row of `fidelity` on the rule by which responses are given back."""
    reasons = {reason.value: int(gathered.verdicts[code]) for reason, code in CODES.items()}
    reasons[Reason.NOT_FETCHED_AGAIN] += gathered.not_fetched_again()
    reasons[Reason.TAKEN_OVER] += gathered.taken_over()
    reasons[Reason.GIVEN_UP] += gathered.given_up()
    unknown = sum(reasons[reason] for reason in UNCHECKED)
    agreed = int(gathered.verdicts[AGREED])
    checked = agreed + sum(reasons.values()) - unknown
    return fidelity_row(unit, "drained_partitions", checked, agreed, unknown, reasons)


def fidelity_row(
    unit: Unit, metric: str, checked: int, agreed: int, unknown: int, reasons: Mapping[str, int]
) -> pa.RecordBatch:
    """A row of `fidelity` on a unit; reasons that were never given are left out."""
    given = {reason: count for reason, count in reasons.items() if count}
    found = Compared(metric, checked, agreed, unknown, given, None, unit.name, unit.address, unit.side)
    return fidelity_rows([found], algorithms.CONSUMER_MEMORY, unit.run_id)
