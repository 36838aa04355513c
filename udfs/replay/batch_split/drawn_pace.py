"""A producer's pace, drawn anew for each replication.

How fast records come, how fast the client takes a batch that is ready, and how fast brokers answer, differs from one
run to the next. Together they decide how many batches are filled by an estimate that is too low. So each lane is
replayed several times (replications), and each replication draws

- the times: blocks of captured times, so that a slow phase stays slow, and times that are slow together stay together;
- one factor for the times of the client and the brokers, as large as the difference between two equal runs;
- the share of a batch's time that depends on its bytes, because one capture hardly shows that share.

In one replication all lanes have the same draws, so they differ by their settings alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.batch_split.state import Capture, ProducerSim, new_progress
from udfs.replay.batch_split.timing import BYTES_SHARE
from udfs.replay.shared.replications import near_places, replications_within
from udfs.replay.shared.window import Window

RECORDS_AT_MOST = 1 << 24
"""The most records of a stretch that are replayed for ranges, over all lanes. A longer stretch has fewer
replications."""
RUNS_DIFFER = 0.25
"""How much equal runs of a live producer differ: the standard deviation of the logarithm of the time for a batch,
relative to the time for a record. VALIDATION.md says how it was measured."""


def replication_count(records: int, lanes: int) -> int:
    """How many replications there are. records: of the first stretch."""
    return replications_within(RECORDS_AT_MOST, records * lanes)


class CapturedStretch(NamedTuple):
    """A stretch at captured pace, from which times are drawn.

    records: RECORD[records], which are given drawn times. times, gaps: int64[records], us, in the order of appends:
    when each record was appended, and how long after the record before. turn: int64[batches], the index of each batch's
    first record in that order. batch: int64[records], the batch of each record, in the order of appends.
    """

    capture: Capture
    records: Records
    times: Ints
    gaps: Ints
    turn: Ints
    batch: Ints


def observed_stretch(capture: Capture) -> CapturedStretch:
    """The stretch from which times are drawn. capture: at captured pace."""
    order, turn = capture.append_order, np.empty(len(capture.append_order), np.int64)
    turn[order] = np.arange(len(order))
    times = capture.records["time"][order]
    gaps = np.maximum(np.diff(times, prepend=times[:1]), 0)
    records = capture.records.copy()
    return CapturedStretch(capture, records, times, gaps, turn[capture.batches["first"]], records["batch"][order])


def drawn_sim(sim: ProducerSim, captured: CapturedStretch, draws: np.random.Generator, window: Window) -> ProducerSim:
    """The replay of a stretch with pace drawn anew: of its records, of the client, and of brokers' answers."""
    place = drawn_places(len(captured.times), len(captured.capture.batches), draws)
    times, parts = drawn_times(captured, place), captured.capture.parts.copy()
    captured.records["time"][captured.capture.append_order] = times
    parts["sent_at"], parts["answered_at"] = 0, NEVER
    capture = sim.capture._replace(
        records=read_only(captured.records),
        batches=read_only(drawn_batches(captured, place, draws)),
        parts=read_only(parts),
    )
    begin, end = (moment_in(captured.times, times, moment) for moment in window)
    return sim._replace(capture=capture, progress=new_progress(Window(begin, end)))


def moment_in(times: Ints, drawn: Ints, moment: int) -> int:
    """A begin or end of the window (us), moved so that the same records come before it at drawn times.

    times, drawn: int64[records], us, in the order of appends.
    """
    place = int(np.searchsorted(times, moment))
    if moment in (ALWAYS, NEVER) or place == 0:
        return moment
    later = moment + int(drawn[place - 1] - times[place - 1])
    return min(later, int(drawn[place])) if place < len(times) else later


def drawn_places(count: int, batches: int, draws: np.random.Generator) -> Ints:
    """The record from which each of `count` records takes its times, in the order of appends: int64[count].

    The number of batches in a block is the square root of a third of all batches.
    """
    length = min(max(round(count / max(batches, 1) * np.sqrt(max(batches // 3, 1))), 1), count)
    return near_places(count, length, draws)


def drawn_times(captured: CapturedStretch, place: Ints) -> Ints:
    """When records are appended, in the order of appends: int64[records], us. Each comes as long after the record
    before as the record from which it takes its times did.
    """
    gaps = captured.gaps[place]
    gaps[:1] = 0
    return captured.times[:1] + np.cumsum(gaps)


def drawn_batches(captured: CapturedStretch, place: Ints, draws: np.random.Generator) -> Records:
    """The batches at the drawn pace: BATCH[batches]. A batch's first record takes its times from another record; the
    batch is closed and answered as fast as the batch of that record.

    The records already have drawn times. place: int64[records], from `drawn_places`.
    """
    batches = captured.capture.batches.copy()
    drawn = captured.batch[place[captured.turn]]
    client_factor, broker_factor = np.exp(draws.normal(0.0, RUNS_DIFFER, 2))
    share = draws.uniform(0.0, 2 * BYTES_SHARE)
    for name, factor in (
        ("delay", client_factor), ("delay_in_turn", client_factor), ("by_bytes", client_factor * share / BYTES_SHARE),
        ("round_trip", broker_factor), ("uncompressed", 1), ("in_turn", 1),
    ):  # fmt: skip
        batches[name] = captured.capture.batches[name][drawn] * factor
    is_early, last = batches["early"] != NEVER, batches["end"] - 1
    later = captured.records["time"][last] - captured.capture.records["time"][last]
    batches["early"] += np.where(is_early, later, 0)
    batches["closed"] = NONE
    batches["retry_at"] = np.where(batches["retries"] > 0, 0, NEVER)
    return batches
