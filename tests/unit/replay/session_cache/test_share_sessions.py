"""Share sessions: who gets one, when it ends, the results of lanes, and what the capture shows about the limit."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_shares import SHARE_LIMITS, SHARE_MEMBERS, SHARE_SESSIONS
from schemas.wire.errors import (
    INVALID_REQUEST,
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
)
from tests.unit.replay.session_cache.share_rows import (
    Gold,
    Row,
    began_row,
    end_row,
    release_row,
    request_row,
    share_gold,
    share_lanes,
)
from udfs.replay.shared.window import Window

S = 1_000_000


def request(second: float, member: str, epoch: int, error: int | None = 0, **columns: Any) -> Row:
    of = {"member_id": member, "connection_id": ord(member), "client_id": f"app-{member}"}
    return request_row(time=round(second * S), share_session_epoch=epoch, error_code=error, **of | columns)


def closed(second: float, member: str) -> list[Row]:
    of = {"member_id": member, "connection_id": ord(member)}
    return [request(second, member, -1), release_row(time=round((second + 0.01) * S), **of)]


def ended(second: float, member: str, **columns: Any) -> Row:
    return end_row(time=round(second * S), connection_id=ord(member), **columns)


def sums(gold: Gold, lane: str, *columns: str) -> list[int]:
    rows = [row for row in gold[SHARE_SESSIONS.name] if row["scenario"] == lane]
    return [sum(row[column] for row in rows) for column in columns]


def verdicts(gold: Gold, metric: str) -> Counter[str]:
    found = Counter[str]()
    for row in gold[FIDELITY.name]:
        if row["metric"] == metric:
            found.update({"agreed": row["agreed"], **dict(row["reasons"])})
    return +found


REFUSED = SHARE_SESSION_LIMIT_REACHED
TWO_OF_THREE = [
    request(1, "a", 0), request(2, "b", 0), request(3, "c", 0, REFUSED), request(4, "a", 1),
    request(5, "c", 0, REFUSED), *closed(6, "b"), request(7, "c", 0), request(8, "c", 1),
]  # fmt: skip


@pytest.mark.parametrize("at_a_time", [1, 7, 10_000])
def test_the_captured_limit_gives_what_was_captured_and_other_limits_give_other_results(at_a_time: int) -> None:
    gold = share_gold(TWO_OF_THREE, share_lanes(2, 1, 3), at_a_time)
    columns = ("requests", "created", "refused", "closed", "not_found")
    assert sums(gold, "limit=2", *columns) == [8, 3, 2, 1, 0]
    assert sums(gold, "limit=1", *columns) == [8, 1, 5, 0, 0]
    assert sums(gold, "limit=3", *columns) == [8, 3, 0, 1, 0]
    found = [verdicts(gold, metric) for metric in ("share_grants", "share_errors", "share_requests")]
    assert found == [Counter(agreed=5), Counter(agreed=3), Counter(agreed=8)]


def test_each_lane_shows_how_many_sessions_are_needed_and_which_limits_the_capture_allows() -> None:
    gold = share_gold(TWO_OF_THREE, share_lanes(2, 3))
    [captured, three] = gold[SHARE_LIMITS.name]
    names = ("max_share_sessions", "most_sessions", "needed_sessions", "sessions_at_least", "sessions_at_most")
    assert [captured[name] for name in names] == [2, 2, 3, 2, 2]
    assert [three[name] for name in names] == [3, 3, 3, 2, 2]
    nobody_refused = share_gold([request(1, "a", 0)], share_lanes(2))[SHARE_LIMITS.name]
    assert nobody_refused[0]["sessions_at_most"] is None


def test_a_member_waits_from_its_first_refusal_until_it_has_a_session() -> None:
    gold = share_gold(TWO_OF_THREE, share_lanes(2, 1, 3))
    waits = {(row["scenario"], row["client_id"]): row["waited_ms"] for row in gold[SHARE_MEMBERS.name]}
    assert [waits[f"limit={n}", "app-c"] for n in (2, 1, 3)] == [4000, 5000, 0]
    [row] = [row for row in gold[SHARE_MEMBERS.name] if (row["scenario"], row["member_id"]) == ("limit=2", "c")]
    assert [row[name] for name in ("group_id", "requests", "created", "refused")] == ["g", 4, 1, 2]


def test_a_session_ends_with_the_connection_that_opened_it() -> None:
    rows = [request(1, "a", 0), request(2, "b", 0, REFUSED), ended(3, "a"), request(4, "b", 0)]
    gold = share_gold(rows, share_lanes(1))
    assert sums(gold, "limit=1", "created", "dropped", "refused") == [2, 1, 1]
    assert verdicts(gold, "share_grants") == Counter(agreed=3)


@pytest.mark.parametrize(("marks_stale", "dropped", "error"), [(1, 0, 0), (0, 1, SHARE_SESSION_NOT_FOUND)])
def test_since_4_2_an_old_connections_end_does_not_end_a_session_that_another_opened(
    marks_stale: int, dropped: int, error: int
) -> None:
    rows = [
        request(1, "a", 0),
        request(2, "a", 0, connection_id=7),
        ended(3, "a"),
        request(4, "a", 1, error, connection_id=7),
    ]
    gold = share_gold(rows, share_lanes(5, marks_stale=marks_stale))
    assert sums(gold, "limit=5", "created", "dropped") == [2, dropped]
    assert verdicts(gold, "share_errors") == Counter(agreed=1)


def test_a_wrong_epoch_is_refused_and_the_session_stays() -> None:
    rows = [request(1, "a", 0), request(2, "a", 4, INVALID_SHARE_SESSION_EPOCH), request(3, "a", 0)]
    gold = share_gold(rows, share_lanes(1, 2))
    assert sums(gold, "limit=2", "created", "wrong_epoch", "refused") == [2, 1, 0]
    assert verdicts(gold, "share_errors") == Counter(agreed=1)
    assert verdicts(gold, "share_requests") == Counter(agreed=2, other_share_epoch=1)


def test_a_request_that_fails_before_its_session_is_looked_at_changes_nothing() -> None:
    rows = [request(1, "a", 0), request(2, "a", 0, INVALID_REQUEST), request(3, "a", 1)]
    gold = share_gold(rows, share_lanes(1))
    assert sums(gold, "limit=1", "created", "refused", "not_found", "wrong_epoch") == [1, 0, 0, 0]
    assert verdicts(gold, "share_errors") == Counter(agreed=1)


def test_a_session_from_before_the_capture_needs_a_slot_in_a_lane() -> None:
    old = began_row(time=0, connection_id=ord("z"))
    gold = share_gold([old, request(1, "a", 0), request(3, "z", 9)], share_lanes(2, 1))
    assert [sums(gold, lane, "not_found") for lane in ("limit=2", "limit=1")] == [[0], [1]]


def test_a_session_that_ended_with_its_connection_is_not_found_by_the_next_request() -> None:
    """ShareSessionCache drops the sessions of a connection that ends (KIP-932); the member begins another one."""
    anew = {"connection_id": 7}
    rows = [
        request(1, "a", 0), ended(2, "a"), request(3, "a", 1, SHARE_SESSION_NOT_FOUND, **anew),
        request(4, "a", 0, **anew), request(5, "a", 1, **anew),
    ]  # fmt: skip
    assert sums(share_gold(rows, share_lanes(2)), "limit=2", "created", "dropped", "not_found") == [2, 1, 1]


def test_a_session_from_before_the_capture_is_unknown_until_a_request_shows_it() -> None:
    old = began_row(time=0, connection_id=ord("z"))
    rows = [old, request(1, "a", 0), request(2, "b", 0, REFUSED), request(3, "z", 9), request(4, "b", 0, REFUSED)]
    gold = share_gold(rows, share_lanes(2))
    assert verdicts(gold, "share_grants") == Counter(agreed=2, share_session_from_before=1)
    assert verdicts(gold, "share_errors") == Counter(share_session_from_before=1)
    assert gold[SHARE_LIMITS.name][0]["sessions_at_most"] == 2


@pytest.mark.parametrize(("limit", "error", "reason"), [(1, 0, "share_granted"), (3, REFUSED, "share_refused")])
def test_a_limit_other_than_the_captured_one_disagrees(limit: int, error: int, reason: str) -> None:
    gold = share_gold([request(1, "a", 0), request(2, "b", 0, error)], share_lanes(limit))
    assert verdicts(gold, "share_grants") == Counter({"agreed": 1, reason: 1})


def test_a_grant_that_an_overlapping_close_decides_is_unknown() -> None:
    rows = [request(1, "a", 0), *closed(2, "a"), request(2.05, "b", 0, REFUSED)]
    assert verdicts(share_gold(rows, share_lanes(1)), "share_grants") == Counter(agreed=1, share_close_order=1)
    before = [request(1, "a", 0, ended_time=round(2.05 * S)), request(2, "b", 0), ended(2.05, "a")]
    gold = share_gold([*before, request(3, "c", 0, REFUSED)], share_lanes(1))
    assert verdicts(gold, "share_grants") == Counter(agreed=2, share_close_order=1)
    [row] = gold[SHARE_LIMITS.name]
    assert (row["sessions_at_least"], row["sessions_at_most"]) == (1, 1)


def test_in_a_log_a_refusal_may_be_due_to_a_connection_that_had_not_ended() -> None:
    rows = [
        request(1, "a", 0, is_logged=True),
        ended(2, "a", is_logged=True),
        request(9, "b", 0, REFUSED, is_logged=True),
    ]
    found = verdicts(share_gold(rows, share_lanes(1)), "share_grants")
    assert found == Counter(agreed=1, connection_end_not_captured=1)


def test_a_request_shows_what_the_lost_response_before_it_was() -> None:
    rows = [
        request(1, "a", 0, None),
        request(2, "a", 1),
        request(3, "a", 2, None),
        request(4, "a", 3),
        request(5, "a", 4),
    ]
    gold = share_gold(rows, share_lanes(1))
    assert verdicts(gold, "share_errors") == Counter(agreed=3)
    assert verdicts(gold, "share_grants") == Counter()


def test_brokers_have_caches_of_their_own_and_a_restarted_one_begins_without_sessions() -> None:
    rows = [
        request(1, "a", 0), request(2, "b", 0, REFUSED), request(9, "b", 0, life=1), request(3, "b", 0, broker="2"),
    ]  # fmt: skip
    gold = share_gold(rows, share_lanes(1))
    assert verdicts(gold, "share_grants") == Counter(agreed=4)
    assert {row["broker"] for row in gold[SHARE_SESSIONS.name]} == {"1", "2"}


def test_before_a_window_sessions_are_opened_and_nothing_is_counted() -> None:
    gold = share_gold(TWO_OF_THREE, share_lanes(2, window=Window(round(2.5 * S), round(5.5 * S))))
    assert sums(gold, "limit=2", "requests", "created", "refused") == [3, 0, 2]
    assert verdicts(gold, "share_grants") == Counter(agreed=2)
    [row] = gold[SHARE_LIMITS.name]
    assert row["most_sessions"] == 2
    nothing = share_gold(TWO_OF_THREE, share_lanes(2, window=Window(90 * S, 100 * S)))
    assert not any(nothing.values())
