"""A producer's pace drawn anew from what the capture shows of it.

How fast records come, how soon the client takes a batch that is ready, and how soon brokers answer differs from one run
to the next, and decides how many batches are filled by an estimate that is too low. So every lane is replayed again and
again, each time with other times: blocks of the captured ones, so that what is slow for a while stays slow, and what is
slow at the same time is so together. Client and brokers are then as much faster or slower as one run is than another,
and a batch takes more or less of its time because of its bytes, which one capture hardly shows. All lanes have the same
draws, and differ by their settings alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.batch_split.state import Capture, ProducerSim, new_progress
from udfs.replay.batch_split.timing import BYTES_SHARE
from udfs.replay.shared.replications import replications_within
from udfs.replay.shared.window import Window

RECORDS_AT_MOST = 1 << 24
"""How many records of a stretch are replayed for ranges, over all lanes: a longer stretch has fewer replications."""
NEAR_BLOCKS = 4
"""A block of times is drawn from at most so many blocks away (the local block bootstrap of Paparoditis and
Politis, 2002)."""
RUNS_DIFFER = 0.25
"""How far equal runs of a live producer differ: the standard deviation of the logarithm of the time that a batch takes,
relative to that of a record. VALIDATION.md says how that was measured."""


def replication_count(records: int, lanes: int) -> int:
    """How often lanes are replayed with pace drawn anew. records: of the first stretch."""
    return replications_within(RECORDS_AT_MOST, records * lanes)


class CapturedStretch(NamedTuple):
    """A stretch at captured pace, and what is drawn from.

    records: RECORD[records], which are given drawn times. times, gaps: int64[records], us, in the order of appending:
    when each record was appended, and how long after the one before it. turn: int64[batches], the place of the first
    record of each. batch: int64[records], the batch of each record, in the order of appending.
    """

    capture: Capture
    records: Records
    times: Ints
    gaps: Ints
    turn: Ints
    batch: Ints


def observed_stretch(capture: Capture) -> CapturedStretch:
    """What is drawn from. capture: at captured pace."""
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
    """A moment of the window, moved so that the same records are before it when they come at drawn times (us).

    times, drawn: int64[records], us, in the order of appending.
    """
    place = int(np.searchsorted(times, moment))
    if moment in (ALWAYS, NEVER) or place == 0:
        return moment
    later = moment + int(drawn[place - 1] - times[place - 1])
    return min(later, int(drawn[place])) if place < len(times) else later


def drawn_places(count: int, batches: int, draws: np.random.Generator) -> Ints:
    """From which place each record takes its times, of `count` records in the order of appending: int64[count].

    A block has as many batches as the square root of a third of them. It is drawn from near its own place, for what is
    sent has a pace of its own, too. The first one stays, and is not drawn again: a client that has just started has no
    connection yet.
    """
    length = min(max(round(count / max(batches, 1) * np.sqrt(max(batches // 3, 1))), 1), count)
    places, last = np.arange(0, count, length), count - length
    first, reach = min(length, last), NEAR_BLOCKS * length
    low, high = np.clip(places - reach, first, last), np.clip(places + reach, first, last)
    starts = draws.integers(low, high, endpoint=True)
    starts[0] = 0
    return (starts[:, np.newaxis] + np.arange(length)).reshape(-1)[:count]


def drawn_times(captured: CapturedStretch, place: Ints) -> Ints:
    """When records are appended, each as long after the one before it as the one at its place was: int64[records], us,
    in the order of appending.
    """
    gaps = captured.gaps[place]
    gaps[:1] = 0
    return captured.times[:1] + np.cumsum(gaps)


def drawn_batches(captured: CapturedStretch, place: Ints, draws: np.random.Generator) -> Records:
    """The batches, each closed and answered as fast as the batch of that record whose times its own first record has:
    BATCH[batches].

    The records have drawn times already. place: int64[records], as `drawn_places` returns it.
    """
    batches = captured.capture.batches.copy()
    drawn = captured.batch[place[captured.turn]]
    client_factor, broker_factor = np.exp(draws.normal(0.0, RUNS_DIFFER, 2))
    share = draws.uniform(0.0, 2 * BYTES_SHARE)
    for name, factor in (
        ("delay", client_factor), ("behind", client_factor), ("by_bytes", client_factor * share / BYTES_SHARE),
        ("round_trip", broker_factor), ("uncompressed", 1), ("in_turn", 1),
    ):  # fmt: skip
        batches[name] = captured.capture.batches[name][drawn] * factor
    is_early, last = batches["early"] != NEVER, batches["end"] - 1
    later = captured.records["time"][last] - captured.capture.records["time"][last]
    batches["early"] += np.where(is_early, later, 0)
    batches["closed"] = NONE
    batches["retry_at"] = np.where(batches["retries"] > 0, 0, NEVER)
    return batches
