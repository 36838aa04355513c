"""A fetch session is followed as the broker keeps it (KIP-227; org.apache.kafka.server.FetchSession, Kafka 4.3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.facts.session_model import Fetch, Got, Partition, Row, Want, followed, modelled
from udfs.facts.fetch_lists import LISTED_FETCH
from udfs.facts.fetch_session import GENERATION, ORDERED, new_session
from udfs.facts.session_follower import most_rows

A, B, C, D = (1, 0), (1, 1), (2, 0), (2, 1)
OPENED = Fetch((0, 0), (Want(A), Want(B), Want(C)), answer=(9, 0), gets=(Got(A), Got(B), Got(C)))


def read_order(rows: list[Row], fetch: int) -> list[Partition]:
    read = [row for row in rows if row.fetch == fetch and row.read_position is not None]
    return [row.partition for row in sorted(read, key=lambda row: row.read_position or 0)]


def order_after(*fetches: Fetch) -> list[Partition]:
    """The order in which the broker reads for an empty incremental fetch after these fetches; the session has id 9."""
    return read_order(followed([*fetches, Fetch((9, 5), answer=(9, 0))]), len(fetches))


def test_an_incremental_fetch_reads_all_partitions_of_the_session() -> None:
    assert order_after(OPENED) == [A, B, C]


def test_only_partitions_that_returned_records_move_to_the_end() -> None:
    """Kafka 4.3's IncrementalFetchContext leaves a partition that has only a new high watermark where it is."""
    changed = Fetch((9, 1), answer=(9, 0), gets=(Got(A, 0, 6), Got(B, 100)))
    assert order_after(OPENED, changed) == [A, C, B]


def test_partitions_with_records_move_in_the_order_of_the_response() -> None:
    assert order_after(OPENED, Fetch((9, 1), answer=(9, 0), gets=(Got(C, 1), Got(A, 1)))) == [B, C, A]


def test_a_full_response_does_not_rotate_and_puts_partitions_with_errors_last() -> None:
    opened = Fetch((0, 0), (Want(A), Want(B), Want(C)), answer=(9, 0), gets=(Got(B, 100), Got(C, 100), Got(A)))
    assert order_after(opened) == [B, C, A]


def test_new_partitions_are_read_last_and_known_ones_stay_where_they_are() -> None:
    added = Fetch((9, 1), (Want(D), Want(A, 50)), answer=(9, 0))
    rows = followed([OPENED, added])
    assert read_order(rows, 1) == [A, B, C, D]
    assert [row.offset for row in rows if row.fetch == 1] == [50, 0, 0, 0]


def test_a_forgotten_partition_is_read_no_more() -> None:
    assert order_after(OPENED, Fetch((9, 1), forgets=(B,), answer=(9, 0))) == [A, C]


def test_a_partition_that_was_forgotten_and_added_again_is_last_and_has_no_old_values() -> None:
    again = (Fetch((9, 1), forgets=(A,), answer=(9, 0)), Fetch((9, 2), (Want(A, 70),), answer=(9, 0)))
    rows = followed([OPENED, *again])
    assert read_order(rows, 2) == [B, C, A]
    assert next(row for row in rows if row.fetch == 2 and row.partition == A).high_watermark == -1


def test_a_partition_both_listed_and_forgotten_ends_up_removed() -> None:
    assert order_after(OPENED, Fetch((9, 1), (Want(D), Want(B)), forgets=(D, B), answer=(9, 0))) == [A, C]


def test_a_duplicate_keeps_its_first_place_and_its_last_data() -> None:
    full = Fetch((0, -1), (Want(A, 1), Want(B, 2), Want(A, 3)), gets=(Got(A), Got(B)))
    assert [(row.partition, row.requested, row.offset) for row in followed([full])] == [(A, 0, 3), (B, 1, 2)]


@pytest.mark.parametrize("error", [70, 71, 106])
def test_a_refused_fetch_reads_nothing_and_changes_nothing(error: int) -> None:
    refused = Fetch((9, 1), (Want(D), Want(A, 70)), forgets=(B,), answer=(0, error))
    assert [row.read_position for row in followed([OPENED, refused]) if row.fetch == 1] == [None, None]
    assert order_after(OPENED, refused) == [A, B, C]


@pytest.mark.parametrize(
    ("before", "epoch", "error", "is_known"),
    [
        ([OPENED], 1, 106, True),
        ([OPENED], 1, 70, True),
        ([OPENED], 1, 71, False),
        ([OPENED], 2, 106, False),
        ([], 1, 106, False),
        ([OPENED, Fetch((9, 1), answer=None)], 2, 106, False),
    ],
    ids=["topic ids", "gone", "another epoch", "fetches between", "from before", "not followed"],
)
def test_a_refused_fetch_belongs_to_a_known_session_if_it_is_the_sessions_next_fetch(
    before: list[Fetch], epoch: int, error: int, is_known: bool
) -> None:
    rows = followed([*before, Fetch((9, epoch), (Want(A),), answer=(0, error))])
    assert [row.is_known for row in rows if row.fetch == len(before)] == [is_known]


def test_a_throttled_incremental_fetch_keeps_the_session_and_its_order() -> None:
    throttled = Fetch((9, 1), (Want(D),), answer=(9, 0))
    rows = followed([OPENED, throttled, Fetch((9, 2), answer=(9, 0))])
    assert read_order(rows, 2) == [A, B, C, D]
    assert all(row.is_known for row in rows)


def test_a_throttled_full_fetch_opens_no_session() -> None:
    throttled = Fetch((0, 0), (Want(A), Want(B)), answer=(0, 0))
    rows = followed([throttled, Fetch((9, 1), answer=(9, 0), gets=(Got(A, 1),))])
    assert [row.is_known for row in rows if row.fetch == 1] == [False]


def test_an_unanswered_fetch_leaves_the_order_unknown_until_the_next_full_one() -> None:
    rows = followed([OPENED, Fetch((9, 1), answer=None), Fetch((9, 2), answer=(9, 0)), OPENED])
    assert [{row.is_known for row in rows if row.fetch == f} for f in range(4)] == [{True}, {True}, {False}, {True}]


@pytest.mark.parametrize(("epoch", "is_known"), [(2, True), (3, False)])
def test_after_a_missing_epoch_it_is_not_known_which_partitions_the_session_has(epoch: int, is_known: bool) -> None:
    rows = followed([OPENED, Fetch((9, 1), answer=(9, 0)), Fetch((9, epoch), answer=(9, 0))])
    assert {row.is_known for row in rows if row.fetch == 2} == {is_known}


BOTH_FROM_10 = (Want(A, 10), Want(B, 10))


@pytest.mark.parametrize(
    ("wants", "gets", "is_delayed"),
    [
        ((Want(A, 20),), (Got(A, 0, 20),), True),
        ((Want(A, 20),), (Got(A, 100, 20),), True),
        ((Want(A, 20),), (Got(A, 100, 10),), False),
        ((Want(A, 20),), (Got(B, 100, 20),), False),
        ((Want(A, 10),), (Got(A, 100, 10),), False),
        ((Want(B, 20),), (Got(B, 100, 30),), False),
        ((Want(A, 20), Want(A, 20)), (Got(A, 100, 20),), False),
        ((), (Got(A, 0, 20),), False),
    ],
    ids=["empty", "records", "not yet", "another", "same offset", "was behind", "twice", "not asked"],
)
def test_a_high_watermark_that_the_request_itself_moves_shows_that_the_fetch_was_parked(
    wants: tuple[Want, ...], gets: tuple[Got, ...], is_delayed: bool
) -> None:
    """The leader notes a follower's offset after its first read, so the new high watermark comes from a second read."""
    opened = Fetch((0, 0), BOTH_FROM_10, answer=(9, 0), gets=(Got(A, 100, 5), Got(B, 100, 11)))
    rows = followed([opened, Fetch((9, 1), wants, answer=(9, 0), gets=gets)])
    assert [row.is_delayed for row in rows] == [False, False, is_delayed, is_delayed]


def test_a_fetch_after_one_that_the_capture_lacks_is_not_known_to_have_been_parked() -> None:
    opened = Fetch((0, 0), BOTH_FROM_10, answer=(9, 0), gets=(Got(A, 100, 5), Got(B, 100, 5)))
    rows = followed([opened, Fetch((9, 2), (Want(A, 20),), answer=(9, 0), gets=(Got(A, 0, 20),))])
    assert not any(row.is_delayed for row in rows)


def test_a_session_opened_before_the_capture_is_followed_as_far_as_it_shows() -> None:
    """B has been waiting longer than A, so the broker reads it first, from where its first batch begins."""
    joined = Fetch((9, 7), (Want(A, 50, 800),), answer=(9, 0), gets=(Got(B, 10, first_offset=70),))
    rows = followed([joined, Fetch((9, 8), answer=(9, 0))])
    assert {row.is_known for row in rows} == {False}
    assert read_order(rows, 0) == [B, A]
    assert read_order(rows, 1) == [A, B]
    assert [(row.offset, row.max_bytes) for row in rows if row.partition == B and row.fetch == 0] == [(70, 800)]


A_AND_B = Fetch((9, 7), (Want(A), Want(B)), answer=(9, 0), gets=(Got(A, 4),))


def readable(*fetches: Fetch) -> list[bool]:
    """For each fetch, whether all partitions that had something to read are known."""
    rows = followed(list(fetches))
    return [all(row.is_readable for row in rows if row.fetch == f) for f in range(len(fetches))]


@pytest.mark.parametrize(
    ("second", "is_readable"),
    [
        (Fetch((9, 8), answer=(9, 0), gets=(Got(B, 3),)), True),
        (Fetch((9, 8), answer=(9, 0)), True),
        (Fetch((9, 8), answer=(9, 0), is_throttled=True), False),
        (Fetch((9, 8), answer=(9, 0), gets=(Got(B, 4),)), False),
        (Fetch((9, 8), answer=(9, 0), gets=(Got(A, 4),)), True),
        (Fetch((9, 8), answer=None), False),
    ],
    ids=["has room left", "is empty", "is held back for a quota", "is full", "has records of A again", "is lacking"],
)
def test_when_all_partitions_with_records_of_a_session_from_before_the_capture_are_known(
    second: Fetch, is_readable: bool
) -> None:
    """A response that is full may have left out partitions that nobody has named yet."""
    assert readable(A_AND_B, second) == [False, is_readable]


def test_a_partition_that_gets_records_later_was_read_from_where_its_first_batch_begins() -> None:
    empty, third = Fetch((9, 8), answer=(9, 0)), Fetch((9, 9), answer=(9, 0), gets=(Got(C, 2, first_offset=30),))
    assert readable(A_AND_B, empty, third) == [False, True, True]


def test_a_partition_that_a_response_with_room_left_does_not_name_had_nothing_to_read() -> None:
    rows = followed(
        [replace(A_AND_B, gets=(Got(A, 3, 70),)), replace(A_AND_B, is_follower=True, gets=(Got(A, 3, 70),))]
    )
    assert [(row.partition, row.high_watermark) for row in rows] == [(A, 70), (B, 0), (A, 70), (B, -1)]


def test_after_a_gap_a_partition_that_the_next_request_names_is_read_last_and_others_keep_their_place() -> None:
    """A was returned in the gap, which moved it to the end. The offsets of B and C are no longer known."""
    rows = followed([OPENED, Fetch((9, 1), answer=None), Fetch((9, 2), (Want(A, 70),), answer=(9, 0))])
    assert read_order(rows, 2) == [B, C, A]
    assert [(row.partition, row.offset) for row in rows if row.fetch == 2] == [(B, -1), (C, -1), (A, 70)]


@pytest.mark.parametrize("gap", [(Fetch((9, 1), answer=None),), ()], ids=["no response", "no fetch"])
def test_for_the_first_fetch_after_a_gap_not_all_is_known_and_for_the_next_one_it_is(gap: tuple[Fetch, ...]) -> None:
    after = [Fetch((9, epoch), answer=(9, 0)) for epoch in (2, 3)]
    assert readable(OPENED, *gap, *after)[-2:] == [False, True]


def test_a_response_that_names_a_partition_twice_leaves_each_in_the_session_once() -> None:
    twice = Fetch((9, 7), (Want(A), Want(B)), answer=(9, 0), gets=(Got(B, 1), Got(A, 1), Got(B, 1)))
    assert sorted(row.partition for row in followed([twice])) == [A, B]


def test_not_all_is_known_for_a_fetch_if_a_message_set_hides_the_offset_that_was_read() -> None:
    """A compressed message of formats 0 and 1 has the offset of its last record. The next request shows the offset."""
    third, fourth = Fetch((9, 9), answer=(9, 0), gets=(Got(C, 2),)), Fetch((9, 10), (Want(C, 31),), answer=(9, 0))
    assert readable(A_AND_B, Fetch((9, 8), answer=(9, 0)), third, fourth) == [False, True, False, True]


def test_a_new_session_has_no_partition() -> None:
    session = new_session(3)
    assert not (session.stamps == session.state[GENERATION]).any()


def test_a_connection_may_begin_with_an_epoch_of_no_session() -> None:
    rows = followed([Fetch((0, 7), (Want(A),), answer=None)])
    assert [(row.partition, row.is_known) for row in rows] == [(A, False)]


def test_a_response_with_a_partition_nobody_wanted_shows_that_the_session_is_not_known() -> None:
    rows = followed([OPENED, Fetch((9, 1), answer=(9, 0), gets=(Got(D, 10),)), Fetch((9, 2), answer=(9, 0))])
    assert [{row.is_known for row in rows if row.fetch == f} for f in range(3)] == [{True}, {False}, {False}]


def test_another_session_id_is_another_session() -> None:
    rows = followed([OPENED, Fetch((8, 3), (Want(D),), answer=(8, 0))])
    assert [(row.partition, row.is_known) for row in rows if row.fetch == 1] == [(D, False)]


@pytest.mark.parametrize("last", [Fetch((9, -1), answer=(0, 0)), Fetch((9, 1), forgets=(A, B, C), answer=(0, 0))])
def test_a_session_ends_with_a_final_fetch_or_when_it_is_empty(last: Fetch) -> None:
    rows = followed([OPENED, last, Fetch((9, 2), (Want(A),), answer=(9, 0))])
    assert [(row.partition, row.is_known) for row in rows if row.fetch == 2] == [(A, False)]


def test_each_connection_has_its_own_session() -> None:
    rows = followed([OPENED, Fetch((9, 1), (Want(D),), answer=(9, 0), connection=1)])
    assert [(row.partition, row.is_known) for row in rows if row.fetch == 1] == [(D, False)]


partitions = st.sampled_from([A, B, C, D, (3, 0), (3, 1)])
wants = st.lists(
    st.builds(Want, partitions, st.integers(0, 99), st.integers(0, 99), st.sampled_from([7, 7, 8])), max_size=6
).map(tuple)
gets = st.lists(
    st.builds(Got, partitions, st.integers(-1, 3), st.integers(-1, 9), st.integers(-1, 9)),
    max_size=6,
    unique_by=lambda got: got.partition,
)
answered = st.tuples(st.sampled_from([0, 1, 2]), st.sampled_from([0, 0, 0, 0, 70, 71, 106]))


@st.composite
def fetch_sequences(draw: st.DrawFn) -> list[Fetch]:
    fetches = []
    for connection in range(draw(st.integers(1, 2))):
        for _ in range(draw(st.integers(1, 9))):
            session = draw(st.sampled_from([(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (2, 1), (1, -1), (0, 1)]))
            answer = draw(st.none() | answered)
            got = tuple(draw(gets)) if answer is not None and answer[1] == 0 else ()
            forgets = tuple(draw(st.lists(partitions, max_size=3))) if session[1] > 0 else ()
            quota = answer is not None and draw(st.booleans())
            of = {"is_throttled": quota, "is_follower": connection > 0}
            fetches.append(Fetch(session, draw(wants), forgets, answer, got, connection, **of))
    return fetches


@settings(derandomize=True, max_examples=500, deadline=None)
@given(fetch_sequences())
def test_any_fetches_are_followed_as_the_model_says(fetches: list[Fetch]) -> None:
    assert followed(fetches) == modelled(fetches)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(fetch_sequences())
def test_some_fetches_are_followed_as_the_model_says(fetches: list[Fetch]) -> None:
    """So few that there is also time for them without compiled kernels (`tests.mutation`)."""
    assert followed(fetches) == modelled(fetches)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(fetch_sequences(), st.sampled_from([1, 3, 10]), st.booleans())
def test_calls_of_any_length_give_the_same_rows(fetches: list[Fetch], row_limit: int, resize: bool) -> None:
    assert followed(fetches, row_limit=row_limit, resize=resize) == followed(fetches)


def test_a_fetch_has_at_most_a_row_for_each_partition_of_its_session_its_request_and_its_response() -> None:
    session, fetch = new_session(8), np.zeros(1, LISTED_FETCH)
    session.state[ORDERED] = 5
    fetch["requested_from"], fetch["requested_to"] = 10, 13
    fetch["returned_from"], fetch["returned_to"] = 20, 22
    assert most_rows(session, fetch[0]) == 5 + 3 + 2
