"""The outcomes of producers, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from schemas.tables.gold_memory import PRODUCER_MEMORY
from schemas.tables.memory_reasons import BUFFERS
from schemas.tables.values import BY_CAPTURE, BY_CLOSED_LOOP
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import dictionary_column
from udfs.columns.sentinels import NONE
from udfs.facts.arrow_tables import make_rows
from udfs.replay.consumer_memory.producer.batches import Produced
from udfs.replay.consumer_memory.producer.replay import ProducersReplayed
from udfs.replay.consumer_memory.rows import key_columns, units_and_lanes, used_and_waits
from udfs.replay.consumer_memory.settings import MemoryLanes
from udfs.replay.consumer_memory.units import Units
from udfs.replay.shared.fidelity_rows import NO_REASON, FidelityCounts, count_cases
from udfs.replay.shared.lanes import CAPTURED

if TYPE_CHECKING:
    from udfs.replay.consumer_memory.rows import Cell, Rows

BATCHES_WITHOUT_WAIT, CLOSED_LOOP_SENDS = "batches_without_wait", "closed_loop_sends"


def producer_memory_rows(
    units: Units, produced: Produced, replayed: ProducersReplayed, lanes: MemoryLanes, left_out: Ints, numbers: Ints
) -> Rows:  # fmt: skip
    """All rows of some producers. left_out: int64[units]. numbers: int64[n], of the producers."""
    t = PRODUCER_MEMORY
    unit, lane = units_and_lanes(numbers, np.arange(len(lanes.names)))
    outcomes, in_loop = replayed.outcomes[unit, lane], replayed.in_loop[unit, lane]
    producers, settings = produced.producers[unit], lanes.producer[lane]
    columns: Mapping[str, Cell] = {
        **key_columns(units, t, unit, pa.array(lanes.names, pa.string()), lane),
        **used_and_waits(outcomes),
        t.times_of: dictionary_column(pa.array([BY_CAPTURE, BY_CLOSED_LOOP], pa.string()), in_loop.astype(np.int64)),
        t.sending_threads: settings["threads"],
        t.share_behind: producers["share_behind"],
        t.buffer_bytes: settings["buffer_memory"],
        t.batch_size: settings["batch_size"],
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


def verdicts_on_producers(
    produced: Produced, replayed: ProducersReplayed, is_java: Bools
) -> Iterator[tuple[int, FidelityCounts]]:  # fmt: skip
    """The fidelity counts of each producer, by its number.

    is_java: bool[units]; any other client may bound its memory in another way.
    """
    batches, captured = produced.producers["batches"], replayed.outcomes[:, CAPTURED]
    waited = captured["late"] + captured["exhausted"] + captured["too_large"]
    for unit in np.flatnonzero(batches).tolist():
        count = int(batches[unit])
        if not is_java[unit]:
            yield unit, count_cases(BATCHES_WITHOUT_WAIT, {BUFFERS.not_a_java_client: count}, BUFFERS)
            continue
        yield unit, cases_of_metric(BATCHES_WITHOUT_WAIT, count, BUFFERS.waited_for_memory, int(waited[unit]))
        if replayed.late[unit] != NONE:
            yield unit, cases_of_metric(CLOSED_LOOP_SENDS, count, BUFFERS.sent_later, int(replayed.late[unit]))


def cases_of_metric(metric: str, batches: int, reason: str, differing: int) -> FidelityCounts:
    """The fidelity counts of a metric: `differing` of `batches` batches do not agree, for `reason`. Some of the
    differing batches may have begun before the window.
    """
    differing = min(differing, batches)
    verdicts = {NO_REASON: batches - differing, reason: differing}
    return count_cases(metric, {word: count for word, count in verdicts.items() if count}, BUFFERS)
