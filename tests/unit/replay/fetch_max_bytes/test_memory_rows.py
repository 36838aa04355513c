"""Consumers' responses under other fetch limits, which the replay of memory takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from schemas.tables.steps_memory import MEMORY_EVENTS
from schemas.tables.values import CONSUMER
from tests.packed import unpack
from tests.unit.replay.fetch_max_bytes.captured_reader import READER, SIZE, batch_rows, catch_up, lanes_of, reads_of
from udfs.facts.arrow_tables import unpack_rows
from udfs.replay.fetch_max_bytes.closed_loop import memory_rows
from udfs.replay.fetch_max_bytes.replay import replay_fetches, replay_responses
from udfs.replay.fetch_max_bytes.settings import SHUFFLED_ORDER, FetchLanes, Reader
from udfs.replay.shared.lanes import AS_CAPTURED

LIMITS = lanes_of(AS_CAPTURED, SIZE, 10 * SIZE)


def events(reads: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return pa.Table.from_batches(replay_responses(reads, LIMITS)).to_pylist()


def events_beside_fetches(reads: list[pa.RecordBatch], lanes: FetchLanes, limits: FetchLanes) -> list[dict[str, Any]]:
    """The events under these limits, made beside a replay of fetches in other lanes."""
    packed = replay_fetches(reads, lanes, "run", limits)
    of_memory = [batch for batch in packed if batch["table"][0].as_py() == MEMORY_EVENTS.name]
    return [row for batch in unpack(of_memory) for row in batch.to_pylist()]


def responses(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The responses of all rows, in order."""
    streams = (pa.scalar(row["responses"], pa.binary()) for row in rows if row["responses"])
    return [response for stream in streams for part in unpack_rows(stream) for response in part.to_pylist()]


def test_responses_are_the_same_however_many_are_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = reads_of(batch_rows() + catch_up(reconnects=8), 10_000).to_batches()
    together = events(reads)
    monkeypatch.setattr(memory_rows, "RESPONSES_A_ROW", 2)
    apart = events(reads)
    assert len(apart) > len(together)
    assert responses(apart) == responses(together)
    in_order = [(row["lane"], row["time"], row["exchange_no"]) for row in apart if row["responses"]]
    assert in_order == sorted(in_order)


def test_lanes_that_shuffle_are_equal_only_if_their_names_are() -> None:
    clients, reader = LIMITS.consumer_client.copy(), Reader("app", "10.0.0.1", CONSUMER)
    clients["order"] = SHUFFLED_ORDER
    shuffled = replace(LIMITS, consumer_client=clients)
    named = [replace(lanes, names=("a", "b", "c")) for lanes in (LIMITS, shuffled)]
    assert LIMITS.equals(named[0], reader)
    assert not shuffled.equals(named[1], reader)
    assert not LIMITS.equals(named[1], reader)


def test_lost_fetches_are_why_a_closed_loop_is_unchecked_beside_a_replay_of_fetches_and_alone() -> None:
    rest = [row for row in [*batch_rows(), *catch_up()] if row.get("exchange_no") not in range(2, 6)]
    limits, reads = replace(LIMITS, lossy=frozenset({READER["connection_id"]})), reads_of(rest, 10_000).to_batches()
    alone = pa.Table.from_batches(replay_responses(reads, limits)).to_pylist()
    assert {row["unchecked"] for row in alone if row["responses"]} == {"fetches_lost"}
    assert events_beside_fetches(reads, limits, limits) == alone


@pytest.mark.parametrize("most", [1, 7, 10_000])
@pytest.mark.parametrize("lanes", [lanes_of(AS_CAPTURED, 3 * SIZE), LIMITS], ids=["others", "same"])
def test_responses_are_the_same_with_a_replay_of_fetches_in_any_lanes_and_without(lanes: FetchLanes, most: int) -> None:
    reads = reads_of(batch_rows() + catch_up(reconnects=8), most).to_batches(max_chunksize=most)
    alone = events(reads)
    assert len({row["lane"] for row in alone}) == len(LIMITS.names)
    assert events_beside_fetches(reads, lanes, LIMITS) == alone
