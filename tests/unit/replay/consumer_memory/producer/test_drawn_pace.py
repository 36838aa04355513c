"""A producer's buffer at other paces of its brokers: what depends on pace has a range, and what does not has none."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.replay.consumer_memory.producer.batches import BUFFERED_BATCH, PRODUCER, Produced, sent_by
from udfs.replay.consumer_memory.producer.drawn_pace import BufferReplications, replicated
from udfs.replay.consumer_memory.producer.requests import SERVED_REQUEST
from udfs.replay.consumer_memory.settings import BUFFER_SETTINGS
from udfs.replay.shared.replications import FEWEST, REPLICATIONS
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

BATCHES, EVERY_US, TAKES_US = 300, 100, 190
"""A batch is begun every 100 us, and a broker takes 190 us to answer it: two are on their way at the same time."""
SIZE = 1000
TWO, THREE, PLENTY = (count * SIZE for count in (2, 3, 100))


def sent(share_behind: float = 0.0) -> Produced:
    """Batches of one record on one connection. share_behind: from 0.1 on the producer is busy."""
    begun_at, whole = np.arange(BATCHES) * EVERY_US, SIZE - RECORD_BATCH_OVERHEAD
    batches = new_records(
        BUFFERED_BATCH, BATCHES, appended_at=begun_at, filled_at=begun_at, size=whole, records=1,
        first_record_size=whole, held_us=TAKES_US, sending_us=TAKES_US,
    )  # fmt: skip
    requests = new_records(SERVED_REQUEST, BATCHES, sent_at=begun_at, service_us=TAKES_US // 2)
    producers = new_records(
        PRODUCER, 1, end_batch=BATCHES, end_stream=1, end_connection=1, end_request=BATCHES, batches=BATCHES,
        share_behind=share_behind,
    )  # fmt: skip
    return Produced(producers, batches, requests, np.zeros(1, np.int64))


def lanes(*buffers: int) -> Records:
    return new_records(
        BUFFER_SETTINGS, len(buffers), buffer_memory=buffers, batch_size=SIZE, max_block_us=10**9, threads=1
    )


def waits_of(found: BufferReplications, lane: int) -> list[int]:
    return found.outcomes["waits"][: found.counts[lane], lane].tolist()


def test_a_buffer_that_just_suffices_does_not_suffice_in_runs_with_slower_brokers() -> None:
    for share_behind in (0.0, 0.5):
        waits = waits_of(replicated(sent(share_behind), lanes(PLENTY, TWO), "app"), 1)
        assert min(waits) == 0 < max(waits)


def test_a_lane_in_which_nothing_waits_at_any_pace_has_few_replications() -> None:
    found = replicated(sent(), lanes(PLENTY, TWO, PLENTY), "app")
    assert found.counts.tolist() == [FEWEST, REPLICATIONS, FEWEST]
    assert waits_of(found, 2) == [0] * FEWEST


def test_a_producer_that_sends_faster_brokers_more_than_they_take_uses_more_memory_with_slower_ones() -> None:
    found = replicated(sent(), lanes(PLENTY), "app")
    used = found.outcomes["used_max"][:FEWEST, 0]
    assert TWO <= used.min() < used.max()


def test_lanes_differ_by_their_settings_alone() -> None:
    found = replicated(sent(), lanes(PLENTY, TWO, THREE, TWO), "app")
    assert waits_of(found, 1) == waits_of(found, 3)
    assert all(more >= fewer for more, fewer in zip(waits_of(found, 1), waits_of(found, 2), strict=False))


def test_a_producer_has_the_same_draws_in_any_company_and_another_client_id_has_others() -> None:
    one = sent(0.5)
    both = Produced(
        np.concatenate([one.producers, one.producers]), np.concatenate([one.batches, one.batches]),
        np.concatenate([one.requests, one.requests]), np.zeros(2, np.int64),
    )  # fmt: skip
    for name, count in (("batch", BATCHES), ("stream", 1), ("connection", 1), ("request", BATCHES)):
        both.producers[f"first_{name}"][1] += count
        both.producers[f"end_{name}"][1] += count
    both.batches["stream"][BATCHES:] += 1
    both.requests["connection"][BATCHES:] += 1
    both.stream_connections[1] += 1
    alone = waits_of(replicated(one, lanes(PLENTY, TWO), "app"), 1)
    assert waits_of(replicated(sent_by(both, 1), lanes(PLENTY, TWO), "app"), 1) == alone
    assert waits_of(replicated(one, lanes(PLENTY, TWO), "other"), 1) != alone
