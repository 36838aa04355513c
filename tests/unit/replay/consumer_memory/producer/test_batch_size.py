"""The batch.size of a producer that nobody states is what its uncompressed batches show."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.time_units import US_PER_MS
from udfs.replay.consumer_memory.producer.batch_size import shown_batch_size
from udfs.replay.consumer_memory.producer.batches import BUFFERED_BATCH
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

DEFAULT = 16_384
RECORDS = 3000


def filled(batch_size: int, *, streams: int = 3, seed: int = 0, constant: int | None = None) -> Records:
    """The batches of a producer that never lingers: one record a millisecond, each to a drawn partition, and a batch
    is sent 10 ms after the next record had no room in it.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.exponential(400, RECORDS).astype(np.int64) + 50 if constant is None else np.full(RECORDS, constant)
    batches, unsent = list[dict[str, int]](), dict[int, dict[str, int]]()
    for ms, (size, stream) in enumerate(zip(sizes.tolist(), rng.integers(0, streams, RECORDS).tolist(), strict=True)):
        batch = unsent.get(stream)
        if batch is None or batch["size"] + size > batch_size:
            if batch is not None:
                batches.append(batch | {"held_us": ms * US_PER_MS + 10_000 - batch["appended_at"]})
            batch = unsent[stream] = {"stream": stream, "appended_at": ms * US_PER_MS, "size": RECORD_BATCH_OVERHEAD}
            batch |= {"records": 0}
            unsent[stream] = batch
        batch["size"] += size
        batch["records"] += 1
    columns = {name: [batch[name] for batch in batches] for name in ("stream", "appended_at", "size", "records")}
    held_us = np.array([batch["held_us"] for batch in batches])
    made = new_records(BUFFERED_BATCH, len(batches), **columns, held_us=held_us)
    content = (made["size"] - RECORD_BATCH_OVERHEAD) // made["records"]
    made["first_record_size"] = content + RECORD_BATCH_OVERHEAD
    return made[np.argsort(made["appended_at"], kind="stable")]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("batch_size", [2000, 4096, DEFAULT, 38_000, 65_536])
def test_full_batches_show_the_batch_size_whatever_the_sizes_of_records(batch_size: int, seed: int) -> None:
    assert shown_batch_size(filled(batch_size, seed=seed), DEFAULT) == batch_size


def test_records_of_one_size_show_about_where_the_batch_size_is() -> None:
    """With 300 bytes a record, the same batches come of every value from 1,861 to 2,160."""
    assert shown_batch_size(filled(2000, constant=300), DEFAULT) == 2048


def test_batches_of_one_record_that_could_have_been_larger_show_that_batching_is_off() -> None:
    assert shown_batch_size(filled(0), DEFAULT) == 0


def test_batches_that_were_sent_before_the_next_record_came_show_nothing() -> None:
    lingered = filled(4096)
    lingered["held_us"] = 0
    assert shown_batch_size(lingered, DEFAULT) == DEFAULT


def test_compressed_batches_show_nothing() -> None:
    compressed = filled(4096)
    compressed["is_compressed"] = 1
    assert shown_batch_size(compressed, DEFAULT) == DEFAULT


def test_a_producer_without_batches_has_the_default() -> None:
    assert shown_batch_size(np.zeros(0, BUFFERED_BATCH), DEFAULT) == DEFAULT
