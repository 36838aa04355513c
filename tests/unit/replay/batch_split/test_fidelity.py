"""How many splits of the captured lane agree with the capture."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.tables.split_reasons import SPLITS
from tests.unit.replay.batch_split.producers import sent, sent_batch
from udfs.replay.batch_split.events import read_sent
from udfs.replay.batch_split.fidelity import Metric, NearLimit, ProducerFidelity, recut_batches, split_verdicts
from udfs.replay.batch_split.possible_estimates.state import new_memory
from udfs.replay.batch_split.state import AS_PRODUCED
from udfs.replay.shared.fidelity_rows import AGREED
from udfs.wire.compressed_sizes import CODEC_NAMES

NEAR_LIMIT, ORDER_OPEN = SPLITS.codes[SPLITS.near_limit], SPLITS.codes[SPLITS.close_append_order]
STORED = SPLITS.codes[SPLITS.recompressed]
NOT_REPLAYED, NOT_CAPTURED = SPLITS.codes[SPLITS.split_not_replayed], SPLITS.codes[SPLITS.split_not_captured]


def test_only_splits_that_depend_on_the_order_of_closes_or_on_one_record_are_unknown() -> None:
    near = NearLimit(taken=1, refused=2)
    assert +split_verdicts(7, 7, 9, near) == {AGREED: 7}
    assert +split_verdicts(7, 3, 4, near) == {AGREED: 3, ORDER_OPEN: 1, NEAR_LIMIT: 2, NOT_REPLAYED: 1}
    assert +split_verdicts(7, 4, 9, near) == {AGREED: 4, ORDER_OPEN: 3}
    assert +split_verdicts(7, 10, 12, near) == {AGREED: 7, NEAR_LIMIT: 1, NOT_CAPTURED: 2}


def test_only_as_many_splits_are_unknown_as_batches_were_stored_in_an_unknown_size() -> None:
    assert +split_verdicts(7, 2, 2, NearLimit(refused=1), 3) == {AGREED: 2, NEAR_LIMIT: 1, STORED: 3, NOT_REPLAYED: 1}
    assert +split_verdicts(2, 7, 7, NearLimit(), 9) == {AGREED: 2, STORED: 5}


@pytest.mark.parametrize(
    ("error", "limit", "stored", "verdict"),
    [
        (0, 900, AS_PRODUCED, None), (0, 899, AS_PRODUCED, NOT_CAPTURED), (10, 900, AS_PRODUCED, NOT_REPLAYED),
        (10, 899, AS_PRODUCED, AGREED), (10, 900, CODEC_NAMES.index("zstd"), STORED),
    ],
)  # fmt: skip
def test_a_batch_of_max_message_bytes_is_taken_and_a_larger_one_refused(
    error: int, limit: int, stored: int, verdict: int | None
) -> None:
    """UnifiedLog.append: sizeInBytes > maxMessageSize."""
    fidelity = ProducerFidelity(new_memory())
    fidelity.count_refusals(
        read_sent(sent_batch([sent(0, 8, 900, 9, error)]), {}, {}), np.array([limit]), np.array([stored])
    )
    assert +fidelity.verdicts == ({} if verdict is None else {(Metric.SPLITS, verdict): 1})
    assert fidelity.unsized == (stored != AS_PRODUCED)


def test_the_parts_of_a_split_are_compared_from_the_first_sequence_number_on() -> None:
    rows = [(0, 8, 9, 10), (0, 4, 11, 0), (4, 4, 13, 0)]
    found = read_sent(
        sent_batch([sent(first, n, 250 * n, request, error) for first, n, request, error in rows]), {}, {}
    )
    cuts = recut_batches(found)
    assert (cuts.sending.tolist(), cuts.first.tolist(), cuts.end.tolist()) == ([1, 2], [0, 4], [4, 8])
