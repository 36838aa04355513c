"""Which responses show that a log has holes, read by read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.replay.fetch_max_bytes.partition_log.events import LOG_EVENT
from udfs.replay.fetch_max_bytes.partition_log.lost_batches import begins_in_hole, slices_of

Batch = tuple[int, int, int, int]  # connection, exchange, first and last offset
Read = tuple[int, int, int]  # connection, exchange, fetch offset


def events(rows: Sequence[tuple[int, ...]], *names: str) -> Records:
    """LOG_EVENT[rows] with these fields."""
    columns = np.array(rows, np.int64).reshape(-1, len(names)).T
    return new_records(LOG_EVENT, len(rows), **dict(zip(names, columns, strict=True)))


def batches_of(rows: Sequence[Batch]) -> Records:
    return events(rows, "connection_id", "exchange_no", "position", "last_offset")


def reads_of(rows: Sequence[Read]) -> Records:
    return events(rows, "connection_id", "exchange_no", "fetch_offset")


def obvious(batches: list[Batch], reads: list[Read]) -> tuple[bool, list[bool]]:
    """Whether the log has holes and which reads begin in one, found response by response."""
    by_response: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for connection, exchange, base, last in batches:
        by_response.setdefault((connection, exchange), []).append((base, last))
    slices = {key: sorted(of) for key, of in by_response.items()}
    has_holes = any(one[1] + 1 < other[0] for of in slices.values() for one, other in pairwise(of))
    firsts = {key: of[0][0] for key, of in slices.items()}
    return has_holes, [firsts.get((connection, exchange), offset) > offset for connection, exchange, offset in reads]


connections = st.sampled_from([-(2**63), -3, 0, 2**62])
exchanges = st.sampled_from([0, 1, 2, 2**20])


@st.composite
def some_batches(draw: st.DrawFn) -> list[Batch]:
    found = []
    for response in draw(st.sets(st.tuples(connections, exchanges), max_size=6)):
        base = draw(st.integers(0, 9))
        for _ in range(draw(st.integers(1, 4))):
            last = base + draw(st.integers(0, 2))
            found.append((*response, base, last))
            base = last + draw(st.sampled_from([1, 1, 1, 3]))
    return draw(st.permutations(found))


@settings(derandomize=True, max_examples=300, deadline=None)
@given(some_batches(), st.lists(st.tuples(connections, exchanges, st.integers(0, 12)), max_size=8))
def test_holes_are_the_same_as_those_found_response_by_response(batches: list[Batch], reads: list[Read]) -> None:
    slices = slices_of(batches_of(batches))
    assert (slices.has_holes, begins_in_hole(slices, reads_of(reads)).tolist()) == obvious(batches, reads)


def test_a_batch_that_is_captured_twice_makes_no_hole() -> None:
    assert not slices_of(batches_of([(1, 0, 0, 4), (1, 0, 5, 9), (1, 0, 0, 4)])).has_holes
