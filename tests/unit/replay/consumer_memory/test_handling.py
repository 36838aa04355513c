"""How long brokers handle requests: as a request log shows it, or as requests that are answered at once suggest."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from schemas.tables.event_kinds import HandledBy
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.events import EXCHANGE
from udfs.replay.consumer_memory.handling import NEAREST, handled_requests
from udfs.replay.consumer_memory.traces import traces_of_requests

PRODUCE, FETCH, METADATA, JOIN_GROUP = 0, 1, 3, 11
Request = tuple[int, int, int, HandledBy, int]  # API, requested at, us to the response, what shows, handled at


def waits_for_replicas(requested_at: int, response_us: int) -> Request:
    return PRODUCE, requested_at, response_us, HandledBy.REPLICAS, NEVER


def answered_at_once(requested_at: int, response_us: int, api_key: int = METADATA) -> Request:
    return api_key, requested_at, response_us, HandledBy.RESPONSE, NEVER


def exchanges(requests: Iterable[Request], connection: Iterable[int] | None = None, unit: int = 0) -> Records:
    """The requests of one broker, each on a connection of its own unless connections are given."""
    rows = sorted(requests, key=lambda request: request[1])
    api_key, requested_at, response_us, handled_by, handled_at = zip(*rows, strict=True)
    own = range(len(rows)) if connection is None else connection
    return new_records(
        EXCHANGE, len(rows), unit=unit, connection=list(own), requested_at=requested_at, size_known_at=requested_at,
        api_key=api_key, response_us=response_us, handled_at=handled_at, handled_by=handled_by,
    )  # fmt: skip


def held_us(handled: Records) -> list[int]:
    return traces_of_requests(handled, 1).messages["held_us"].tolist()


def by(handled: Records) -> list[HandledBy]:
    return list(map(HandledBy, handled["handled_by"].tolist()))


def test_a_request_that_waits_for_replicas_is_held_as_long_as_others_take_that_wait_for_nothing() -> None:
    found = handled_requests(exchanges([waits_for_replicas(50, 900), *(answered_at_once(at, 7) for at in range(3))]))
    assert held_us(found)[-1] == 7
    assert by(found)[-1] == HandledBy.PACE


@pytest.mark.parametrize("api_key", [PRODUCE, METADATA])
def test_the_median_of_the_nearest_requests_counts(api_key: int) -> None:
    near = [answered_at_once(1_000 + 10 * n, took, api_key) for n, took in enumerate((9, 1, 8, 2, 5, 30, 3))]
    far = [answered_at_once(at, 200, api_key) for at in (*range(0, 700, 100), *range(2_000, 2_700, 100))]
    assert len(near) == NEAREST
    found = handled_requests(exchanges([waits_for_replicas(1_035, 900), *near, *far]))
    assert found["handled_at"][found["requested_at"] == 1_035].tolist() == [1_035 + 5]


def test_the_first_and_last_requests_take_the_nearest_that_there_are() -> None:
    known = [answered_at_once(100 + n, 5 if n < NEAREST else 50) for n in range(2 * NEAREST)]
    found = handled_requests(exchanges([waits_for_replicas(0, 900), *known, waits_for_replicas(500, 900)]))
    assert (held_us(found)[0], held_us(found)[-1]) == (5, 50)


def test_an_estimate_is_never_above_what_the_capture_shows() -> None:
    fetched = (PRODUCE, 20, 900, HandledBy.FETCH, 26)
    found = handled_requests(exchanges([answered_at_once(10, 40), waits_for_replicas(15, 30), fetched]))
    assert held_us(found) == [0, 30, 6]
    assert by(found)[1:] == [HandledBy.REPLICAS, HandledBy.FETCH]


def test_what_waits_for_others_says_nothing_about_the_broker() -> None:
    others = [answered_at_once(5, 3, JOIN_GROUP), answered_at_once(6, 3, FETCH), (PRODUCE, 7, 3, HandledBy.FETCH, 8)]
    unanswered = answered_at_once(8, 0)
    found = handled_requests(exchanges([waits_for_replicas(10, 900), *others, unanswered]))
    assert held_us(found)[-1] == 900
    assert HandledBy.PACE not in by(found)


def test_requests_to_another_broker_say_nothing() -> None:
    here, there = exchanges([waits_for_replicas(10, 900)]), exchanges([answered_at_once(5, 3)], unit=1)
    both = new_records(EXCHANGE, 2)
    both[:1], both[1:] = here, there
    assert handled_requests(both)["handled_by"].tolist() == [HandledBy.REPLICAS, HandledBy.RESPONSE]


def test_a_request_log_tells_how_long_a_request_was_handled_since_it_was_read() -> None:
    """The second request is read when the first is answered, at 100 us. The log says that it took 20 us."""
    logged = [(PRODUCE, at, 90, HandledBy.REQUEST_LOG, at + 20) for at in (10, 40)]
    found = handled_requests(exchanges([*logged, answered_at_once(0, 1)], connection=[1, 0, 0]))
    assert held_us(found) == [0, 20, 20]
    assert by(found)[1:] == [HandledBy.REQUEST_LOG] * 2


def test_a_request_behind_another_one_of_its_connection_is_read_when_that_is_answered() -> None:
    known = [answered_at_once(100 * n, 10) for n in range(5)]
    rows = [*known, waits_for_replicas(50, 100), waits_for_replicas(60, 300)]
    order = sorted(range(len(rows)), key=lambda row: rows[row][1])
    found = handled_requests(exchanges(rows, connection=[9 if row >= len(known) else row for row in order]))
    late = found[found["requested_at"] == 60]
    assert late["handled_at"].tolist() == [150 + 10]
