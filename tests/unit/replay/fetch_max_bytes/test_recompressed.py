"""Which sizes of batches are known in the logs of topics whose brokers compress batches anew."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.unit.replay.fetch_max_bytes.test_old_formats import batch, fidelity, read
from udfs.columns.records import new_records
from udfs.columns.time_units import ALWAYS
from udfs.replay.fetch_max_bytes.partition_log.events import LOG_EVENT
from udfs.replay.fetch_max_bytes.partition_log.known import has_other_size

PRODUCED = [batch(first, first + 9, 100, is_old=False, produced=0) for first in (0, 10)]
"""A read gets 150 bytes of these if the log has them in these sizes."""


def stored(first: int, size: int) -> dict[str, Any]:
    return batch(first, first + 9, size, is_old=False, version=11)


def test_a_batch_that_only_its_producer_showed_has_no_known_size_if_the_broker_compresses_anew() -> None:
    found = fidelity(*PRODUCED, stored(0, 60), read(120, version=11))
    assert found == (0, 0, 1, {"log_content_unknown": 1})


def test_a_fetched_batch_has_the_size_in_which_it_was_fetched() -> None:
    assert fidelity(*PRODUCED, stored(0, 60), stored(10, 70), read(130, version=11)) == (1, 1, 0, {})


def test_a_batch_keeps_its_size_if_others_are_fetched_as_they_were_produced() -> None:
    assert fidelity(*PRODUCED, stored(0, 100), read(150, version=11)) == (1, 1, 0, {})


def test_neither_a_compacted_batch_nor_a_lost_one_shows_that_brokers_compress_anew() -> None:
    """Of two batches produced at the same offsets, a leader lost the one that was never fetched."""
    of_sizes = {"position": [0, 0, 0, 10], "last_offset": [9, 9, 9, 19], "size_bytes": [100, 80, 80, 100]}
    fetched = {"append_after": [0, 0, ALWAYS, 0]}
    assert not has_other_size(new_records(LOG_EVENT, 4, **of_sizes, **fetched)).any()
    compacted = {"position": [0, 0, 10], "last_offset": [9, 9, 19], "size_bytes": [100, 60, 100]}
    batches = new_records(LOG_EVENT, 3, **compacted, append_after=[0, ALWAYS, 0], is_sparse=[False, True, False])
    assert not has_other_size(batches).any()
    batches["is_sparse"] = False
    assert np.flatnonzero(has_other_size(batches)).tolist() == [2]
