"""The verdict on a captured fetch: it agrees, it cannot be checked, or it disagrees, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schemas.tables.fetch_reasons import OPEN_FETCHES
from schemas.tables.values import CONSUMER, FOLLOWER
from tests.unit.replay.fetch_max_bytes.captured_reader import limits_of
from udfs.columns.arrays import stretch_edges
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.events import Reads
from udfs.replay.fetch_max_bytes.fidelity import ShownOfFetches, judge_fetches, lowest_available
from udfs.replay.fetch_max_bytes.state import READ
from udfs.replay.shared.fidelity_rows import AGREED
from udfs.replay.shared.lanes import AS_CAPTURED

R = OPEN_FETCHES
CAPTURED = limits_of(AS_CAPTURED)
MOST = 1 << 20


def read(returned: int, sizes: tuple[int, ...] = (100, 100), **differs: Any) -> dict[str, Any]:
    """One read with everything known. there: how many bytes were available, at least and at most."""
    low, high = differs.pop("there", (sum(sizes), sum(sizes)))
    return {
        "returned_bytes": returned, "readable_known": True, "bound_known": True, "log_known": True, "api_version": 12,
        "available_low": low, "available_high": high, "first_append": NEVER, "available_first": low,
        "max_bytes": MOST, "partition_max_bytes": MOST, "sizes": sizes,
    } | differs  # fmt: skip


def judged(*fetches: list[dict[str, Any]], reader: str = CONSUMER) -> ShownOfFetches:
    """What the capture shows of the fetches."""
    rows = [row for fetch in fetches for row in fetch]
    ends = stretch_edges([len(row["sizes"]) for row in rows])
    reads = new_records(READ, len(rows), first_size=ends[:-1], end_size=ends[1:])
    for i, row in enumerate(rows):
        for name in row.keys() - {"sizes"}:
            reads[name][i] = row[name]
    sizes = np.array([size for row in rows for size in row["sizes"]], np.int64)
    return judge_fetches(Reads(reads, stretch_edges([len(fetch) for fetch in fetches]), sizes), CAPTURED, reader)


def verdicts(*fetches: list[dict[str, Any]], reader: str = CONSUMER) -> list[str]:
    """The reason for each fetch, or "agreed"."""
    names = {AGREED: "agreed"} | {code: word for word, code in OPEN_FETCHES.codes.items()}
    return [names[int(code)] for code in judged(*fetches, reader=reader).verdicts]


def verdict(*reads: dict[str, Any], reader: str = CONSUMER) -> str:
    (found,) = verdicts(list(reads), reader=reader)
    return found


@pytest.mark.parametrize(
    ("reads", "reason"),
    [
        ([read(0), read(200)], R.replication_throttled),
        ([read(0), read(0)], R.replication_throttled),
        ([read(200), read(0), read(200), read(0)], R.replication_throttled),
        ([read(200), read(0)], R.fewer_bytes),
        ([read(0), read(100)], R.fewer_bytes),
        ([read(0, there=(0, 200)), read(200)], R.append_read_order),
    ],
)
def test_a_follower_s_empty_partition_that_no_limit_explains_was_throttled_by_the_leader(
    reads: list[dict[str, Any]], reason: str
) -> None:
    """A limit leaves partitions empty only at the end of a response, and never all of them (KIP-73, KIP-74)."""
    assert verdict(*reads, reader=FOLLOWER) == reason
    assert verdict(*reads) == (R.fewer_bytes if reason == R.replication_throttled else reason)


@pytest.mark.parametrize(
    ("reads", "available"),
    [
        ([read(0, there=(0, 200)), read(100, there=(0, 200))], [0, 100]),
        ([read(100, there=(100, 200), partition_max_bytes=100)], [200]),
        ([read(100, max_bytes=150), read(0, there=(0, 200), max_bytes=150)], [200, 200]),
        ([read(100, (100,), max_bytes=200), read(0, there=(0, 200), max_bytes=200)], [100, 0]),
        ([read(0, there=(100, 200)), read(0, there=(0, 200))], [200, 200]),
        ([read(0, there=(0, 200), log_known=False)], [200]),
    ],
    ids=["not yet there", "at its limit", "does not fit", "would fit", "not explained", "not known"],
)
def test_a_read_that_no_limit_ended_shows_how_much_was_there(reads: list[dict[str, Any]], available: list[int]) -> None:
    """Otherwise there may have been as much as had been sent by then."""
    assert judged(reads, reader=FOLLOWER).available.tolist() == available


def test_a_fetch_whose_partitions_all_returned_what_the_replay_says_agrees() -> None:
    assert verdict(read(200), read(0, ()), read(200)) == "agreed"


def test_one_partition_that_differs_makes_the_fetch_differ() -> None:
    assert verdict(read(200), read(100)) == R.fewer_bytes
    assert verdict(read(200), read(201)) == R.more_bytes
    assert verdict(read(201), read(100)) == R.fewer_bytes


@pytest.mark.parametrize(
    ("differs", "reason"),
    [
        ({"refused": True}, R.response_error),
        ({"throttled": True}, R.throttled),
        ({"readable_known": False}, R.session_unknown),
        ({"bound_known": False}, R.high_watermark_unknown),
    ],
)
@pytest.mark.parametrize("returned", [200, 0])
def test_a_fact_that_the_capture_does_not_show_makes_a_fetch_unknown(
    differs: dict[str, Any], reason: str, returned: int
) -> None:
    assert verdict(read(returned, **differs)) == reason


def test_a_fetch_without_response_is_unknown() -> None:
    assert verdict(read(NONE)) == R.no_response


def test_a_partition_that_was_refused_or_redirected_is_unknown_unless_it_agrees() -> None:
    assert verdict(read(0, redirected=True)) == R.partition_refused
    assert verdict(read(200, redirected=True)) == "agreed"
    assert verdict(read(0, (), redirected=True), read(200)) == "agreed"


def test_a_fetch_with_a_partition_that_was_sent_to_another_replica_is_unknown_unless_it_agrees() -> None:
    sent = read(0, (), redirected=True, sent_to_replica=True)
    assert verdict(sent, read(200)) == "agreed"
    assert verdict(sent, read(100)) == R.sent_to_replica
    assert verdict(sent, read(100, redirected=True)) == R.partition_refused


def test_an_answer_in_another_format_than_the_logs_is_unknown_unless_it_agrees() -> None:
    assert verdict(read(250, is_converted=True)) == R.converted_format
    assert verdict(read(0, (), is_converted=True)) == "agreed"


def test_batches_that_are_not_in_the_capture_matter_only_where_they_could_be_returned() -> None:
    assert verdict(read(200, log_known=False)) == R.log_content_unknown
    assert verdict(read(150, log_known=False, max_bytes=150)) == "agreed"


def test_an_append_that_overlaps_the_read_leaves_open_which_came_first() -> None:
    either: dict[str, Any] = {"there": (100, 200), "first_append": 5, "available_first": 200}
    assert verdict(read(200, **either)) == R.append_read_order
    assert verdict(read(100, **either)) == R.append_read_order
    assert verdict(read(90, **either)) == R.fewer_bytes
    assert verdict(read(210, **either)) == R.more_bytes


def test_an_append_that_no_produce_request_shows_has_no_time() -> None:
    either: dict[str, Any] = {"there": (100, 200), "first_append": ALWAYS, "available_first": 200}
    assert verdict(read(100, **either)) == R.append_time_unknown


def test_the_only_possible_append_woke_a_fetch_that_returned_records() -> None:
    """Nothing was there for certain, so the fetch was parked until the only append that could have come."""
    woken = read(100, (100,), there=(0, 100), first_append=5, available_first=100)
    assert verdict(woken, read(0, ())) == "agreed"
    assert verdict(woken | {"returned_bytes": 90}, read(0, ())) == R.fewer_bytes


def test_of_two_appends_either_may_have_woken_a_fetch() -> None:
    first = read(100, (100,), there=(0, 100), first_append=5, available_first=100)
    second = read(0, (100,), there=(0, 100), first_append=6, available_first=100)
    assert verdict(first, second) == R.append_read_order
    assert verdict(first | {"returned_bytes": 0}, second | {"returned_bytes": 100}) == R.append_read_order


def test_a_fetch_that_returned_nothing_may_have_ended_before_the_append() -> None:
    assert verdict(read(0, (100,), there=(0, 100), first_append=5, available_first=100)) == R.append_read_order


def test_uncertainty_that_changes_no_answer_does_not_count() -> None:
    assert verdict(read(100, there=(150, 200), first_append=5, available_first=200, max_bytes=100)) == "agreed"


def test_a_read_of_a_compacted_log_is_unknown_unless_it_agrees() -> None:
    assert verdict(read(150, is_compacted=True)) == R.compacted
    assert verdict(read(200, is_compacted=True)) == "agreed"


def test_a_read_that_may_be_remote_is_unknown_unless_it_agrees() -> None:
    assert verdict(read(150, may_be_remote=True)) == R.remote_read
    assert verdict(read(200, may_be_remote=True)) == "agreed"
    assert verdict(read(0, may_be_remote=True), read(200)) == R.remote_read


def test_a_followers_error_for_records_in_remote_storage_is_told_apart_from_other_errors() -> None:
    moved = read(0, redirected=True, may_be_remote=True)
    assert verdict(moved, reader=FOLLOWER) == R.remote_read
    assert verdict(moved, read(0, redirected=True), reader=FOLLOWER) == R.remote_read
    assert verdict(read(0, redirected=True), reader=FOLLOWER) == R.partition_refused


def test_a_read_that_may_have_found_truncated_records_is_unknown_unless_it_agrees() -> None:
    assert verdict(read(150, is_truncated=True)) == R.truncated
    assert verdict(read(200, is_truncated=True)) == "agreed"


def test_a_read_of_a_compacted_log_that_an_append_explains_is_not_put_down_to_compaction() -> None:
    either: dict[str, Any] = {"there": (100, 200), "first_append": 5, "available_first": 200}
    assert verdict(read(100, is_compacted=True, **either)) == R.append_read_order
    assert verdict(read(90, is_compacted=True, **either)) == R.compacted


def test_each_fetch_is_judged_by_itself() -> None:
    assert verdicts([read(200)], [read(0)], [read(200, refused=True), read(200)], [read(200)]) == [
        "agreed",
        R.fewer_bytes,
        R.response_error,
        "agreed",
    ]


def test_the_reason_named_is_the_first_that_applies() -> None:
    flags: dict[str, Any] = {
        "refused": True,
        "throttled": True,
        "redirected": True,
        "is_converted": True,
        "is_compacted": True,
        "is_truncated": True,
    }
    everything = read(0, readable_known=False, bound_known=False, log_known=False, **flags)
    order = [
        ("refused", False),
        ("throttled", False),
        ("readable_known", True),
        ("redirected", False),
        ("is_converted", False),
        ("is_compacted", False),
        ("is_truncated", False),
        ("bound_known", True),
    ]
    found = []
    for name, good in order:
        found.append(verdict(everything))
        everything[name] = good
    found.append(verdict(everything))
    assert found == [
        R.response_error, R.throttled, R.session_unknown, R.partition_refused, R.converted_format, R.compacted,
        R.truncated, R.high_watermark_unknown, R.log_content_unknown,
    ]  # fmt: skip


def lowest(first_append: list[int], returned: list[int]) -> list[int]:
    """The fewest bytes that each partition of one fetch can have had. Each may have had none or 10 bytes."""
    n, none = len(returned), np.zeros(len(returned), np.int64)
    reads = new_records(
        READ, n, available_high=10, available_first=10, first_append=first_append, returned_bytes=returned
    )
    return lowest_available(reads, none, none).tolist()


def test_the_one_partition_that_may_have_had_records_woke_the_fetch() -> None:
    assert lowest([NEVER, 5], [0, 10]) == [0, 10]


def test_between_several_partitions_it_is_not_known_which_woke_the_fetch() -> None:
    """The times of appends are the earliest possible ones, so the append with the earlier time may have come later."""
    assert lowest([3, 5], [0, 10]) == [0, 0]


def test_a_fetch_that_returned_nothing_was_not_woken() -> None:
    assert lowest([NEVER, 5], [0, 0]) == [0, 0]
