"""The verdict on a captured fetch: it agrees, it cannot be checked, or it disagrees, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.fetch_read import Lanes, Reads
from udfs.replay.fetch_max_bytes.fidelity import AGREED, CODES, NO_RECORDS_KNOWN, UNKNOWN, Known, Reason, judge
from udfs.replay.shared.lanes import AS_CAPTURED

CAPTURED = Lanes(*(np.array([value], np.int64) for value in (AS_CAPTURED, AS_CAPTURED, 1 << 30, 0)))
MOST = 1 << 20


def read(returned: int, sizes: tuple[int, ...] = (100, 100), **differs: Any) -> dict[str, Any]:
    """One read of which all is known; `there` is what was available, at least and at most, in bytes."""
    low, high = differs.pop("there", (sum(sizes), sum(sizes)))
    known = {
        "refused": False,
        "throttled": False,
        "session_known": True,
        "redirected": False,
        "bound_known": True,
        "log_known": True,
        "converted": False,
        "compacted": False,
        "truncated": False,
        "ends_perhaps": False,
        "available_low": low,
        "available_high": high,
        "first_append": NEVER,
        "available_first": low,
        "returned": returned,
    }
    limits = {"max_bytes": differs.pop("max_bytes", MOST), "partition_max_bytes": MOST}
    return known | {"sizes": sizes, "limits": limits} | differs


def verdicts(*fetches: list[dict[str, Any]]) -> list[str]:
    """The reason by fetch, "agreed" where there is none."""
    rows = [row for fetch in fetches for row in fetch]
    counts = np.array([len(row["sizes"]) for row in rows], np.int64)
    ends = np.cumsum(counts)

    def limit(name: str) -> np.ndarray:
        return np.array([row["limits"][name] for row in rows], np.int64)

    reads = Reads(
        limit("max_bytes"),
        limit("partition_max_bytes"),
        np.array([row["available_high"] for row in rows], np.int64),
        np.array([row["log_known"] for row in rows], np.int64),
        np.zeros(len(rows), np.int64),
        ends - counts,
        ends,
        np.array([size for row in rows for size in row["sizes"]], np.int64),
    )
    flags = Known._fields[:7]
    known = Known._make(
        np.array([row[name] for row in rows], np.bool_ if name in flags else np.int64) for name in Known._fields
    )
    lengths = [len(fetch) for fetch in fetches]
    codes = judge(
        reads,
        known,
        np.repeat(np.arange(len(fetches)), lengths),
        np.concatenate([[0], np.cumsum(lengths)]),
        CAPTURED,
        NEVER,
    )
    names = {AGREED: "agreed"} | {code: reason.value for reason, code in CODES.items()}
    return [names[int(code)] for code in codes]


def verdict(*reads: dict[str, Any]) -> str:
    (found,) = verdicts(list(reads))
    return found


def test_a_fetch_whose_partitions_all_returned_what_the_replay_says_agrees() -> None:
    assert verdict(read(200), read(0, ()), read(200)) == "agreed"


def test_one_partition_that_differs_makes_the_fetch_differ() -> None:
    assert verdict(read(200), read(100)) == Reason.FEWER_BYTES
    assert verdict(read(200), read(201)) == Reason.MORE_BYTES
    assert verdict(read(201), read(100)) == Reason.FEWER_BYTES


@pytest.mark.parametrize(
    ("differs", "reason"),
    [
        ({"refused": True}, Reason.RESPONSE_ERROR),
        ({"throttled": True}, Reason.THROTTLED),
        ({"session_known": False}, Reason.SESSION_UNKNOWN),
        ({"bound_known": False}, Reason.BOUND_UNKNOWN),
    ],
)
@pytest.mark.parametrize("returned", [200, 0])
def test_what_the_capture_does_not_tell_makes_a_fetch_unknown(
    differs: dict[str, Any], reason: Reason, returned: int
) -> None:
    assert verdict(read(returned, **differs)) == reason


def test_a_fetch_without_response_is_unknown() -> None:
    assert verdict(read(NO_RECORDS_KNOWN)) == Reason.NO_RESPONSE


def test_a_partition_that_was_refused_or_redirected_is_unknown_unless_it_agrees_all_the_same() -> None:
    assert verdict(read(0, redirected=True)) == Reason.PARTITION_REFUSED
    assert verdict(read(200, redirected=True)) == "agreed"
    assert verdict(read(0, (), redirected=True), read(200)) == "agreed"


def test_an_answer_in_another_format_than_the_logs_is_unknown_unless_it_agrees_all_the_same() -> None:
    assert verdict(read(250, converted=True)) == Reason.CONVERTED
    assert verdict(read(0, (), converted=True)) == "agreed"


def test_batches_that_are_not_in_the_capture_matter_only_where_they_could_be_returned() -> None:
    assert verdict(read(200, log_known=False)) == Reason.LOG_UNKNOWN
    assert verdict(read(150, log_known=False, max_bytes=150)) == "agreed"


def test_an_append_that_overlaps_the_read_leaves_open_which_came_first() -> None:
    either: dict[str, Any] = {"there": (100, 200), "first_append": 5, "available_first": 200}
    assert verdict(read(200, **either)) == Reason.APPEND_ORDER
    assert verdict(read(100, **either)) == Reason.APPEND_ORDER
    assert verdict(read(90, **either)) == Reason.FEWER_BYTES
    assert verdict(read(210, **either)) == Reason.MORE_BYTES


def test_an_append_that_no_produce_request_shows_has_no_time() -> None:
    either: dict[str, Any] = {"there": (100, 200), "first_append": ALWAYS, "available_first": 200}
    assert verdict(read(100, **either)) == Reason.APPEND_TIME_UNKNOWN


def test_a_fetch_that_returned_records_found_the_first_append_that_woke_it() -> None:
    """Nothing was surely there, so the fetch was parked until the one append that could have come."""
    woken = read(100, (100,), there=(0, 100), first_append=5, available_first=100)
    assert verdict(woken, read(0, ())) == "agreed"
    assert verdict(woken | {"returned": 90}, read(0, ())) == Reason.FEWER_BYTES


def test_of_two_appends_either_may_have_woken_a_fetch() -> None:
    first = read(100, (100,), there=(0, 100), first_append=5, available_first=100)
    second = read(0, (100,), there=(0, 100), first_append=6, available_first=100)
    assert verdict(first, second) == Reason.APPEND_ORDER
    assert verdict(first | {"returned": 0}, second | {"returned": 100}) == Reason.APPEND_ORDER


def test_a_fetch_that_returned_nothing_may_have_ended_before_the_append() -> None:
    assert verdict(read(0, (100,), there=(0, 100), first_append=5, available_first=100)) == Reason.APPEND_ORDER


def test_uncertainty_that_changes_no_answer_is_none() -> None:
    assert verdict(read(100, there=(150, 200), first_append=5, available_first=200, max_bytes=100)) == "agreed"


def test_a_read_of_a_compacted_log_is_unknown_unless_it_agrees_all_the_same() -> None:
    assert verdict(read(150, compacted=True)) == Reason.COMPACTED
    assert verdict(read(200, compacted=True)) == "agreed"


def test_a_read_that_may_have_met_what_was_truncated_is_unknown_unless_it_agrees_all_the_same() -> None:
    assert verdict(read(150, truncated=True)) == Reason.TRUNCATED
    assert verdict(read(200, truncated=True)) == "agreed"


def test_a_read_of_a_compacted_log_that_an_append_explains_is_not_put_down_to_compaction() -> None:
    either: dict[str, Any] = {"there": (100, 200), "first_append": 5, "available_first": 200}
    assert verdict(read(100, compacted=True, **either)) == Reason.APPEND_ORDER
    assert verdict(read(90, compacted=True, **either)) == Reason.COMPACTED


def test_each_fetch_is_judged_by_itself() -> None:
    assert verdicts([read(200)], [read(0)], [read(200, refused=True), read(200)], [read(200)]) == [
        "agreed",
        Reason.FEWER_BYTES,
        Reason.RESPONSE_ERROR,
        "agreed",
    ]


def test_the_reason_named_is_the_first_that_applies() -> None:
    flags: dict[str, Any] = {
        "refused": True,
        "throttled": True,
        "redirected": True,
        "converted": True,
        "compacted": True,
        "truncated": True,
    }
    everything = read(0, session_known=False, bound_known=False, log_known=False, **flags)
    order = [
        ("refused", False),
        ("throttled", False),
        ("session_known", True),
        ("redirected", False),
        ("converted", False),
        ("compacted", False),
        ("truncated", False),
        ("bound_known", True),
    ]
    found = []
    for name, good in order:
        found.append(verdict(everything))
        everything[name] = good
    found.append(verdict(everything))
    assert found == list(UNKNOWN[1:10])
