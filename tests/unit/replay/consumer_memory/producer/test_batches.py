"""What a producer sent: which sendings are one batch, and how long each holds its memory."""

from __future__ import annotations

import numpy as np

from udfs.columns.records import new_records
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.producer.batches import Produced, read_produced
from udfs.replay.consumer_memory.producer.events import SENDING

Sending = tuple[int, int, int, int, int, int, int]  # appended at, sent at, answered at, size, sequence, records, error


def sent(*sendings: Sending, last_ms: int = 5, is_compressed: int = 0) -> Produced:
    """What a producer sent to one partition, each sending in a request of its own."""
    names = ("appended_at", "sent_at", "answered_at", "size", "sequence", "records", "error")
    columns = dict(zip(names, zip(*sendings, strict=True), strict=True))
    rows = new_records(
        SENDING,
        len(sendings),
        **columns,
        request=np.arange(len(sendings)),
        stream=7,
        first_timestamp_ms=columns["appended_at"],
        last_timestamp_ms=last_ms,
        is_compressed=is_compressed,
    )
    return read_produced(rows, 1)


def resent(found: Produced) -> int:
    return int(found.producers["resent"][0])


def split_parts(found: Produced) -> int:
    return int(found.producers["split_parts"][0])


def test_a_batch_holds_its_memory_from_its_first_record_until_its_answer() -> None:
    found = sent((0, 10, 30, 100, 0, 5, 0), (20, 40, NEVER, 50, 5, 3, 0))
    assert found.batches["appended_at"].tolist() == [0, 20]
    assert found.batches["held_us"].tolist() == [30, 20]  # the second is not answered: it is held until it is sent


def test_a_batch_that_is_sent_again_keeps_its_memory() -> None:
    found = sent((0, 10, 30, 100, 0, 5, 6), (0, 130, 150, 100, 0, 5, 0), (20, 40, 60, 50, 5, 3, 0))
    assert (found.batches["appended_at"].tolist(), found.batches["held_us"].tolist(), resent(found)) == (
        [0, 20],
        [150, 40],
        1,
    )


def test_without_sequences_a_batch_counts_as_sent_again_if_one_with_the_same_times_failed() -> None:
    again = sent((0, 10, 30, 100, -1, 5, 6), (0, 130, 150, 100, -1, 5, 0))
    assert (again.batches["held_us"].tolist(), resent(again)) == ([150], 1)
    two = sent((0, 10, 30, 100, -1, 5, 0), (0, 130, 150, 100, -1, 5, 0))
    assert (two.batches["held_us"].tolist(), resent(two)) == ([30, 150], 0)


def test_parts_of_a_batch_that_was_too_large_take_no_memory_of_the_pool() -> None:
    found = sent((0, 10, 30, 100, 0, 5, 10), (0, 40, 50, 60, 0, 3, 0), (0, 41, 51, 40, 3, 2, 0))
    assert (found.batches["held_us"].tolist(), found.batches["size"].tolist()) == ([30], [100])
    assert (resent(found), split_parts(found)) == (0, 2)


def test_the_one_part_of_a_batch_that_was_too_large_is_not_that_batch_sent_again() -> None:
    """Seen where batch.size is above max.message.bytes: all records fit into one part, which is refused again."""
    parts = (0, 40, 60, 100, 0, 5, 10), (0, 70, 80, 60, 0, 3, 0), (0, 71, 81, 40, 3, 2, 0)
    found = sent((0, 10, 30, 100, 0, 5, 10), *parts)
    assert (found.batches["held_us"].tolist(), resent(found), split_parts(found)) == ([30], 0, 3)
    again = sent((0, 5, 7, 100, 0, 5, 45), (0, 10, 30, 100, 0, 5, 10), *parts)
    assert (again.batches["held_us"].tolist(), resent(again), split_parts(again)) == ([30], 1, 3)


def test_a_batch_has_its_last_record_by_the_end_of_that_records_ms_and_before_it_is_sent() -> None:
    batches = (0, 9000, 9500, 100, 0, 5, 0), (1, 9000, 9500, 50, 5, 1, 0), (2, 3500, 9500, 50, 6, 5, 0)
    assert sent(*batches, last_ms=3).batches["filled_at"].tolist() == [4000, 9000, 3500]


def test_only_a_compressed_batch_of_several_records_may_have_grown() -> None:
    batches = (0, 10, 30, 100, 0, 5, 0), (1, 10, 30, 50, 5, 1, 0)
    assert sent(*batches, is_compressed=1).batches["may_grow"].tolist() == [1, 0]
    assert sent(*batches, is_compressed=0).batches["may_grow"].tolist() == [0, 0]
