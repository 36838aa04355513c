"""The outcomes of producers, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from schemas.tables.gold_memory import PRODUCER_MEMORY, PRODUCER_MEMORY_RANGES
from schemas.tables.memory_reasons import BUFFERS
from schemas.tables.values import BY_CAPTURE, BY_CLOSED_LOOP
from udfs.columns.arrays import Bools, Floats, Ints, Records
from udfs.columns.arrow_columns import dictionary_column
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import US_PER_MS
from udfs.facts.arrow_tables import make_rows
from udfs.replay.consumer_memory.producer.batches import Produced
from udfs.replay.consumer_memory.producer.drawn_pace import BufferReplications
from udfs.replay.consumer_memory.producer.replay import Replayed
from udfs.replay.consumer_memory.rows import key_columns, units_and_lanes, used_and_waits
from udfs.replay.consumer_memory.settings import MemoryLanes
from udfs.replay.consumer_memory.units import Units
from udfs.replay.shared.fidelity_rows import NO_REASON, FidelityCounts, count_cases
from udfs.replay.shared.lanes import AS_CAPTURED, CAPTURED
from udfs.replay.shared.range_rows import range_columns
from udfs.replay.shared.replications import quantiles

if TYPE_CHECKING:
    from udfs.replay.consumer_memory.rows import Cell, Rows

BATCHES_WITHOUT_WAIT, CLOSED_LOOP_SENDS = "batches_without_wait", "closed_loop_sends"
_P = PRODUCER_MEMORY
FIGURES: Mapping[str, tuple[str, int]] = {
    str(_P.used_bytes_max): ("used_max", 1),
    str(_P.waits): ("waits", 1),
    str(_P.wait_ms_max): ("longest_us", US_PER_MS),
    str(_P.wait_ms_total): ("wait_us", US_PER_MS),
    str(_P.exhausted): ("exhausted", 1),
}
"""The columns of `producer_memory` that have a range: the field of BUFFER_OUTCOME, and how many of its units are one of
the column's.
"""


def producer_memory_rows(
    units: Units, produced: Produced, replayed: Mapping[int, Replayed], buffers: Mapping[int, Records],
    lanes: MemoryLanes, left_out: Ints,
) -> Rows:  # fmt: skip
    """The rows of `producer_memory`. replayed, buffers: by the number of the producer; BUFFER_SETTINGS[lanes].
    left_out: int64[units].
    """
    t = PRODUCER_MEMORY
    unit, lane = units_and_lanes(np.array([*replayed]), np.arange(len(lanes.names)))
    outcomes = np.concatenate([of.outcomes for of in replayed.values()])
    in_loop = np.concatenate([of.in_loop for of in replayed.values()])
    producers, settings = produced.producers[unit], np.concatenate([buffers[number] for number in replayed])
    columns: Mapping[str, Cell] = {
        **key_columns(units, t, unit, pa.array(lanes.names, pa.string()), lane),
        **used_and_waits(outcomes),
        t.times_of: dictionary_column(pa.array([BY_CAPTURE, BY_CLOSED_LOOP], pa.string()), in_loop.astype(np.int64)),
        t.sending_threads: settings["threads"],
        t.share_behind: producers["share_behind"],
        t.buffer_bytes: settings["buffer_memory"],
        t.batch_size: settings["batch_size"],
        t.is_batch_size_told: lanes.producer["batch_size"][lane] == AS_CAPTURED,
        t.batches: producers["batches"],
        t.batch_bytes: producers["batch_bytes"],
        t.batches_begun: outcomes["granted"],
        t.wait_ms_total: outcomes["wait_us"] / 1000,
        t.late_ms_max: pa.array(outcomes["late_us"] / 1000, mask=~in_loop),
        t.resent: producers["resent"],
        t.split_parts: producers["split_parts"],
        t.exhausted: outcomes["exhausted"],
        t.larger_than_buffer: outcomes["too_large"],
        t.left_out: left_out[unit],
    }
    yield t, make_rows(t, columns)


def producer_range_rows(
    units: Units, replayed: Mapping[int, Replayed], ranges: Mapping[int, BufferReplications], lanes: MemoryLanes
) -> Rows:  # fmt: skip
    """The rows of `producer_memory_ranges`. replayed, ranges: by the number of the producer."""
    t, scenarios = PRODUCER_MEMORY_RANGES, pa.array(lanes.names, pa.string())
    unit, lane = units_and_lanes(np.array([*replayed]), np.tile(np.arange(len(lanes.names)), len(FIGURES)))
    metric = np.tile(np.repeat(np.arange(len(FIGURES)), len(lanes.names)), len(replayed))
    values = [figures_of(of.outcomes) for of in replayed.values()]
    by_share = [quantiles(figures_of(of.outcomes), np.tile(of.counts, len(FIGURES))) for of in ranges.values()]
    counts = np.concatenate([np.tile(of.counts, len(FIGURES)) for of in ranges.values()])
    columns: Mapping[str, Cell] = {
        **key_columns(units, t, unit, scenarios, lane),
        t.metric: dictionary_column(pa.array([*FIGURES], pa.string()), metric),
        **range_columns(np.concatenate(values), np.concatenate(by_share, axis=1), counts),
    }
    yield t, make_rows(t, columns)


def figures_of(outcomes: Records) -> Floats:
    """The figures that have a range: float64[..., figures * lanes]. outcomes: BUFFER_OUTCOME[..., lanes]."""
    return np.concatenate([outcomes[name] / per for name, per in FIGURES.values()], axis=-1)


def verdicts_on_producers(
    produced: Produced, replayed: Mapping[int, Replayed], is_java: Bools
) -> Iterator[tuple[int, FidelityCounts]]:  # fmt: skip
    """The fidelity counts of each producer, by its number. replayed: by the number of the producer.

    is_java: bool[units]; any other client may bound its memory in another way. A Java client that is not replayed may
    be several processes.
    """
    batches = produced.producers["batches"]
    for unit in np.flatnonzero(batches).tolist():
        count = int(batches[unit])
        if unit not in replayed:
            reason = BUFFERS.several_processes if is_java[unit] else BUFFERS.not_a_java_client
            yield unit, count_cases(BATCHES_WITHOUT_WAIT, {reason: count}, BUFFERS)
            continue
        captured, late = replayed[unit].outcomes[CAPTURED], replayed[unit].late
        waited = int(captured["late"] + captured["exhausted"] + captured["too_large"])
        yield unit, cases_of_metric(BATCHES_WITHOUT_WAIT, count, BUFFERS.waited_for_memory, waited)
        if late != NONE:
            yield unit, cases_of_metric(CLOSED_LOOP_SENDS, count, BUFFERS.sent_later, late)


def cases_of_metric(metric: str, batches: int, reason: str, differing: int) -> FidelityCounts:
    """The fidelity counts of a metric: `differing` of `batches` batches do not agree, for `reason`. Some of the
    differing batches may have begun before the window.
    """
    differing = min(differing, batches)
    verdicts = {NO_REASON: batches - differing, reason: differing}
    return count_cases(metric, {word: count for word, count in verdicts.items() if count}, BUFFERS)
