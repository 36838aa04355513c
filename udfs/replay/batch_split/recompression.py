"""What records take when they are compressed together with others than in the capture.

A batch of a codec takes a fixed part and a part for each of its records, so that its ratio falls with its size. Both
are fitted, by topic and codec, to the parts of batches that ingest compressed anew (`fitted`). Of a batch that
was compressed anew itself, the sizes of its parts say where in it the bytes are (`recompressed`). Either way a batch
that is as captured has exactly its captured size in its own codec.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from udfs.columns.arrays import Floats, Ints
from udfs.columns.arrow_columns import lists
from udfs.replay.batch_split.state import Sizes
from udfs.wire.compressed_sizes import CODEC_NAMES, COMPRESSING, PARTS, part_ends

CODECS = len(CODEC_NAMES)
RECORD_OVERHEAD = 5
"""Bytes of a record's length, attributes and deltas, about: the same for all, so that shares hardly depend on it."""


class Fit(NamedTuple):
    """Compressed bytes by topic and codec: fixed + slope * uncompressed. float64[topics, codecs] each."""

    fixed: Floats
    slope: Floats


class Parts(NamedTuple):
    """Batches that were compressed anew: int64[batches], and bytes of each part's end, [batches, PARTS (, codecs)]."""

    batch: Ints
    uncompressed: Floats
    compressed: Floats


def costs(
    rows: pa.RecordBatch, inside: Ints, codec: Ints, topic: Ints, first: Ints, begin: Ints, content: Ints
) -> tuple[Sizes, Sizes]:  # fmt: skip
    """(recompressed, fitted) sizes of records in batches.

    rows: of SENT. inside: compressed bytes of the batches behind their headers. first: their rows. begin: int64[batches
    + 1], where their records begin; content: of the records.
    """
    weight = np.concatenate([np.zeros(1), np.cumsum(content + RECORD_OVERHEAD, dtype=np.float64)])
    parts = parts_of(rows, first, begin, weight)
    fit = fitted(parts, topic, int(topic.max(initial=-1)) + 1)
    total = np.diff(weight[begin])
    share = np.stack([share_of(inside, codec, topic, total, fit, other) for other in range(CODECS)])
    fixed = np.minimum(fit.fixed[topic].T, 0.5 * share)
    of = np.repeat(np.arange(len(first)), np.diff(begin))
    even = np.diff(weight) / np.maximum(total, 1)[of]
    by_parts = np.broadcast_to(even, (CODECS, len(even))).copy()
    for number, batch in enumerate(parts.batch.tolist()):
        records = slice(int(begin[batch]), int(begin[batch + 1]))
        by_parts[1:, records] = uneven(even[records], parts.compressed[number] - fixed[1:, batch][:, None])
    scale = (share - fixed)[:, of]
    own, even_sizes = (Sizes(fixed[:, of], with_zero(scale * shares)) for shares in (by_parts, even[None, :]))
    return own, even_sizes


def with_zero(values: Floats) -> Floats:
    """Running sums along the last axis, from 0."""
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


def parts_of(rows: pa.RecordBatch, first: Ints, begin: Ints, weight: Floats) -> Parts:
    """The batches among `first` that ingest compressed anew."""
    offsets, values = lists(rows[SENT.recompressed_bytes])
    batch = np.flatnonzero(np.diff(offsets)[first] > 0)
    each = offsets[first[batch]][:, None] + np.arange(len(COMPRESSING) * PARTS)
    compressed = values[each].astype(np.float64).reshape(len(batch), len(COMPRESSING), PARTS)
    ends = np.array([part_ends(int(n)) for n in np.diff(begin)[batch]], np.int64).reshape(len(batch), PARTS)
    uncompressed = weight[begin[batch][:, None] + ends] - weight[begin[batch]][:, None]
    return Parts(batch, uncompressed, compressed)


def fitted(parts: Parts, topic: Ints, topics: int) -> Fit:
    """The fits by topic and codec; a topic without parts has that of all, and where there are none a byte stays one."""
    fixed, slope = np.zeros((topics, CODECS)), np.ones((topics, CODECS))
    of = topic[parts.batch]
    for codec in range(1, CODECS):
        compressed = parts.compressed[:, codec - 1, :]
        for number in range(topics):
            mine = of == number if (of == number).any() else np.full(len(of), True)
            fixed[number, codec], slope[number, codec] = line(parts.uncompressed[mine], compressed[mine])
    return Fit(fixed, slope)


def line(x: Floats, y: Floats) -> tuple[float, float]:
    """(fixed, slope) of y over x, float64[batches, PARTS] running sums; (0, 1) of nothing.

    Batches compress so differently that the fixed part is found within them: it is the median, over the batches, of
    where the line through a batch's parts begins. The slope is what is left, over all bytes.
    """
    if len(x) == 0:
        return 0.0, 1.0
    off, spread = x - x.mean(axis=1, keepdims=True), x.var(axis=1)
    steep = (off * y).mean(axis=1) / np.maximum(spread, 1e-9)
    fixed = max(float(np.median(np.where(spread > 0, y.mean(axis=1) - steep * x.mean(axis=1), 0.0))), 0.0)
    slope = float((y[:, -1] - fixed).sum() / max(x[:, -1].sum(), 1.0))
    return fixed, min(max(slope, 1e-4), 1.2)


def share_of(inside: Ints, codec: Ints, topic: Ints, total: Floats, fit: Fit, other: int) -> Floats:
    """Compressed bytes of each batch in another codec: by the fits of both, as far off from it as in its own."""
    expected = fit.fixed[topic, codec] + fit.slope[topic, codec] * total
    asked = fit.fixed[topic, other] + fit.slope[topic, other] * total
    by_fit = np.minimum(inside / np.maximum(expected, 1) * asked, 1.05 * total + 64)
    return np.where(codec == other, inside, np.where(codec == 0, asked, by_fit))


def uneven(even: Floats, compressed: Floats) -> Floats:
    """Shares of a batch's records that sum to 1 and follow what the ends of its parts take.

    even: float64[records]. compressed: float64[codecs, PARTS], running sums.
    """
    ends = part_ends(len(even))
    of = np.searchsorted(ends, np.arange(len(even)), side="right")
    steps = np.maximum(np.diff(compressed, axis=1, prepend=0), 0)
    in_part = np.bincount(of, even, PARTS)
    steps = np.where(in_part > 0, steps, 0)
    sums = steps.sum(axis=1, keepdims=True)
    shares = np.where(sums > 0, steps / np.maximum(sums, 1e-9), in_part)
    return shares[:, of] * (even / np.maximum(in_part, 1e-12)[of])
