"""How far off the sizes are that the replay gives to batches, told by batches whose size the capture shows.

Batches that splits made are cut anew, as are those that the replay has to size. A batch that was sent first has its
captured size in the model; what its records take when they are compressed again is compared as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Floats, Ints
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.lane import Measure
from udfs.replay.batch_split.state import Sizes
from udfs.replay.shared.resent_batches import NONE
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

RECUT = "recut_bytes_recompressed", "recut_bytes_fitted"
"""Metrics of `fidelity`: batches that splits made, with sizes from parts of captured batches and by the fit alone."""
RECUT_EXACT, FIRST_EXACT = "recut_bytes_exact", "first_bytes_exact"
STATED_ERRORS = {RECUT[0]: 0.05, RECUT[1]: 0.05, RECUT_EXACT: 0.005, FIRST_EXACT: 0.005}
"""By metric: a size agrees when it is no further off than this, of what was captured."""


class Sized(NamedTuple):
    """Captured batches: topics int64, sizes as replayed and as captured."""

    topic: Ints
    replayed: Floats
    captured: Ints

    @property
    def error(self) -> Floats:
        """How far each size is off, of what was captured."""
        return np.abs(self.replayed - self.captured) / np.maximum(self.captured, 1)


class Spans(NamedTuple):
    """Captured batches by what they hold: int64, their rows, records [first, end) of the log and codecs."""

    row: Ints
    first: Ints
    end: Ints
    codec: Ints


def sized(sent: Sent, measure: Measure | None) -> Iterator[tuple[str, Sized]]:
    """What each metric compares; measure: what batches of the very records take, where they are held."""
    recut = made_by_splits(sent)
    for metric, sizes in zip(RECUT, (sent.sizes, sent.fitted), strict=True):
        yield metric, modelled(sent, recut, sizes)
    if measure is not None:
        yield RECUT_EXACT, measured(sent, recut, measure)
        yield FIRST_EXACT, measured(sent, sent_first(sent), measure)


def made_by_splits(sent: Sent) -> Spans:
    """The batches that splits made in the capture, as far as it tells which records they have."""
    rows = sent.rows
    told = (sent.batch_of != NONE) & (rows.sequence >= 0)  # else where a part begins is not known
    parts = np.flatnonzero(~sent.is_whole & told & (rows.uncompressed > 0))
    first = sent.begin[sent.batch_of[parts]] + sent.offset[parts]
    end = first + rows.records[parts]
    fits = end <= sent.begin[sent.batch_of[parts] + 1]
    return Spans(parts[fits], first[fits], end[fits], rows.codec[parts[fits]])


def sent_first(sent: Sent) -> Spans:
    """The batches that were sent first."""
    return Spans(sent.first, sent.begin[:-1], sent.begin[1:], sent.rows.codec[sent.first])


def modelled(sent: Sent, spans: Spans, sizes: Sizes) -> Sized:
    """Batches with the sizes that the model gives them."""
    row, first, end, codec = spans
    inside = sizes.fixed[codec, first] + sizes.cost[codec, end] - sizes.cost[codec, first]
    return Sized(sent.topic[row], RECORD_BATCH_OVERHEAD + inside, sent.rows.size[row])


def measured(sent: Sent, spans: Spans, measure: Measure) -> Sized:
    """Batches with what their very records take, as far as they are held."""
    of = zip(spans.first.tolist(), spans.end.tolist(), spans.codec.tolist(), strict=True)
    size = np.array([measure(*span) for span in of], np.float64)
    row, held = spans.row, size > 0
    return Sized(sent.topic[row][held], size[held], sent.rows.size[row][held])
