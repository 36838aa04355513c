"""What a producer sent is put together as plain loops over sendings and records put it together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.replay.batch_split.events import (
    SENDING,
    Sequences,
    append_order,
    bytes_in_stretches,
    last_sending_before,
    note_next_records,
    number_batches,
    records_in,
    splits_that_made,
    were_sent_before,
)
from udfs.replay.batch_split.state import BATCH, RECORD, SENT_PARTITION

TOO_LARGE = 10
MS = 1000
SENDINGS = st.lists(
    st.tuples(st.sampled_from([NONE, 0, 1]), st.integers(0, 99), st.booleans()), min_size=1, max_size=12,
    unique_by=lambda sending: sending[1],
)  # fmt: skip


@given(SENDINGS)
def test_the_last_sending_before_is_of_the_same_batch_and_among_those_looked_at(
    given_sendings: list[tuple[int, int, bool]],
) -> None:
    batch, request, among = (list(column) for column in zip(*given_sendings, strict=True))
    found = last_sending_before(
        new_records(SENDING, len(batch), batch=batch, request_time=request), np.array(among, np.bool_)
    )
    for row, of in enumerate(batch):
        earlier = [at for at in range(len(batch)) if among[at] and batch[at] == of and request[at] < request[row]]
        last = max(earlier, key=lambda at: request[at], default=NONE) if of != NONE else NONE
        assert found[row] == last


def made_by(*sendings: tuple[int, int, int, int]) -> list[int]:
    """The split that made each of these sendings of one batch of eight records: (ms, offset, records, error)."""
    request, offset, records, error = (list(column) for column in zip(*sendings, strict=True))
    is_whole = [of == (0, 8) for of in zip(offset, records, strict=True)]
    return splits_that_made(
        new_records(
            SENDING, len(sendings), request_time=request, offset=offset, records=records, error=error, is_whole=is_whole
        )
    ).tolist()


def test_a_part_was_made_by_the_last_refused_sending_that_has_its_records_or_by_that_of_the_whole_batch() -> None:
    whole = (0, 0, 8, TOO_LARGE)
    assert made_by(whole, (1, 0, 4, 0), (2, 4, 4, 0)) == [NONE, 0, 0]
    assert made_by(whole, (1, 0, 4, TOO_LARGE), (2, 0, 2, 0), (3, 2, 2, 0), (4, 4, 4, 0)) == [NONE, 0, 1, 1, 0]
    assert made_by(whole, (1, 4, 4, TOO_LARGE), (2, 3, 2, 0), (3, 4, 5, 0)) == [NONE, 0, 0, 0]
    assert made_by((0, 0, 8, 7), (1, 0, 8, 0)) == [NONE, NONE], "another error splits nothing"
    assert made_by((0, 0, 1, TOO_LARGE), (1, 0, 1, 0)) == [NONE, NONE], "one record cannot be split"


def test_batches_are_numbered_by_partition_and_repeated_sendings_have_the_number_of_the_first() -> None:
    sendings = new_records(SENDING, 6, partition=[1, 0, 1, 1, 0, 1], records=[4, 2, 4, 2, 3, 0])
    parent, offset = np.array([NONE, NONE, 0, 0, NONE, NONE]), np.array([0, 0, 0, 2, 0, 0])
    is_first = np.array([True, True, False, False, True, False])
    assert number_batches(sendings, parent, offset, is_first).tolist() == [1, 4, 0]
    assert sendings["batch"].tolist() == [2, 0, 2, 2, 1, NONE]
    assert sendings[["offset", "is_whole"]].tolist() == [(0, 1), (0, 1), (0, 1), (2, 0), (0, 1), (0, 0)]


def test_records_with_a_sequence_number_below_those_of_earlier_stretches_were_sent_before() -> None:
    sequences: Sequences = {(1, 0): 10, (2, 0): 5}
    sendings = new_records(SENDING, 5, sequence=[9, 10, NONE, 4, 0], records=[2, 3, 7, 1, 6])
    keys: list[tuple[int, ...]] = [(1, 0), (2, 0), (3, 0)]
    found = were_sent_before(sendings, np.array([0, 0, 0, 1, 2]), keys, sequences)
    assert found.tolist() == [True, False, False, True, False]
    assert sequences == {(1, 0): 13, (2, 0): 5, (3, 0): 6}


@pytest.mark.parametrize(
    ("timestamp", "append_from", "requested", "times"),
    [
        ([3, 5, 4], 3, 9, [3000, 5000, 5000]),
        ([3, 5, 99], 3, 9, [3000, 5000, 9000]),
        ([3, 5, 6], 4, 9, [4000, 5000, 6000]),
        ([3, 5, 6], 9, 9, [9000, 9000, 9000]),
    ],
    ids=["they rise", "not after the request", "not before the first append", "not the client's clock"],
)
def test_a_record_is_appended_at_its_timestamp_if_that_can_be_the_clients_clock(
    timestamp: list[int], append_from: int, requested: int, times: list[int]
) -> None:
    """A record of another partition comes at 1 ms."""
    sendings = new_records(SENDING, 2, records=[3, 1], partition=[0, 1], request_time=[requested * MS, 2 * MS])
    found = records_in(sendings, np.array([append_from * MS, MS]), np.arange(4), np.array([*timestamp, 1]))
    assert found["time"].tolist() == [*times, 1000]
    assert found[["content", "partition", "batch", "part"]].tolist() == [
        (0, 0, 0, NONE), (1, 0, 0, NONE), (2, 0, 0, NONE), (3, 1, 1, NONE),
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=12))
def test_bytes_are_summed_from_the_begin_of_each_stretch(sizes: list[tuple[int, bool]]) -> None:
    expected, total = list[int](), 0
    for size, ends in sizes:
        total += size
        expected.append(total)
        total = 0 if ends else total
    amounts, ends_there = (np.array(column) for column in zip(*sizes, strict=True))
    assert bytes_in_stretches(amounts, ends_there[:-1].astype(np.bool_)).tolist() == expected


RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=14).map(
    lambda records: sorted(records, key=lambda record: (record[1], record[0]))
)
"""(time, partition) of each record; the records of a partition follow each other, in the order of their times."""
TOPIC_OF = (0, 0, 0, 1, 1)


@given(RECORDS)
def test_records_of_one_time_stay_with_the_partition_of_the_record_before(given_records: list[tuple[int, int]]) -> None:
    time, partition = (list(column) for column in zip(*given_records, strict=True))
    partitions = new_records(SENT_PARTITION, len(TOPIC_OF), topic=list(TOPIC_OF))
    order = append_order(new_records(RECORD, len(time), time=time, partition=partition), partitions, 2).tolist()
    expected, current = list[int](), {0: NONE, 1: NONE}
    left = sorted(range(len(time)), key=lambda record: (time[record], record))
    while left:
        first = left[0]
        topic = TOPIC_OF[partition[first]]
        alike = [first]
        for record in left[1:]:
            if time[record] != time[first] or TOPIC_OF[partition[record]] != topic:
                break
            alike.append(record)
        left = left[len(alike) :]
        alike.sort(key=lambda record: partition[record] != current[topic])
        expected += alike
        current[topic] = partition[alike[-1]]
    assert order == expected


@given(RECORDS, st.booleans())
def test_the_next_record_of_a_batch_is_one_of_its_topic_or_if_records_have_keys_of_its_partition(
    given_records: list[tuple[int, int]], is_sticky: bool
) -> None:
    """Each partition has one batch, without its last record if it has several; that one goes into another batch."""
    time, partition = (list(column) for column in zip(*given_records, strict=True))
    n, there = len(time), sorted({*partition})
    ends = {of: [at for at in range(n) if partition[at] == of] for of in there}
    groups = [group for of in there for group in (ends[of][:-1], ends[of][-1:]) if group]
    batch_of = {record: number for number, group in enumerate(groups) for record in group}
    records = new_records(RECORD, n, time=time, partition=partition, batch=[batch_of[at] for at in range(n)])
    batches = new_records(
        BATCH, len(groups), first=[group[0] for group in groups], end=[group[-1] + 1 for group in groups]
    )
    partitions = new_records(SENT_PARTITION, len(TOPIC_OF), topic=list(TOPIC_OF), is_sticky=is_sticky)
    order = np.argsort(time, kind="stable")
    note_next_records(records, partitions, batches, order, np.full(len(TOPIC_OF) + 2, NONE))
    in_turn = order.tolist()
    for number, group in enumerate(groups):
        behind = in_turn[in_turn.index(group[-1]) + 1 :]
        of = partition[group[-1]]
        fitting = [
            at for at in behind if (TOPIC_OF[partition[at]] == TOPIC_OF[of] if is_sticky else partition[at] == of)
        ]
        assert batches["next_record"][number] == (fitting[0] if fitting else NONE)
