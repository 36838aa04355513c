"""Whether a connection is of a process is what follows from its requests and the process's, one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.silver import CONNECTIONS
from tests.gate_rows import TIME
from tests.silver_rows import row_of, small_rows
from udfs.columns.arrays import Ints
from udfs.columns.sentinels import NONE
from udfs.replay.shared.client_connections import (
    CONNECTION_COLUMNS,
    ClientConnection,
    any_side_by_side,
    are_used_side_by_side,
    consuming_connections,
    producing_connections,
)
from udfs.replay.shared.client_software import FETCH, HEARTBEAT, JAVA, PRODUCE, Software
from udfs.replay.shared.correlation_ids import CHANCE, LEAST_CHANGES, NEAR_IDS, NEXT_IDS, SENT_TOGETHER, Fit, fit_of

Request = tuple[int, int]  # time, correlation id


def connection(
    number: int, server: str, version: str = "4", begin: int = 0, end: int = 0, does: int = PRODUCE
) -> ClientConnection:
    """A connection of one client. begin, end: seconds."""
    times = (TIME + timedelta(seconds=at) for at in (begin, end))
    return ClientConnection(number, ("c", "10.0.0.1"), server, does, ("java", version), *times)


def as_array(requests: Sequence[Request]) -> Ints:
    return np.array(requests, np.int64).reshape(-1, 2)


def drawn(seed: int) -> tuple[list[ClientConnection], list[list[Request]]]:
    """(the connection and those of the process, the requests of each). Ids rise with time, more or less."""
    rng = np.random.default_rng(seed)
    count, noise = int(rng.integers(2, 4)), int(rng.choice([0, 0, SENT_TOGETHER, SENT_TOGETHER + 1, 400]))
    connections = [connection(number, str(rng.choice(["1", "2", "3"])), str(rng.choice(["4", "4", "4", "3"])))
                   for number in range(count)]  # fmt: skip
    requests: list[list[Request]] = [[] for _ in range(count)]
    at = int(rng.integers(0, 3)) * 10
    ids = rng.permutation(2000)[:60] if seed % 10 == 0 else np.arange(60) * int(rng.choice([1, 17, 34, 51]))
    apart = rng.random() < 0.4
    for place in range(int(rng.integers(2, 60))):
        which = int(rng.integers(0, count)) if not apart else int(place >= 20)
        requests[which].append((at, int(ids[place]) - int(rng.random() < 0.2) * noise))
        at += int(rng.integers(0, 3))
    if apart:  # those of the process came first
        requests[0], requests[1] = requests[1], requests[0]
        if requests[0] and requests[1]:
            shift = max(number for _, number in requests[1]) + int(rng.choice([0, 1, NEXT_IDS, NEXT_IDS + 1]))
            first = requests[0][0][1]
            requests[0] = [(time, number - first + shift) for time, number in requests[0]]
    return connections, requests


def plain_fit(connections: Sequence[ClientConnection], requests: Sequence[Sequence[Request]]) -> Fit:
    own, known = requests[0], [request for of in requests[1:] for request in of]
    for other, of in zip(connections[1:], requests[1:], strict=True):
        if other.software != connections[0].software:
            return Fit.NO
        overlap = own and of and own[0][0] < of[-1][0] and of[0][0] < own[-1][0]
        if other.server == connections[0].server and overlap:
            return Fit.NO
    if {number for _, number in own} & {number for _, number in known}:
        return Fit.NO
    line = [(*request, True) for request in own] + [(*request, False) for request in known]
    line.sort(key=lambda request: request[0])
    near = [sum(abs(at - number) <= NEAR_IDS for _, at in known) / (2 * NEAR_IDS + 1) for _, number in own]
    changes = [after[1] - before[1] for before, after in pairwise(line) if before[2] != after[2]]
    if len(changes) >= LEAST_CHANGES:
        rising = sum(by >= -SENT_TOGETHER for by in changes)
        return Fit.ALTERNATES if rising / len(changes) >= 0.75 else Fit.NO
    rises = changes and sum(by >= -SENT_TOGETHER for by in changes) / len(changes) >= 0.75
    if rises and math.prod(1 - min(share, 1) for share in near) <= CHANCE:
        return Fit.FILLS
    if len(known) < LEAST_CHANGES or not own or own[0][0] < max(time for time, _ in known):
        return Fit.OPEN
    more = own[0][1] - max(number for _, number in known)
    return Fit.GOES_ON if 0 < more <= NEXT_IDS else Fit.OPEN


def test_connections_fit_processes_as_plain_rules_say() -> None:
    found = set()
    for seed in range(600):
        connections, requests = drawn(seed)
        fit = fit_of(connections[0], connections[1:], {n: as_array(of) for n, of in enumerate(requests)})
        assert (seed, fit) == (seed, plain_fit(connections, requests))
        found.add(fit)
    assert found == set(Fit)


def alternating(changes: int, falling: int, by: int) -> list[list[Request]]:
    """Requests by turns on two connections, with so many changes, of which the first ones have ids that fall."""
    ids = [0]
    for number in range(changes):
        ids.append(ids[-1] - by if number < falling else ids[-1] + 100)
    return [[(at, number) for at, number in enumerate(ids) if at % 2 == which] for which in range(2)]


@pytest.mark.parametrize(
    ("changes", "falling", "by", "fit"),
    [
        (LEAST_CHANGES, 4, SENT_TOGETHER + 1, Fit.ALTERNATES), (LEAST_CHANGES, 5, SENT_TOGETHER + 1, Fit.NO),
        (LEAST_CHANGES, 5, SENT_TOGETHER, Fit.ALTERNATES), (LEAST_CHANGES - 1, 0, 0, Fit.OPEN),
        (LEAST_CHANGES - 1, 15, 99, Fit.OPEN),
    ],
)  # fmt: skip
def test_sixteen_changes_of_which_three_quarters_rise_are_of_one_process(
    changes: int, falling: int, by: int, fit: Fit
) -> None:
    """Ids of requests that are sent together may fall a little."""
    connections, requests = [connection(0, "1"), connection(1, "2")], alternating(changes, falling, by)
    assert fit_of(connections[0], connections[1:], {n: as_array(of) for n, of in enumerate(requests)}) == fit


@pytest.mark.parametrize(
    ("known", "first", "fit"),
    [
        (LEAST_CHANGES, 1, Fit.GOES_ON), (LEAST_CHANGES, NEXT_IDS, Fit.GOES_ON),
        (LEAST_CHANGES, NEXT_IDS + 1, Fit.OPEN), (LEAST_CHANGES - 1, 1, Fit.OPEN),
    ],
)  # fmt: skip
def test_a_connection_goes_on_from_sixteen_requests_if_its_ids_are_the_next_ones(
    known: int, first: int, fit: Fit
) -> None:
    """Its first request may be as old as the last one of the process."""
    before = [(at, at) for at in range(known)]
    own = [(known - 1, known - 1 + first)]
    connections = [connection(0, "1"), connection(1, "2")]
    assert fit_of(connections[0], connections[1:], {0: as_array(own), 1: as_array(before)}) == fit


@pytest.mark.parametrize(("name", "version", "fit"), [
    ("java", "4", Fit.ALTERNATES), ("java", "3", Fit.NO), ("librdkafka", "4", Fit.NO), (None, None, Fit.ALTERNATES),
    ("java", None, Fit.ALTERNATES), (None, "3", Fit.NO),
])  # fmt: skip
def test_a_connection_of_other_software_is_of_another_process(
    name: str | None, version: str | None, fit: Fit
) -> None:  # fmt: skip
    """Unless the capture does not show what software it is."""
    one, other = connection(0, "1"), connection(1, "2")._replace(software=(name, version))
    requests = {n: as_array(of) for n, of in enumerate(alternating(LEAST_CHANGES, 0, 0))}
    assert fit_of(one, [other], requests) == fit_of(other, [one], requests) == fit


@pytest.mark.parametrize(("requests", "fit"), [(1, Fit.OPEN), (2, Fit.OPEN), (3, Fit.FILLS)])
def test_a_connection_fills_the_gaps_of_a_process_if_that_is_hardly_by_chance(requests: int, fit: Fit) -> None:
    """The process has all ids but those of the connection. Two ids in a row have 15 of 17 neighbours: (2/17)² > 1 %."""
    own = {40 + place for place in range(requests)}
    connections = [connection(0, "1"), connection(1, "2")]
    of = {0: as_array([(at, at) for at in sorted(own)]), 1: as_array([(at, at) for at in range(80) if at not in own])}
    assert fit_of(connections[0], connections[1:], of) == fit


@pytest.mark.parametrize(
    ("begin", "server", "does", "overlap"),
    [(9, "1", FETCH, True), (10, "1", FETCH, False), (9, "2", FETCH, False), (9, "1", HEARTBEAT, False)],
    ids=["at once", "one after the other", "to two brokers", "for other requests"],
)  # fmt: skip
def test_two_connections_to_a_broker_are_side_by_side_if_one_begins_before_the_other_ends(
    begin: int, server: str, does: int, overlap: bool
) -> None:
    one = connection(0, "1", begin=0, end=10, does=FETCH)
    other = connection(1, server, begin=begin, end=20, does=does)
    assert any_side_by_side([other, one]) == overlap


@pytest.mark.parametrize(
    ("begin", "server", "does", "overlap"),
    [(8, "1", FETCH, True), (9, "1", FETCH, False), (8, "2", FETCH, False), (8, "1", HEARTBEAT, False)],
)  # fmt: skip
def test_two_connections_are_used_side_by_side_if_one_has_requests_before_the_others_last(
    begin: int, server: str, does: int, overlap: bool
) -> None:
    """A connection without requests is not used, whatever else it is for."""
    members = [connection(0, "1", does=FETCH), connection(1, server, does=does), connection(2, "1", does=FETCH)]
    requests = {0: as_array([(at, at) for at in range(10)]), 1: as_array([(at, at) for at in range(begin, 20)])}
    assert are_used_side_by_side(members, requests) == overlap


def test_two_connections_for_nothing_in_particular_are_never_side_by_side() -> None:
    members = [connection(number, "1", end=10, does=NONE) for number in range(2)]
    assert not any_side_by_side(members)
    assert not are_used_side_by_side(members, {number: as_array([(0, 1), (9, 2)]) for number in range(2)})


TIMES = {"first_time": TIME, "last_time": TIME + timedelta(seconds=1)}
ENDS = (TIME, TIME + timedelta(seconds=1))


def software(*does: int, name: str = JAVA) -> Software:
    return Software(name, "4.0.0", name, {}, dict.fromkeys(does, ("c", "10.0.0.1")))


def connection_rows(count: int, nobodys: int) -> pa.Table:
    rows = [
        row_of(CONNECTIONS, connection_id=number, server="b", client=None if number == nobodys else "10.0.0.1:5",
               **TIMES)
        for number in range(count)
    ]  # fmt: skip
    return small_rows(CONNECTIONS, CONNECTION_COLUMNS, rows)


def test_only_connections_of_producers_that_may_be_java_clients_are_told_apart() -> None:
    of = {
        0: software(PRODUCE),
        2: software(FETCH),
        3: software(PRODUCE),
        4: software(PRODUCE, name="librdkafka"),
    }
    assert producing_connections(connection_rows(5, nobodys=3), of) == [
        ClientConnection(0, ("c", "10.0.0.1"), "b", PRODUCE, (JAVA, "4.0.0"), *ENDS)
    ]


def test_all_connections_of_a_consumers_name_are_told_apart_but_those_that_produce() -> None:
    """The fifth is of a client that may have several connections to a broker. The last name consumes nothing."""
    of = {
        0: software(FETCH, HEARTBEAT, NONE, name="librdkafka"),
        1: software(NONE, HEARTBEAT),
        2: software(NONE),
        3: software(PRODUCE, NONE),
        4: software(FETCH),
        6: software(FETCH, name="kafka-go"),
        5: replace(software(HEARTBEAT), clients={HEARTBEAT: ("d", "10.0.0.1")}),
    }
    found = consuming_connections(connection_rows(7, nobodys=4), of)
    assert [(one.connection_id, one.does) for one in found] == [(0, FETCH), (1, HEARTBEAT), (2, NONE)]
