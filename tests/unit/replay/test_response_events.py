"""Consumers' responses under other fetch limits, which the replay of memory goes on from."""

from __future__ import annotations

import pyarrow as pa
import pytest

from schemas.tables.steps import MEMORY_EVENTS
from tests.packed import unpack
from tests.unit.replay.captured_reader import SIZE, batch_rows, catch_up, lanes_of, reads_of
from udfs.replay.fetch.fetch_lanes import FetchLanes
from udfs.replay.fetch.fetch_read import AS_CAPTURED
from udfs.replay.fetch.fetch_replay import Others, replay_fetches
from udfs.replay.memory.replayed_fetches import replayed_fetches
from udfs.replay.memory.response_events import response_events, room_for

LIMITS = lanes_of(AS_CAPTURED, SIZE, 10 * SIZE)


@pytest.mark.parametrize("most", [1, 7, 10_000])
@pytest.mark.parametrize("lanes", [lanes_of(AS_CAPTURED, 3 * SIZE), LIMITS], ids=["others", "same"])
def test_they_are_the_same_beside_a_replay_of_fetches_in_other_lanes_or_the_same_and_alone(
    lanes: FetchLanes, most: int
) -> None:
    reads = reads_of(batch_rows() + catch_up(reconnects=8), most).to_batches(max_chunksize=most)
    alone = pa.Table.from_batches(replayed_fetches(reads, LIMITS)).to_pylist()
    packed = replay_fetches(reads, lanes, "run", Others(LIMITS, room_for, response_events))
    of_memory = [batch for batch in packed if batch["table"][0].as_py() == MEMORY_EVENTS.name]
    assert len({row["lane"] for row in alone}) == len(LIMITS.names)
    assert [row for batch in unpack(of_memory) for row in batch.to_pylist()] == alone
