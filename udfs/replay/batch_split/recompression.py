"""How many bytes records take when they are compressed in other batches than captured.

A compressed batch has a fixed part and a part for each of its records, so its ratio falls with its size. Both follow
from lines, one for each topic and codec, that are fitted to the parts of batches that ingest compressed anew. In such a
batch, the sizes of its parts also show where the bytes are. In all other batches, each record is taken to compress
equally well. In both cases, a batch with the captured records has exactly its captured size in its own codec.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from udfs.columns.arrays import Floats, Ints, Records, stretch_edges
from udfs.columns.arrow_columns import offsets_and_values
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.state import SizeModel
from udfs.wire.compressed_sizes import CODEC_NAMES, COMPRESSING, PARTS, part_ends
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

CODECS = len(CODEC_NAMES)
MODELS = 2
BY_PARTS, FITTED = range(MODELS)
"""The two models: by the parts of batches that were compressed anew, and by the fitted lines only."""
RECORD_OVERHEAD = 5
"""About the bytes of a record's length, attributes and deltas: the same for all, so shares hardly depend on it."""


class Parts(NamedTuple):
    """The n captured batches that ingest compressed anew, up to the end of each of their parts.

    batch: int64[n], their numbers. ends: int64[n, PARTS], records. uncompressed: float64[n, PARTS], bytes. compressed:
    float64[codecs - 1, n, PARTS], bytes.
    """

    batch: Ints
    ends: Ints
    uncompressed: Floats
    compressed: Floats


class SizeLines(NamedTuple):
    """The compressed bytes of a batch: fixed + slope * its uncompressed bytes. float64[codecs, topics] each."""

    fixed: Floats
    slope: Floats


class Shares(NamedTuple):
    """How the compressed bytes of captured batches are divided among their records.

    batches: BATCH[batches]. weight: float64[records], each record's share of its batch's uncompressed bytes. variable:
    float64[codecs, batches], the bytes that depend on the records. anew: int64[batches], the batch's number among those
    compressed anew, or NONE. For the parts of these: ends: int64[n, PARTS], records. weights: float64[n, PARTS], the
    sums of the records' weights. shares: float64[codecs - 1, n, PARTS], shares of the batch's compressed bytes.
    """

    batches: Records
    weight: Floats
    variable: Floats
    anew: Ints
    ends: Ints
    weights: Floats
    shares: Floats


def size_model(rows: pa.RecordBatch, batches: Records, sendings: Records, records: Records) -> SizeModel:
    """The sizes that records have in batches other than the captured ones.

    rows: of SENT. batches: BATCH[batches]; sendings: SENDING[batches], which sent them first. records: RECORD[records].
    """
    size, batch, topic = records["content"] + RECORD_OVERHEAD, records["batch"], sendings["topic"]
    upto = stretch_edges(size)
    total = (upto[batches["end"]] - upto[batches["first"]]).astype(np.float64)
    parts = recompressed_parts(rows, batches, upto)
    lines = fit_lines(parts, topic)
    inside = bytes_by_codec(sendings, total, lines)
    fixed = np.minimum(lines.fixed[:, topic], 0.5 * inside)
    weight = size / np.maximum(total, 1)[batch]
    anew = np.full(len(batches), NONE)
    anew[parts.batch] = np.arange(len(parts.batch))
    weights = np.zeros(parts.ends.shape)
    add_up_weights(batches, weight, parts.batch, parts.ends, weights)
    cost = np.zeros((MODELS, CODECS, len(records) + 1))
    share_out(
        Shares(
            batches=batches,
            weight=weight,
            variable=inside - fixed,
            anew=anew,
            ends=parts.ends,
            weights=weights,
            shares=shares_of_parts(parts, fixed, weights),
        ),
        cost,
    )
    return SizeModel(fixed[:, batch], cost)


def recompressed_parts(rows: pa.RecordBatch, batches: Records, upto: Ints) -> Parts:
    """The captured batches that ingest compressed anew. upto: int64[records + 1], uncompressed bytes before each."""
    offsets, values = offsets_and_values(rows[SENT.recompressed_bytes])
    batch = np.flatnonzero(np.diff(offsets)[batches["sending"]] > 0)
    first, sending = batches["first"][batch], batches["sending"][batch]
    each = offsets[sending][:, None] + np.arange(len(COMPRESSING) * PARTS)
    compressed = values[each].astype(np.float64).reshape(len(batch), len(COMPRESSING), PARTS)
    counts = (batches["end"][batch] - first).tolist()
    ends = np.array([part_ends(count) for count in counts], np.int64).reshape(len(batch), PARTS)
    uncompressed = (upto[first[:, None] + ends] - upto[first][:, None]).astype(np.float64)
    return Parts(batch, ends, uncompressed, np.ascontiguousarray(compressed.transpose(1, 0, 2)))


def fit_lines(parts: Parts, topic: Ints) -> SizeLines:
    """The lines of each codec and topic. A topic without a batch that was compressed anew has the line of all topics.
    If no batch at all was, a byte stays a byte, as without compression. topic: int64[batches].
    """
    topics, anew = int(topic.max(initial=-1)) + 1, topic[parts.batch]
    fixed, slope = np.zeros((CODECS, topics)), np.ones((CODECS, topics))
    for number in range(topics if len(anew) else 0):
        chosen = np.flatnonzero(anew == number) if number in anew else np.arange(len(anew))
        fixed[1:, number], slope[1:, number] = fit_lines_of_codecs(
            parts.uncompressed[chosen], parts.compressed.take(chosen, axis=1)
        )
    return SizeLines(fixed, slope)


def fit_lines_of_codecs(uncompressed: Floats, compressed: Floats) -> tuple[Floats, Floats]:
    """(fixed, slope) of compressed over uncompressed bytes, by codec: float64[codecs] both.

    Batches compress very differently, so the fixed part is found within each batch: it is the median, over the batches,
    of where the line through a batch's parts begins. The slope is the rest of the compressed bytes over all
    uncompressed bytes.

    uncompressed: float64[batches, PARTS]. compressed: float64[codecs, batches, PARTS]. Both are running sums over the
    parts of a batch; there is at least one batch.
    """
    deviation, spread = uncompressed - uncompressed.mean(axis=1, keepdims=True), uncompressed.var(axis=1)
    steep = (deviation * compressed).mean(axis=2) / np.maximum(spread, 1e-9)
    begins = np.where(spread > 0, compressed.mean(axis=2) - steep * uncompressed.mean(axis=1), 0.0)
    fixed = np.maximum(np.median(begins, axis=1), 0.0)
    left = (compressed[:, :, -1] - fixed[:, None]).sum(axis=1)
    return fixed, np.clip(left / max(float(uncompressed[:, -1].sum()), 1.0), 1e-4, 1.2)


def bytes_by_codec(sendings: Records, total: Floats, lines: SizeLines) -> Floats:
    """Compressed bytes of each captured batch in each codec, without the header: float64[codecs, batches]. In its own
    codec a batch has its captured bytes; in any other codec it differs from that codec's line in the same proportion.

    sendings: SENDING[batches]. total: float64[batches], about the uncompressed bytes.
    """
    topic, codec, inside = sendings["topic"], sendings["codec"], sendings["size"] - RECORD_BATCH_OVERHEAD
    expected = lines.fixed[codec, topic] + lines.slope[codec, topic] * total
    on_lines = lines.fixed[:, topic] + lines.slope[:, topic] * total
    by_lines = np.minimum(inside / np.maximum(expected, 1) * on_lines, 1.05 * total + 64)
    return np.where(codec == np.arange(CODECS)[:, None], inside, np.where(codec == 0, on_lines, by_lines))


def shares_of_parts(parts: Parts, fixed: Floats, weights: Floats) -> Floats:
    """The share of a batch's compressed bytes in each of its parts: float64[codecs - 1, n, PARTS].

    fixed: float64[codecs, batches]. weights: float64[n, PARTS], the shares if no sizes tell.
    """
    inside = parts.compressed - fixed[1:, parts.batch][:, :, None]
    steps = np.maximum(np.diff(inside, axis=2, prepend=0), 0)
    steps = np.where(weights > 0, steps, 0)
    sums = steps.sum(axis=2, keepdims=True)
    return np.where(sums > 0, steps / np.maximum(sums, 1e-9), weights)


@kernel
def add_up_weights(batches: Records, weight: Floats, anew: Ints, ends: Ints, weights: Floats) -> None:
    """Write the sums of the records' weights in each part.

    batches: BATCH[batches]. weight: float64[records]. anew: int64[n], the batches that were compressed anew. ends:
    int64[n, PARTS], the records of each part. weights: float64[n, PARTS], zeros before.
    """
    for number in range(len(anew)):
        first, part = batches[anew[number]].first, 0
        for record in range(first, batches[anew[number]].end):
            while ends[number, part] <= record - first:
                part += 1
            weights[number, part] += weight[record]


@kernel
def share_out(shares: Shares, cost: Floats) -> None:
    """Write SizeModel.cost for every batch: float64[MODELS, codecs, records + 1]."""
    for number in range(len(shares.batches)):
        for codec in range(CODECS):
            share_evenly(shares, number, codec, cost[FITTED, codec])
            if codec == 0 or shares.anew[number] == NONE:
                share_evenly(shares, number, codec, cost[BY_PARTS, codec])
            else:
                share_by_parts(shares, number, codec, cost[BY_PARTS, codec])


@kernel
def share_evenly(shares: Shares, number: int, codec: int, cost: Floats) -> None:
    """Go on with the running sums of a codec over a batch whose records all compress equally well.

    cost: float64[records + 1], in bytes, written behind the batch's first record.
    """
    variable = shares.variable[codec, number]
    for record in range(shares.batches[number].first, shares.batches[number].end):
        cost[record + 1] = cost[record] + variable * shares.weight[record]


@kernel
def share_by_parts(shares: Shares, number: int, codec: int, cost: Floats) -> None:
    """Go on with the running sums of a codec over a batch that was compressed anew.

    cost: float64[records + 1], in bytes, written behind the batch's first record.
    """
    variable, anew, part = shares.variable[codec, number], shares.anew[number], 0
    first = shares.batches[number].first
    for record in range(first, shares.batches[number].end):
        while shares.ends[anew, part] <= record - first:
            part += 1
        in_part = shares.weight[record] / max(shares.weights[anew, part], 1e-12)
        cost[record + 1] = cost[record] + variable * (shares.shares[codec - 1, anew, part] * in_part)
