"""The pass over producers: it replays those that share quotas together in every lane, and judges the captured lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from schemas.tables.steps import PRODUCE_EVENTS
from schemas.tables.table import Table
from udfs.columns.arrays import Ints, Records
from udfs.columns.arrow_columns import concatenate_batches
from udfs.facts.arrow_tables import pack_tables
from udfs.replay.fetch_max_bytes.producer_quota.drawn_pace import replicated
from udfs.replay.fetch_max_bytes.producer_quota.events import CapturedProducers, producers_of
from udfs.replay.fetch_max_bytes.producer_quota.fidelity import judge_throttles
from udfs.replay.fetch_max_bytes.producer_quota.meters_of_lanes import measured_lane, quota_lane, warm_times
from udfs.replay.fetch_max_bytes.producer_quota.playing import play_lanes
from udfs.replay.fetch_max_bytes.producer_quota.rows import Throttled, producer_tables
from udfs.replay.fetch_max_bytes.producer_quota.settings import ProducerLanes
from udfs.replay.shared.rows_by_key import by_key


def replay_producers(batches: Iterable[pa.RecordBatch], lanes: ProducerLanes, run_id: str) -> Iterator[pa.RecordBatch]:
    """Packed rows of gold tables from rows of PRODUCE_EVENTS, sorted by unit and time."""
    yield from pack_tables(rows_of_producers(batches, lanes, run_id))


def rows_of_producers(
    batches: Iterable[pa.RecordBatch], lanes: ProducerLanes, run_id: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of one unit after the other. Requests after the window are left out."""
    for _, parts in by_key(batches, (PRODUCE_EVENTS.unit,)):
        rows = concatenate_batches([*parts])
        until = rows.filter(pa.array(rows[PRODUCE_EVENTS.time].to_numpy() < lanes.window.end))
        captured = producers_of(until, lanes.window)
        if captured is not None:
            yield from producer_tables(throttled(captured, lanes), lanes, run_id)


def throttled(captured: CapturedProducers, lanes: ProducerLanes) -> Throttled:
    """The outcome of producers in every lane, and how the captured lane agrees with the capture."""
    of_lanes = [quota_lane(captured, lanes, lane) for lane in range(len(lanes.names))]
    outcomes, blocked_us = play_lanes(captured.unit, of_lanes, lanes.buffer_bytes)
    ranges = replicated(captured, of_lanes, lanes.buffer_bytes)
    return Throttled(captured, outcomes, blocked_us, ranges, *judged(captured, lanes))


def judged(captured: CapturedProducers, lanes: ProducerLanes) -> tuple[Ints, Ints, Ints]:
    """(throttle times of the captured lane, quotas that the captured throttle times show, verdicts), int64[n] each, in
    the order of the unit's requests.
    """
    requests = captured.unit.requests
    order = np.argsort(requests["recorded_us"], kind="stable")
    in_order: Records = requests.take(order)
    lane = measured_lane(captured, lanes)
    judgements = np.zeros((3, len(order)), np.int64)
    judge_throttles(in_order, lane, warm_times(captured, lane), *judgements)
    of_requests = np.zeros_like(judgements)
    of_requests[:, order] = judgements
    replayed, shown, verdicts = of_requests
    return replayed, shown, verdicts
