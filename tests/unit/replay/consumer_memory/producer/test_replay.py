"""In closed loop, captured batches are cut into pieces, which threads append."""

from __future__ import annotations

import numpy as np

from udfs.columns.records import new_records
from udfs.replay.consumer_memory.producer.batches import BUFFERED_BATCH
from udfs.replay.consumer_memory.producer.replay import pieces_of
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD


def test_a_batch_is_cut_into_one_piece_per_record_evenly_in_time_and_size() -> None:
    size = np.array([50, 7]) + RECORD_BATCH_OVERHEAD
    batches = new_records(BUFFERED_BATCH, 2, appended_at=[0, 1000], filled_at=[9000, 2000], size=size, records=[5, 1])
    pieces = pieces_of(batches)
    assert pieces["batch"].tolist() == [0, 1, 0, 0, 0, 0]
    assert pieces["due_at"].tolist() == [0, 1000, 2000, 4000, 6000, 8000]
    assert pieces["size"].tolist() == [10, 7, 10, 10, 10, 10]
    assert pieces["is_first"].tolist() == [1, 1, 0, 0, 0, 0]


def test_a_batch_of_many_records_is_cut_into_64_pieces_that_have_all_its_bytes() -> None:
    size = pieces_of(new_records(BUFFERED_BATCH, 1, filled_at=1000, size=RECORD_BATCH_OVERHEAD + 999, records=500))[
        "size"
    ]
    assert (len(size), int(size.sum()), set(size.tolist())) == (64, 999, {15, 16})
