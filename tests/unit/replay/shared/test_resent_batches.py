"""Which produced batches are sent again, whole or in parts."""

from __future__ import annotations

import numpy as np

from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.shared.resent_batches import ProducedBatches, resendings

Sent = tuple[int, int, int, int, int, int, int]  # request, response, records, sequence, error, first and last record


def resent(*rows: Sent, stream: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """(parent, offset) of each row."""
    request, response, records, sequence, error, first, last = (np.array(column) for column in zip(*rows, strict=True))
    none = np.zeros(len(rows), np.int64)
    produced = ProducedBatches(request, response, none, none, records, sequence, error, none, first, last)
    parent, offset = resendings(produced, np.array(stream or [0] * len(rows)))
    return list(zip(parent.tolist(), offset.tolist(), strict=True))


def test_a_batch_with_the_sequence_of_an_earlier_one_repeats_it_or_a_part_of_it() -> None:
    """Idempotent producers number their records (KIP-98), and go on with the number after the last one."""
    whole, again, part, next_one = (
        (0, 9, 8, 0, 0, 1, 1),
        (10, 19, 8, 0, 0, 1, 1),
        (20, 29, 4, 4, 0, 1, 1),
        (30, 39, 1, 8, 0, 1, 1),
    )
    assert resent(whole, again, part, next_one) == [(NONE, 0), (0, 0), (0, 4), (NONE, 0)]
    assert resent(whole, again, stream=(0, 1)) == [(NONE, 0)] * 2, "the batches are of two partitions"
    assert resent(whole, next_one, part) == [(NONE, 0), (NONE, 0), (0, 4)], "another batch came in between"


def test_without_sequences_a_batch_repeats_one_that_failed_and_had_its_records() -> None:
    failed = (0, 9, 8, NONE, 7, 100, 200)
    for row, parent in (
        ((10, 19, 8, NONE, 0, 100, 200), 0), ((10, 19, 4, NONE, 0, 150, 200), 0), ((9, 19, 8, NONE, 0, 100, 200), NONE),
        ((10, 19, 9, NONE, 0, 100, 200), NONE), ((10, 19, 8, NONE, 0, 99, 200), NONE),
        ((10, 19, 8, NONE, 0, 100, 201), NONE),
    ):  # fmt: skip
        assert resent(failed, row) == [(NONE, 0), (parent, 0)], row
    taken = (0, 9, 8, NONE, 0, 100, 200)
    assert resent(taken, (10, 19, 8, NONE, 0, 100, 200)) == [(NONE, 0)] * 2
    assert resent((0, NEVER, 8, NONE, 7, 100, 200), (10, 19, 8, NONE, 0, 100, 200)) == [(NONE, 0)] * 2, (
        "not answered yet"
    )
