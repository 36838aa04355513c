"""A fetch session that is rebuilt from the rows of one fetch goes on as if it had been followed all the time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.tables.silver import FETCH_PARTITIONS
from tests.unit.facts.session_model import Fetch, Got, Partition, Row, Want, fetch_array, product_row
from udfs.columns.arrays import Ints
from udfs.facts.earlier_sessions import LastFetch, LateResponse, session_behind
from udfs.facts.fetch_lists import FetchPartitionRows, Lists, Returned
from udfs.facts.fetch_session import NOWHERE, Session, new_session, resize_session
from udfs.facts.session_follower import FollowedSession, follow_sessions

T = FETCH_PARTITIONS
PARTITIONS: list[Partition] = [(1, 0), (1, 1), (2, 0), (2, 1)]
SESSION = 9
NO_ROWS = 1000
"""More rows than any of the fetches have."""


def follow(fetches: list[Fetch], first: int, session: Session | None) -> tuple[list[Row], FetchPartitionRows, Lists]:
    """Follow the fetches from `first` on: their rows for comparison, as the follower writes them, and their lists."""
    array, lists = fetch_array(fetches)
    capacity = np.full(len(array), 50)
    state = FollowedSession(new_session(1), NOWHERE)
    if session is not None:
        state = FollowedSession(resize_session(session, 50), 0)
    room, n, _, _ = follow_sessions(array, first, lists, state, capacity, NO_ROWS)
    written = FetchPartitionRows._make(column[:n] for column in room)
    cells = zip(*(column.tolist() for column in written), strict=True)
    return [product_row(dict(zip(written._fields, row, strict=True)), array) for row in cells], written, lists


def last_rows(fetches: list[Fetch], number: int) -> LastFetch:
    """The rows of a fetch as the table has them."""
    array, lists = fetch_array(fetches)
    _, written, _ = follow(fetches, 0, None)
    of = FetchPartitionRows._make(column[written.fetch == number] for column in written)
    fetch, answer, rows = array[number], fetches[number].answer, len(of.topic)

    def everywhere(value: int) -> Ints:
        return np.full(rows, value, np.int64)

    def place(row: Ints, first: int) -> Ints:
        return np.where(row == NOWHERE, NOWHERE, row - first)

    records = np.array([*lists.returned.records_bytes, 0])[of.returned]
    returned = np.maximum(np.where(of.returned == NOWHERE, 0, records), 0)
    columns = {
        T.fetch_offset: of.fetch_offset, T.partition_max_bytes: of.partition_max_bytes,
        T.current_leader_epoch: of.current_leader_epoch, T.last_fetched_epoch: of.last_fetched_epoch,
        T.reader_log_start_offset: of.reader_log_start_offset, T.high_watermark: of.high_watermark,
        T.last_stable_offset: of.last_stable_offset, T.log_start_offset: of.log_start_offset,
        T.session_id: everywhere(fetch["session_id"]), T.session_epoch: everywhere(fetch["session_epoch"]),
        T.response_session_id: everywhere(NOWHERE if answer is None else answer[0]),
        T.session_known: of.is_known, T.readable_known: of.is_readable,
        T.max_bytes: everywhere(fetch["max_bytes"]), T.replica_id: everywhere(NOWHERE),
        T.response_record_bytes: everywhere(NOWHERE if answer is None else int(returned.sum())),
        T.partition: of.partition, T.request_position: place(of.requested, fetch["requested_from"]),
        T.read_position: of.read_position, T.response_position: place(of.returned, fetch["returned_from"]),
        T.returned_bytes: returned,
    }  # fmt: skip
    return LastFetch({str(name): column for name, column in columns.items()}, of.topic)


def late_response(fetch: Fetch) -> LateResponse:
    array, lists = fetch_array([fetch])
    alone = array.copy()
    for name in ("connection", "session_id", "session_epoch", "max_bytes", "is_follower"):
        alone[name] = 0
    for name in ("requested", "forgotten"):
        alone[f"{name}_from"] = alone[f"{name}_to"] = 0
    return LateResponse(alone, Returned._make(lists.returned))


WANTS = st.lists(
    st.builds(Want, st.sampled_from(PARTITIONS), st.integers(0, 30), st.just(1000)), min_size=1, max_size=4
).map(tuple)


@st.composite
def sessions(draw: st.DrawFn) -> list[Fetch]:
    """The fetches of a session from its first one on, all answered."""
    fetches, held = [], set[Partition]()
    for epoch in range(draw(st.integers(2, 6))):
        wants = draw(WANTS) if epoch == 0 or draw(st.booleans()) else ()
        forgets = tuple(draw(st.lists(st.sampled_from(PARTITIONS), max_size=1))) if epoch and len(held) > 2 else ()
        held = (held | {want.partition for want in wants}) - {*forgets}
        got = draw(st.permutations(sorted(held)))
        got = got if epoch == 0 else got[: draw(st.integers(0, 2))]
        gets = tuple(
            Got(of, draw(st.sampled_from([-1, 0, 2])), draw(st.integers(-1, 30)), draw(st.integers(0, 30)))
            for of in got
        )
        fetches.append(Fetch((SESSION if epoch else 0, epoch), wants, forgets, (SESSION, 0), gets))
    return fetches


@settings(max_examples=60)
@given(sessions(), st.data())
def test_a_session_goes_on_from_the_rows_of_any_fetch(fetches: list[Fetch], data: st.DataObject) -> None:
    last = data.draw(st.integers(0, len(fetches) - 2))
    if data.draw(st.booleans()):  # the fetch is the session's last one: its response closes the session
        fetches[last] = replace(fetches[last], answer=(0, 0)) if last else fetches[last]
    session = session_behind(last_rows(fetches, last), None)
    assert session is not None
    expected = [row for row in follow(fetches, 0, None)[0] if row.fetch > last]
    assert follow(fetches, last + 1, session)[0] == expected


@settings(max_examples=60)
@given(sessions(), st.data())
def test_a_session_goes_on_from_a_fetch_whose_response_comes_later(fetches: list[Fetch], data: st.DataObject) -> None:
    last = data.draw(st.integers(0, len(fetches) - 2))
    waiting = [*fetches[:last], replace(fetches[last], answer=None, gets=())]
    session = session_behind(last_rows(waiting, last), late_response(fetches[last]))
    assert session is not None
    expected = [row for row in follow(fetches, 0, None)[0] if row.fetch > last]
    assert follow(fetches, last + 1, session)[0] == expected


@settings(max_examples=60)
@given(sessions(), st.data())
def test_a_fetch_whose_response_was_not_captured_leaves_a_gap(fetches: list[Fetch], data: st.DataObject) -> None:
    last = data.draw(st.integers(1, len(fetches) - 1))
    fetches[last] = replace(fetches[last], answer=None, gets=())
    fetches.append(Fetch((SESSION, last + 1), (), (), (SESSION, 0), (Got(PARTITIONS[0], 3, 9, 4),)))
    session = session_behind(last_rows(fetches[: last + 1], last), None)
    assert session is not None
    expected = [row for row in follow([*fetches[: last + 1], fetches[-1]], 0, None)[0] if row.fetch > last]
    assert follow([*fetches[: last + 1], fetches[-1]], last + 1, session)[0] == expected


@pytest.mark.parametrize(
    ("session", "answer", "is_there"),
    [((0, -1), (0, 0), False), ((SESSION, -1), (0, 0), False), ((0, 0), (0, 0), False), ((0, 0), (SESSION, 0), True)],
)
def test_only_a_fetch_that_opened_a_session_or_went_on_with_one_leaves_one(
    session: tuple[int, int], answer: tuple[int, int], is_there: bool
) -> None:
    fetches = [Fetch(session, (Want((1, 0)),), (), answer, (Got((1, 0)),))]
    assert (session_behind(last_rows(fetches, 0), None) is not None) is is_there
