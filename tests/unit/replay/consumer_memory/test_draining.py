"""The next fetch of a partition shows when its records were drained, and what was fetched is added up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schemas.tables.event_kinds import MemoryEvent
from schemas.tables.memory_reasons import DRAINED
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.consumer_memory.draining import (
    LEAST_RECORD_OVERHEAD,
    ClientFetches,
    follow_fetch_events,
    no_fetches,
    with_units,
)
from udfs.replay.consumer_memory.events import EXCHANGE, PARTITION_EVENT
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

WORDS = ("agreed", *DRAINED.words)
Event = dict[str, Any]


def fetch(exchange: int, offset: int, returned: int, **more: Any) -> Event:
    """A fetch names a partition, and its response has this many bytes of it."""
    return {
        "kind": MemoryEvent.PARTITION,
        "exchange": exchange,
        "fetch_offset": offset,
        "returned_bytes": returned,
    } | more


def batch(exchange: int, end: int, **more: Any) -> Event:
    """A response has a whole batch up to this offset."""
    return {"kind": MemoryEvent.BATCH, "exchange": exchange, "end_offset": end} | more


def taken_over(at: int, lost_at: int) -> Event:
    return {"kind": MemoryEvent.TAKEN_OVER, "time": at, "lost_at": lost_at}


def exchanges(*connection: int) -> Records:
    """Fetches, one every 10 us."""
    n = len(connection)
    return new_records(
        EXCHANGE, n, connection=connection, requested_at=[10 * number for number in range(n)], drained_at=ALWAYS,
        lost_at=ALWAYS, taken_over_at=ALWAYS,
    )  # fmt: skip


def followed(own: Records, *events: Event, units: int = 1) -> ClientFetches:
    """What these events show. Events count in the window unless they say otherwise."""
    filled = [
        {"counts": 1, "fetch_offset": NONE, "end_offset": NONE, "cut_end_offset": NONE, "uncompressed_bytes": NONE}
        | event
        for event in events
    ]
    columns = {name: [event.get(name, 0) for event in filled] for name in PARTITION_EVENT.names or ()}
    return follow_fetch_events(
        new_records(PARTITION_EVENT, len(events), **columns), own, with_units(no_fetches(), units)
    )


def verdicts(found: ClientFetches, unit: int = 0) -> dict[str, int]:
    return {word: count for word, count in zip(WORDS, found.verdicts[unit].tolist(), strict=True) if count}


@pytest.mark.parametrize(
    ("end", "cut_end", "offset", "connection", "verdict"),
    [
        (10, NONE, 10, 1, "agreed"),
        (10, NONE, 10, 2, "agreed"),
        (10, 20, 11, 1, "agreed"),
        (10, 20, 19, 1, "agreed"),
        (10, 20, 20, 1, DRAINED.fetched_beyond_end),
        (10, NONE, 11, 1, DRAINED.fetched_beyond_end),
        (10, 20, 9, 1, DRAINED.fetched_before_end),
        (10, 20, 9, 2, DRAINED.another_connection),
        (NONE, 20, 10, 1, DRAINED.offsets_unknown),
    ],
)
def test_a_fetch_goes_on_behind_the_last_whole_batch_or_within_the_one_that_was_cut(
    end: int, cut_end: int, offset: int, connection: int, verdict: str
) -> None:
    own = exchanges(1, connection)
    found = followed(own, fetch(0, 0, 100), batch(0, end, cut_end_offset=cut_end), fetch(1, offset, 0))
    assert verdicts(found) == {verdict: 1}
    assert (own["drained_at"].tolist(), own["undrained"].tolist()) == ([10, ALWAYS], [0, 0])
    assert found.known_partitions["holder"].tolist() == [NONE]


def test_a_response_is_drained_when_the_last_of_its_partitions_is_fetched_again() -> None:
    own = exchanges(1, 1, 1)
    of_other = {"partition_key": 7}
    found = followed(
        own, fetch(0, 0, 100), batch(0, 5), fetch(0, 0, 50) | of_other, batch(0, 3) | of_other,
        fetch(1, 5, 30), batch(1, 6), batch(1, 9), fetch(2, 3, 0) | of_other,
    )  # fmt: skip
    assert own[["asked", "partitions", "record_bytes", "undrained", "drained_at"]].tolist() == [
        (2, 2, 150, 0, 20), (1, 1, 30, 1, ALWAYS), (1, 0, 0, 0, ALWAYS),
    ]  # fmt: skip
    assert verdicts(found) == {"agreed": 2}
    assert found.known_partitions[["holder", "end_offset"]].tolist() == [(1, 9), (NONE, 3)]


def test_a_partition_that_a_request_does_not_want_drains_nothing_but_may_bring_records() -> None:
    own = exchanges(1, 1)
    found = followed(own, fetch(0, 0, 100), batch(0, 5), fetch(1, NONE, 40))
    assert (verdicts(found), own["asked"].tolist(), own["undrained"].tolist()) == ({}, [1, 0], [1, 1])
    assert found.known_partitions["holder"].tolist() == [1]


def test_records_are_lost_if_another_member_has_fetched_the_partition_unless_the_offset_fits() -> None:
    for offset, verdict, drained_at, lost_at, taken_over_at in (
        (9, "taken_over", ALWAYS, 3, 5),
        (5, "agreed", 10, ALWAYS, ALWAYS),
    ):
        own = exchanges(1, 1)
        found = followed(own, fetch(0, 0, 100), batch(0, 5), taken_over(5, 3), taken_over(7, 6), fetch(1, offset, 0))
        assert verdicts(found) == {verdict: 1}
        assert own[["drained_at", "lost_at", "taken_over_at"]][0].tolist() == (drained_at, lost_at, taken_over_at)


def test_a_takeover_before_the_records_came_does_not_count() -> None:
    own = exchanges(1, 1)
    found = followed(own, taken_over(5, 3), fetch(0, 0, 100), batch(0, 5), fetch(1, 9, 0))
    assert verdicts(found) == {DRAINED.fetched_beyond_end: 1}
    assert found.known_partitions["taken_over_at"].tolist() == [NEVER]


def test_the_bytes_of_values_are_those_of_whole_batches_without_headers_of_batches_and_records() -> None:
    own, header = exchanges(1), RECORD_BATCH_OVERHEAD + 2 * LEAST_RECORD_OVERHEAD
    compressed = {"is_compressed": 1, "records": 2}
    found = followed(
        own, fetch(0, 0, 900), batch(0, 2, size=header + 100, records=2),
        batch(0, 4, size=90, uncompressed_bytes=header + 1000, **compressed),
        batch(0, 6, size=header - 1, records=2), batch(0, 8, size=50, **compressed),
        batch(0, NONE, size=500, cut_end_offset=20, **compressed),
        batch(0, NONE, size=70, uncompressed_bytes=99, **compressed, counts=0),
    )  # fmt: skip
    assert own[["records", "value_bytes", "unmeasured"]].tolist() == [(12, 1100, 1)]
    sums = ("compressed_batches", "unmeasured_batches", "bytes_saved")
    assert [found.fetched[name][0] for name in sums] == [3, 2, header + 1000 - 90]
    assert found.known_partitions[["end_offset", "cut_end_offset"]].tolist() == [(8, 20)]


def test_batches_of_a_response_that_no_longer_holds_the_partition_do_not_move_its_end() -> None:
    own = exchanges(1, 1)
    found = followed(own, fetch(0, 0, 100), fetch(1, 0, 50), batch(0, 30), batch(1, 5))
    assert found.known_partitions[["holder", "end_offset"]].tolist() == [(1, 5)]


def test_what_a_client_fetched_in_the_window_is_added_up_by_client() -> None:
    own = exchanges(1, 1, 1, 2)
    other, outside = {"unit": 1}, {"counts": 0}
    found = followed(
        own, fetch(0, 0, 100, partition_key=1, broker_key=1, partition_max_bytes=500),
        fetch(0, 0, 10, partition_key=2, broker_key=1, partition_max_bytes=400),
        fetch(1, 0, 30, partition_key=1, broker_key=2, partition_max_bytes=300),
        fetch(2, 0, 7, partition_key=9, broker_key=9, partition_max_bytes=900) | outside,
        fetch(3, 0, 1, partition_key=1, broker_key=1, partition_max_bytes=2) | other, units=2,
    )  # fmt: skip
    names = ["brokers", "partitions", "record_bytes", "partition_max_bytes"]
    assert found.fetched[names].tolist() == [(2, 2, 140, 500), (1, 1, 1, 2)]
    assert len(found.known_partitions) == 4
    assert (verdicts(found), verdicts(found, 1)) == ({DRAINED.offsets_unknown: 1}, {})


def test_a_partition_counts_from_its_first_event_in_the_window_on() -> None:
    own = exchanges(1, 1)
    found = followed(own, fetch(0, 0, 10, counts=0), batch(0, 5, counts=0), fetch(1, 5, 20), fetch(1, 5, 20))
    assert found.fetched["partitions"].tolist() == [1]
    assert verdicts(found) == {"agreed": 1, DRAINED.offsets_unknown: 1}


def test_fetches_that_go_on_in_the_next_batch_of_rows_drain_what_came_before() -> None:
    own = exchanges(1, 1)
    first = followed(own, fetch(0, 0, 100), batch(0, 5))
    again = new_records(
        PARTITION_EVENT, 1, kind=MemoryEvent.PARTITION, exchange=1, fetch_offset=5, counts=1, end_offset=NONE
    )
    assert verdicts(follow_fetch_events(again, own, first)) == {"agreed": 1}
    assert np.array_equal(own["undrained"], [0, 0])
