"""A partition's log is pieced together from the batches that a capture shows, and says what was there to be read."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.partition_log.events import LOG_EVENT, NO_BOUND
from udfs.replay.fetch_max_bytes.partition_log.log import (
    DELIVERY_TIMEOUT_US,
    PartitionLog,
    build_log,
    dated_by_followers,
    dated_by_parked_fetches,
    readable_at_reads,
)

Batch = tuple[int, int, int, int, int]  # base offset, last offset, size, appended after, before


def log_of(*batches: Batch) -> PartitionLog:
    position, last, size, after, before = np.array(batches, np.int64).reshape(-1, 5).T
    rows = new_records(LOG_EVENT, len(batches), position=position, last_offset=last, size_bytes=size)
    rows["append_after"], rows["append_before"] = after, before
    return build_log(rows, np.zeros(0, LOG_EVENT))


def tens(*sizes: int, after: int = ALWAYS, before: int = NEVER) -> PartitionLog:
    """Batches of ten records, from offset 0 on."""
    return log_of(*((10 * i, 10 * i + 9, size, after, before) for i, size in enumerate(sizes)))


def read(
    log: PartitionLog,
    offset: int,
    low: int = NO_BOUND,
    high: int = NO_BOUND,
    after: int = 0,
    before: int = 0,
    returned: int = 0,
) -> dict[str, Any]:
    """What a read finds that was requested at `after` and answered at `before`, with `returned` bytes."""
    bounds = {"bound_low": low, "bound_high": high, "returned_bytes": returned}
    reads = new_records(LOG_EVENT, 1, fetch_offset=offset, request_time=after, response_time=before, **bounds)
    return {name: values[0].item() for name, values in readable_at_reads(log, reads)._asdict().items()}


def available(found: dict[str, Any]) -> tuple[int, int]:
    return found["available_low"], found["available_high"]


def test_batches_in_any_order_and_more_than_once_are_one_log() -> None:
    a, b, c = (0, 9, 5, ALWAYS, 70), (10, 19, 6, ALWAYS, 60), (20, 20, 7, ALWAYS, 90)
    log = log_of(c, a, b, a, c)
    assert (log.base.tolist(), log.size.tolist(), log.starts.tolist()) == ([0, 10, 20], [5, 6, 7], [0, 5, 11, 18])


def test_a_fetched_batch_shows_the_size_in_the_log_and_a_produced_one_when_it_came() -> None:
    produced, fetched = (0, 9, 500, 40, NEVER), (0, 9, 300, ALWAYS, 90)
    for order in ((produced, fetched), (fetched, produced)):
        log = log_of(*order)
        assert (log.size.tolist(), log.after.tolist(), log.before.tolist()) == ([300], [40], [90])


def test_append_times_rise_with_the_offset() -> None:
    log = log_of((0, 0, 1, 50, 100), (1, 1, 1, ALWAYS, 90), (2, 2, 1, 70, NEVER))
    assert (log.after.tolist(), log.before.tolist()) == ([50, 50, 70], [90, 90, NEVER])


def test_a_produce_request_after_a_fetch_that_returned_its_batch_does_not_date_the_append() -> None:
    """An idempotent producer sends a batch again whose first answer was an error, though the leader had appended it."""
    log = log_of((0, 9, 5, 20, 30), (10, 19, 5, 90, 95), (10, 19, 5, ALWAYS, 50), (20, 29, 5, 97, 99))
    assert (log.after.tolist(), log.before.tolist()) == ([20, 20, 97], [30, 50, 99])


def test_a_produce_request_long_after_a_fetch_that_returned_its_batch_dates_the_append() -> None:
    """No producer sends a batch again after delivery.timeout.ms, so other records were appended at these offsets."""
    later = 50 + DELIVERY_TIMEOUT_US
    fetched, last = (10, 19, 5, ALWAYS, 50), (10, 19, 5, later, later + 9)
    assert log_of(fetched, last).after.tolist() == [ALWAYS]
    assert log_of(fetched, (10, 19, 5, later + 1, later + 9)).after.tolist() == [later + 1]


def test_a_run_ends_where_an_offset_is_missing() -> None:
    assert log_of((0, 9, 1, 0, 0), (10, 19, 1, 0, 0), (25, 30, 1, 0, 0)).run_end.tolist() == [2, 2, 3]


def test_a_read_begins_with_the_batch_that_holds_the_offset() -> None:
    found = read(tens(100, 200, 300), 15, 30, 30)
    assert (found["first_batch"], available(found), found["log_known"]) == (1, (500, 500), True)


def test_a_read_ends_before_the_batch_that_holds_its_bound() -> None:
    assert available(read(tens(100, 200, 300), 0, 20, 20)) == (300, 300)
    assert available(read(tens(100, 200, 300), 0, 25, 25)) == (300, 300)


def test_a_read_that_returned_records_beyond_its_bound_could_read_them() -> None:
    """A broker takes the high watermark for its response before it reads, and it may rise until then."""
    log, bound = tens(100, 200, 300), {"low": 10, "high": 10}
    assert available(read(log, 0, **bound, returned=300)) == (300, 300)
    assert available(read(log, 0, **bound, returned=350)) == (600, 600)
    assert available(read(log, 10, **bound, returned=200)) == (200, 200)
    assert available(read(log, 0, **bound, returned=100)) == (100, 100)
    assert read(log, 10, **bound, returned=200)["log_known"] is True


def test_a_bound_between_two_high_watermarks_gives_at_least_and_at_most() -> None:
    assert available(read(tens(100, 200, 300), 0, 10, 30)) == (100, 600)


def test_a_read_at_its_bound_finds_nothing_and_is_known() -> None:
    found = read(tens(100), 10, 10, 10)
    assert (available(found), found["log_known"]) == ((0, 0), True)
    assert read(log_of(), 10, 10, 10)["log_known"] is True


def test_a_read_of_offsets_that_are_not_in_the_capture_is_unknown() -> None:
    assert read(log_of(), 5, 10, 10)["log_known"] is False
    assert read(log_of((10, 19, 100, 0, 0)), 5, 20, 20)["log_known"] is False
    assert read(tens(100), 0, 20, 20)["log_known"] is False


def test_a_read_up_to_a_gap_knows_what_lies_before_it() -> None:
    found = read(log_of((0, 9, 100, 0, 0), (20, 29, 300, 0, 0)), 0, 30, 30)
    assert (found["known_batches"], available(found), found["log_known"]) == (1, (100, 100), False)


def test_the_times_of_appends_bound_what_a_follower_can_read() -> None:
    log = log_of((0, 9, 100, 10, 20), (10, 19, 200, 30, 40), (20, 29, 300, 50, 60))
    found = read(log, 0, after=25, before=45)
    assert (available(found), found["first_append"], found["available_first"]) == ((100, 300), 30, 300)
    assert available(read(log, 0, after=65, before=70)) == (600, 600)
    assert read(log, 0, after=65, before=70)["first_append"] == NEVER


def witness(time: int, offset: int, returned: int, *, max_bytes: int = 1 << 30, most: int = 1 << 30) -> Records:
    """A follower's read. max_bytes: of the partition; most: of the response."""
    limits = {"partition_max_bytes": max_bytes, "max_bytes": most}
    sizes = {"returned_bytes": returned, "response_record_bytes": returned}
    return new_records(LOG_EVENT, 1, request_time=time, fetch_offset=offset, **limits, **sizes)


def test_a_followers_read_that_nothing_limited_shows_what_was_not_there_yet() -> None:
    log = dated_by_followers(tens(100, 200, 300), witness(77, 0, 300))
    assert log.after.tolist() == [ALWAYS, ALWAYS, 77]


def test_a_read_that_a_limit_may_have_stopped_shows_nothing() -> None:
    assert dated_by_followers(tens(100, 200), witness(77, 0, 100, max_bytes=299)).after.tolist() == [ALWAYS, ALWAYS]
    assert dated_by_followers(tens(100, 200), witness(77, 0, 100, most=299)).after.tolist() == [ALWAYS, ALWAYS]
    assert dated_by_followers(tens(100, 200), witness(77, 0, 150)).after.tolist() == [ALWAYS, ALWAYS]


def test_a_read_up_to_a_gap_shows_nothing_because_the_next_batch_is_not_known() -> None:
    """The batch after offset 9 may have been too large for the read. The small one after the gap shows nothing."""
    log = dated_by_followers(
        log_of((0, 9, 100, ALWAYS, 90), (50, 59, 1, ALWAYS, 95)), witness(77, 0, 100, max_bytes=5000)
    )
    assert log.after.tolist() == [ALWAYS, ALWAYS]


def test_an_empty_read_of_a_response_without_records_shows_that_the_log_ended_there() -> None:
    assert dated_by_followers(tens(100, 200), witness(77, 10, 0, max_bytes=1)).after.tolist() == [ALWAYS, 77]
    assert dated_by_followers(log_of((50, 59, 1, ALWAYS, 95)), witness(77, 10, 0)).after.tolist() == [77]


def test_an_empty_read_says_nothing_if_a_batch_at_its_offset_was_there_before() -> None:
    """A replication throttle leaves a partition empty although it has records (KIP-73)."""
    log = log_of((0, 9, 100, 10, 20), (10, 19, 200, 30, 40), (20, 29, 300, 50, 95))
    assert dated_by_followers(log, witness(77, 0, 0)).after.tolist() == [10, 30, 50]
    both = np.concatenate([witness(77, 0, 0), witness(35, 10, 0)])
    assert dated_by_followers(log, both).after.tolist() == [10, 35, 50]


def test_batches_that_a_parked_fetch_waited_for_came_after_its_request() -> None:
    asked = [witness(50, 10, 200), witness(77, 20, 0), witness(60, 20, 300)]
    log = dated_by_parked_fetches(tens(100, 200, 300, 400, before=90), np.concatenate(asked))
    assert log.after.tolist() == [ALWAYS, 50, 77, 77]


def test_a_parked_fetch_shows_that_an_append_came_after_the_read_before_it() -> None:
    log = log_of((0, 9, 100, 30, 60), (10, 19, 200, 35, 90))
    assert available(read(log, 0, after=25, before=45)) == (0, 300)
    assert available(read(dated_by_parked_fetches(log, witness(50, 10, 200)), 0, after=25, before=45)) == (0, 100)


def test_a_batch_that_a_response_showed_sooner_was_there_although_the_fetch_was_parked() -> None:
    log = log_of((0, 9, 100, 30, 60), (10, 19, 200, 65, 90))
    assert dated_by_parked_fetches(log, witness(77, 0, 0)).after.tolist() == [30, 77]


@st.composite
def logs(draw: st.DrawFn) -> list[Batch]:
    base, batches = 0, []
    for _ in range(draw(st.integers(0, 6))):
        base += draw(st.sampled_from([0, 0, 0, 3]))
        count = draw(st.integers(1, 4))
        batches.append((base, base + count - 1, draw(st.integers(1, 9)), ALWAYS, NEVER))
        base += count
    return batches


def obvious_bytes(batches: list[Batch], offset: int, bound: int) -> tuple[int, bool]:
    """(bytes from the batch with the offset up to the bound, whether no offset is missing), found batch by batch."""
    if bound <= offset:
        return 0, True
    size, following = 0, None
    for base, last, batch_size, _, _ in batches:
        if last < offset:
            continue
        is_gap = base > (offset if following is None else following)
        if is_gap or last >= bound:
            break
        size, following = size + batch_size, last + 1
    return size, following is not None and following >= bound


@settings(derandomize=True, max_examples=500, deadline=None)
@given(logs(), st.integers(0, 25), st.integers(0, 25), st.randoms(use_true_random=False))
def test_any_read_finds_what_an_obvious_walk_over_the_batches_finds(
    batches: list[Batch], offset: int, bound: int, random: Any
) -> None:
    shuffled = batches * 2
    random.shuffle(shuffled)
    found = read(log_of(*shuffled), offset, bound, bound)
    size, is_known = obvious_bytes(batches, offset, bound)
    assert available(found) == (size, size)
    assert found["log_known"] == is_known
