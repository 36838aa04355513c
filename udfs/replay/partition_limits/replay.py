"""The pass over a cluster's changes: it replays KIP-578 (a proposal) in every lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from schemas.tables.table import Table
from udfs.columns.arrays import Ints, Records, read_only
from udfs.facts.arrow_tables import pack_rows
from udfs.replay.partition_limits.controller import replay_lanes
from udfs.replay.partition_limits.curve import limit_curves
from udfs.replay.partition_limits.events import read_topic_events
from udfs.replay.partition_limits.fidelity import limit_fidelity_rows
from udfs.replay.partition_limits.history.changes import history_of
from udfs.replay.partition_limits.rows import LaneResults, lane_rows, limit_curve_rows, request_groups
from udfs.replay.partition_limits.settings import LimitLanes
from udfs.replay.partition_limits.silver_events import topic_events
from udfs.replay.partition_limits.state import APPEAR, VANISH, History, new_sim
from udfs.replay.shared.lanes import CAPTURED

SAMPLES = 100
"""The number of times at which replicas by broker are kept."""
CELLS_AT_ONCE = 1 << 21
"""The most outcomes of changes, or counts of brokers, of the lanes that are replayed together."""


def replay_topics(
    batches: Iterable[pa.RecordBatch], lanes: LimitLanes, run_id: str, seed: int
) -> Iterator[pa.RecordBatch]:
    """Packed rows of the gold tables from rows of TOPIC_EVENTS of one cluster, in any order.

    seed: of the draws by which Kafka places, the same in every lane.
    """
    history = history_of(read_topic_events(batches), lanes, seed)
    for table, rows in replay_history(history, lanes, run_id):
        yield from pack_rows(table, rows)


def replay_captured(
    batches: Iterable[pa.RecordBatch], lanes: LimitLanes, run_id: str, seed: int
) -> Iterator[pa.RecordBatch]:
    """Packed rows of the gold tables, from rows of TOPIC_EVENTS that several tasks made, each of a part of silver. They
    may have duplicates.

    seed: as in `replay_topics`.
    """
    yield from replay_topics(topic_events(batches).to_batches(), lanes, run_id, seed)


def replay_history(history: History, lanes: LimitLanes, run_id: str) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """Rows of the gold tables and of `fidelity`."""
    times, requests = sample_times(history.changes[history.in_window]), request_groups(history)
    groups = lane_groups(history, len(lanes.names))
    sim = new_sim(history, lanes, max(end - first for first, end in groups))
    captured_samples: Ints = np.zeros(0, np.int64)
    for first, end in groups:
        part = lanes.part(first, end)
        samples = np.zeros((end - first, len(times) + 1, len(sim.broker_replicas)), np.int64)
        replay_lanes(sim._replace(settings=part.settings), read_only(times), samples)
        if first == CAPTURED:
            captured_samples = samples[CAPTURED]
            yield from limit_fidelity_rows(history, lanes, sim.outcomes[CAPTURED], sim.chunks, run_id)
        results = LaneResults(
            lanes=part,
            outcomes=sim.outcomes[: end - first],
            replicas=sim.replicas[: end - first],
            times=times,
            samples=samples,
            captured_samples=captured_samples,
        )
        yield from lane_rows(history, requests, results, run_id)
    yield from (limit_curve_rows(history, limit, curve, run_id) for limit, curve in limit_curves(history).items())


def lane_groups(history: History, lanes: int) -> list[tuple[int, int]]:
    """The ranges of lanes that are replayed together: the captured lane alone, so that its topics can be looked at, and
    of the others as many as fit into memory.
    """
    cells = max(len(history.changes), (SAMPLES + 1) * len(history.brokers.table), 1)
    ends = range(CAPTURED + 1, lanes, max(1, CELLS_AT_ONCE // cells))
    return list(pairwise([CAPTURED, *ends, lanes]))


def sample_times(changes: Records) -> Ints:
    """Times at which replicas by broker are kept (us): int64[times], SAMPLES of them at most.

    They are spread evenly from just before the first change that was requested to the last one. changes:
    CHANGE[changes].
    """
    requested = changes["time"][(changes["kind"] != APPEAR) & (changes["kind"] != VANISH)]
    if len(requested) == 0:
        return np.zeros(0, np.int64)
    first, last = requested[0], requested[-1]
    steps = np.arange(SAMPLES) * ((last - first + 1) / (SAMPLES - 1))
    return np.unique(np.append(first - 1 + steps.astype(np.int64)[:-1], last))
