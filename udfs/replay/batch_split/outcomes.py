"""What comes of a producer's batches, by lane and topic: sums, and the estimate over the sequence of batches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Floats, Ints
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel

SPAN = 32
SPAN_COLUMNS = 7
"""Topic, batches closed before, batches, splits, sums of estimates and of ratios in MICRO, time."""
MICRO = 1_000_000


class Sums(NamedTuple):
    """Outcomes by lane and topic: int64[lanes, topics] each."""

    batches: Ints  # sent first
    over_limit: Ints  # ... larger than max.message.bytes
    records: Ints
    bytes_sent: Ints  # all that was sent, again and again included
    bytes_resent: Ints  # of batches made by splits
    splits: Ints
    split_batches: Ints  # batches that splits made
    failed: Ints  # refused batches that cannot be split, or are not under a profile without splits
    retries: Ints
    size: Ints  # of the batches that were sent first
    limit: Ints  # batch.size of those
    uncompressed: Ints
    largest: Ints
    recoveries: Ints
    recovery_us: Ints
    recovery_longest: Ints
    measured: Ints  # closed batches whose records were compressed anew to get their size
    model_error: Ints  # of those, in MICRO of the size: how far the model was off, summed
    since_split: Ints  # us: when the estimate was last raised by a split and has not come back, NEVER


class Timeline(NamedTuple):
    """Spans of SPAN batches by lane and topic, in the making: [lanes, topics] each."""

    closed: Ints  # batches closed before the span
    batches: Ints
    splits: Ints
    estimate: Floats  # sums
    ratio: Floats


@kernel
def note_span(lane: int, topic: int, is_split: bool, estimate: float, ratio: float, line: Timeline) -> bool:
    """Count a closed batch for the timeline; whether its span is full."""
    line.batches[lane, topic] += 1
    line.splits[lane, topic] += is_split
    line.estimate[lane, topic] += estimate
    line.ratio[lane, topic] += ratio
    return bool(line.batches[lane, topic] == SPAN)


@kernel
def end_span(spans: Ints, at: int, lane: int, topic: int, time: int, line: Timeline) -> None:
    """Hand out a span into row `at` of int64[spans, SPAN_COLUMNS]."""
    spans[at, 0], spans[at, 1] = topic, line.closed[lane, topic]
    spans[at, 2], spans[at, 3] = line.batches[lane, topic], line.splits[lane, topic]
    spans[at, 4] = np.int64(line.estimate[lane, topic] * MICRO)
    spans[at, 5] = np.int64(line.ratio[lane, topic] * MICRO)
    spans[at, 6] = time
    line.closed[lane, topic] += line.batches[lane, topic]
    line.batches[lane, topic], line.splits[lane, topic] = 0, 0
    line.estimate[lane, topic], line.ratio[lane, topic] = 0, 0


@kernel
def recovered(sums: Sums, lane: int, topic: int, now: int, estimate: float, ratio: float) -> None:
    """Note when the estimate has come down, after a split, to what batches have."""
    since = sums.since_split[lane, topic]
    if since != NEVER and estimate <= ratio:
        sums.recoveries[lane, topic] += 1
        sums.recovery_us[lane, topic] += now - since
        sums.recovery_longest[lane, topic] = max(sums.recovery_longest[lane, topic], now - since)
        sums.since_split[lane, topic] = NEVER


def last_spans(line: Timeline, lane: int, time: int) -> Ints:
    """The spans of a lane that have begun, int64[spans, SPAN_COLUMNS]."""
    topic = np.flatnonzero(line.batches[lane] > 0)
    columns = (
        topic, line.closed[lane, topic], line.batches[lane, topic], line.splits[lane, topic],
        (line.estimate[lane, topic] * MICRO).astype(np.int64), (line.ratio[lane, topic] * MICRO).astype(np.int64),
        np.full(len(topic), time),
    )  # fmt: skip
    return np.stack(columns, axis=1)


def no_sums(lanes: int, topics: int) -> Sums:
    """Outcomes before anything happened."""
    sums = Sums(*(np.zeros((lanes, topics), np.int64) for _ in Sums._fields))
    sums.since_split[:] = NEVER
    return sums


def no_timeline(lanes: int, topics: int) -> Timeline:
    """Spans before any batch was closed."""
    closed, batches, splits = (np.zeros((lanes, topics), np.int64) for _ in range(3))
    return Timeline(closed, batches, splits, np.zeros((lanes, topics)), np.zeros((lanes, topics)))
