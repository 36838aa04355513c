"""A compacted log is put together from how its batches were shown from time to time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS
from udfs.replay.fetch_max_bytes.partition_log.events import LOG_EVENT
from udfs.replay.fetch_max_bytes.partition_log.log import PartitionLog, build_log
from udfs.replay.fetch_max_bytes.partition_log.rows import MOST_VERSIONS, reads_by_version
from udfs.replay.fetch_max_bytes.partition_log.versions import (
    Versions,
    joined_over_holes,
    log_after,
    passed_at,
    places_after,
    shown_holes,
    versions_of,
)

PRODUCED = [(0, 100), (10, 100), (20, 100), (30, 100)]
Sizes = Sequence[tuple[int, int]]
"""Base offsets of batches of ten offsets, and their sizes."""


def fetched(time: int, sizes: Sizes, exchange: int, records: int = NONE) -> Records:
    """The batches of a response. Those with fewer than 100 bytes lack records."""
    base, size = np.array(sizes, np.int64).T
    rows = new_records(LOG_EVENT, len(base), position=base, last_offset=base + 9, size_bytes=size, records=records)
    rows["append_after"], rows["append_before"], rows["exchange_no"] = ALWAYS, time, exchange
    rows["is_sparse"], rows["leader_epoch"] = size < 100, NONE
    return rows


def asked(exchange: int, offset: int) -> Records:
    """The fetch of a response, as a witness."""
    return new_records(LOG_EVENT, 1, exchange_no=exchange, fetch_offset=offset, returned_bytes=1, readable_known=True)


def produced(sizes: Sizes = PRODUCED) -> Records:
    rows = fetched(1, sizes, 0)
    rows["append_after"], rows["connection_id"] = 0, 1
    return rows


def versions(*batches: Records, witnesses: Sequence[Records] = ()) -> tuple[PartitionLog, Versions]:
    every, none = np.concatenate(batches), np.zeros(0, LOG_EVENT)
    log = build_log(every, none)
    return log, versions_of(log, every, shown_holes(every, np.concatenate([none, *witnesses])))


def changes_of(found: Versions) -> list[tuple[int, int, int]]:
    return [(row["batch"], row["time"], row["size"]) for row in found.changes]


def test_a_batch_changes_halfway_between_the_responses_that_show_the_change() -> None:
    _, found = versions(
        produced(), fetched(100, PRODUCED, 1), fetched(200, [(0, 60), (10, 100)], 2), fetched(300, [(0, 60)], 3)
    )
    assert found.first["size"].tolist() == [100] * 4
    assert changes_of(found) == [(0, 150, 60)]


def test_offsets_that_a_response_leaves_out_are_of_batches_that_were_gone() -> None:
    """Between two batches, or between the fetch offset and the first batch; not after the last one."""
    _, found = versions(produced(), fetched(101, [(0, 60), (20, 100)], 1))
    assert changes_of(found) == [(0, 51, 60), (1, 51, 0)]
    at_gone, within = ([asked(1, offset)] for offset in (5, 25))
    assert changes_of(versions(produced(), fetched(101, [(20, 100)], 1), witnesses=at_gone)[1]) == [
        (0, 51, 0), (1, 51, 0),
    ]  # fmt: skip
    assert changes_of(versions(produced(), fetched(101, [(20, 100)], 1), witnesses=within)[1]) == []
    unknown = asked(1, 5)
    unknown["readable_known"] = False
    assert changes_of(versions(produced(), fetched(101, [(20, 100)], 1), witnesses=[unknown])[1]) == []


def test_the_size_that_a_broker_recompressed_is_no_change() -> None:
    larger = [(base, 150) for base, _ in PRODUCED]
    _, found = versions(produced(), fetched(100, larger, 1), fetched(200, [(0, 60)], 2))
    assert found.first["size"].tolist() == [150] * 4
    assert changes_of(found) == [(0, 150, 60)]


def test_a_batch_that_is_gone_has_its_offsets_in_the_next_one() -> None:
    log, found = versions(produced(), fetched(101, [(0, 60), (30, 40)], 1, records=3))
    none, every = np.zeros(len(found.changes), np.bool_), np.ones(len(found.changes), np.bool_)
    before, after = log_after(log, found, none), log_after(log, found, every)
    assert (before.base.tolist(), before.size.tolist()) == ([0, 10, 20, 30], [100] * 4)
    assert (after.base.tolist(), after.last.tolist(), after.size.tolist()) == ([0, 10], [9, 39], [60, 40])
    assert (after.starts.tolist(), after.run_end.tolist(), after.records.tolist()) == ([0, 60, 100], [2, 2], [3, 3])
    assert places_after(found, every, np.arange(5)).tolist() == [0, 1, 1, 1, 2]
    assert places_after(found, none, np.arange(5)).tolist() == [0, 1, 2, 3, 4]


def test_a_batch_behind_offsets_that_the_capture_does_not_show_keeps_its_own() -> None:
    log, found = versions(produced([PRODUCED[0], PRODUCED[2], PRODUCED[3]]), fetched(101, [(0, 60), (30, 40)], 1))
    after = log_after(log, found, np.ones(len(found.changes), np.bool_))
    assert (after.base.tolist(), after.run_end.tolist()) == ([0, 20], [1, 2])


def test_offsets_of_holes_that_no_known_batch_has_are_those_of_the_next_batch() -> None:
    """Their batches were gone before the capture began. That at 50 was there before the first response."""
    first, second = fetched(50, [(30, 100), (70, 60)], 1), fetched(60, [(90, 60)], 2)
    every = np.concatenate([produced([(30, 100), (50, 100), (90, 100)]), first, second])
    log = build_log(every, np.zeros(0, LOG_EVENT))
    joined = joined_over_holes(log, shown_holes(every, np.concatenate([asked(1, 3), asked(2, 85)])))
    assert log.base.tolist() == [30, 50, 70, 90]
    assert (joined.base.tolist(), joined.run_end.tolist()) == ([3, 40, 60, 85], [3, 3, 3, 4])


def test_a_reader_has_passed_a_batch_when_it_asks_for_a_later_offset() -> None:
    log, _ = versions(produced())
    found = passed_at(log, np.array([0, 10, 5, 31]), np.array([1, 2, 3, 4]))
    assert found[:3].tolist() == [2, 4, 4]
    assert found[3] > 1 << 60


def test_reads_of_many_versions_are_read_in_a_few() -> None:
    log, found = versions(
        produced([(10 * n, 1000) for n in range(500)]),
        *(fetched(2 * n + 3, [(10 * n, 50)], n + 1) for n in range(500)),
    )
    assert len(log.base) == len(found.changes) == 500
    reads = new_records(LOG_EVENT, 2000, response_time=np.arange(2000))
    groups = [*reads_by_version(found, reads)]
    assert len(groups) == MOST_VERSIONS
    assert sorted(row for _, rows in groups for row in rows.tolist()) == [*range(2000)]
    exact = np.searchsorted(found.changes["time"], reads["response_time"], side="right")
    early = np.concatenate([changes - exact[rows] for changes, rows in groups])
    assert (early.min(), early.max()) == (0, 500 // MOST_VERSIONS)


def test_a_read_finds_the_same_version_in_any_company() -> None:
    _, found = versions(
        produced([(10 * n, 1000) for n in range(500)]),
        *(fetched(2 * n + 3, [(10 * n, 50)], n + 1) for n in range(500)),
    )
    reads = new_records(LOG_EVENT, 2000, response_time=np.arange(2000))
    together = {row: changes for changes, rows in reads_by_version(found, reads) for row in rows.tolist()}
    for begin, end in ((0, 1), (777, 778), (300, 900)):
        some = {row + begin: c for c, rows in reads_by_version(found, reads[begin:end]) for row in rows.tolist()}
        assert some == {row: together[row] for row in range(begin, end)}
