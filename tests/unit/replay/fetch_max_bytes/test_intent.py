"""What a reader's fetches show of its intent is what follows from each fetch, one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from schemas.tables.values import CONSUMER, FOLLOWER
from tests.unit.replay.fetch_max_bytes.test_leaving import nodes_with
from udfs.columns.arrays import Ints, Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.replay.fetch_max_bytes.closed_loop.by_node import NodeReads
from udfs.replay.fetch_max_bytes.closed_loop.changes import Changes
from udfs.replay.fetch_max_bytes.closed_loop.events import ANSWERED_FETCH, READER_CONNECTION, CapturedFetches
from udfs.replay.fetch_max_bytes.closed_loop.intent import fetches_for_changes, lossy_nodes, paced_fetches
from udfs.replay.fetch_max_bytes.closed_loop.nodes import Nodes
from udfs.replay.fetch_max_bytes.closed_loop.placing import ReaderLogs, Servings
from udfs.replay.fetch_max_bytes.closed_loop.state import LOG_BATCH, READ_PARTITION, READING_CHANGE
from udfs.replay.fetch_max_bytes.state import READABLE_BATCH

NO_READS = new_records(ANSWERED_FETCH, 0)


@dataclass(frozen=True)
class Fetch:
    """A fetch of a node, on the first connection that the node is made of or on a later one."""

    node: int
    connection: int
    request: int
    opens_session: bool
    is_throttled: bool
    returned: int
    beyond_bound: bool = False


@dataclass
class Reader:
    """Fetches by node and time. in_session: whether each node's first connection was in a session before."""

    fetches: list[Fetch]
    in_session: list[bool]
    connections: list[int] = field(default_factory=list)  # the node of each

    @property
    def nodes(self) -> Nodes:
        counts = np.bincount([fetch.node for fetch in self.fetches], minlength=len(self.in_session))
        records = new_records(
            READER_CONNECTION, len(counts), in_session=self.in_session, begin=[5, 900, 0][: len(counts)],
            last_response=[self.last_of(node).request + 1 for node in range(len(counts))], fetches=counts,
            max_wait_ms=[500, 0, 7][: len(counts)], min_bytes=1, max_bytes=1 << 20,
        )  # fmt: skip
        made = nodes_with(self.connections, records)
        return made._replace(first_fetch=np.append(0, np.cumsum(counts)))

    def last_of(self, node: int) -> Fetch:
        return [fetch for fetch in self.fetches if fetch.node == node][-1]

    @property
    def reads(self) -> NodeReads:
        columns: dict[str, Any] = {
            "connection": [of.connection for of in self.fetches], "request": [of.request for of in self.fetches],
            "response": [of.request + 1 for of in self.fetches], "throttled": [of.is_throttled for of in self.fetches],
            "opens_session": [of.opens_session for of in self.fetches],
            "returned": [of.returned for of in self.fetches],
            "beyond_bound": [of.beyond_bound for of in self.fetches],
        }  # fmt: skip
        made, none = new_records(ANSWERED_FETCH, len(self.fetches), **columns), np.zeros(0, np.int64)
        return NodeReads(NO_READS, none, made, NO_READS, NO_READS, NO_READS, first_stay=none)

    def alike(self, number: int) -> int:
        """The first fetch of the same node that was sent at the same time."""
        key = self.fetches[number].node, self.fetches[number].request
        return next(i for i, of in enumerate(self.fetches) if (of.node, of.request) == key)


def drawn(seed: int) -> Reader:
    rng = np.random.default_rng(seed)
    reader = Reader([], [])
    for node in range(int(rng.integers(1, 4))):
        reader.in_session.append(bool(rng.random() < 0.5))
        first, request = len(reader.connections), int(rng.integers(0, 4))
        reader.connections += [node] * int(rng.integers(1, 3))
        for _ in range(int(rng.integers(1, 6))):
            connection = int(rng.integers(first, len(reader.connections)))
            shown = (bool(rng.random() < 0.5), bool(rng.random() < 0.4), int(rng.choice([0, 50, 300])))
            reader.fetches.append(Fetch(node, connection, request, *shown, beyond_bound=bool(rng.random() < 0.5)))
            request += int(rng.integers(0, 3))
    return reader


def test_a_fetch_opens_a_session_if_its_node_was_in_one_or_it_is_the_nodes_first() -> None:
    for seed in range(200):
        reader = drawn(seed)
        found = fetches_for_changes(reader.reads, reader.nodes, CONSUMER)
        for number, fetch in enumerate(reader.fetches):
            own = [i for i, of in enumerate(reader.fetches) if of.node == fetch.node]
            may_open = reader.in_session[fetch.node] or fetch.request == reader.fetches[own[0]].request
            assert (found.node[number], found.request[number]) == (fetch.node, fetch.request)
            assert (found.first[number], found.last[number]) == (own[0], own[-1])
            assert found.opens_session[number] == (fetch.opens_session and may_open)
            assert found.is_throttled[number] == (fetch.is_throttled and fetch.returned == 0)
            waits = reader.nodes.nodes["max_wait_ms"][fetch.node] > 0
            assert found.is_beyond_bound[number] == (fetch.beyond_bound and fetch.returned == 0 and waits)
        assert not fetches_for_changes(reader.reads, reader.nodes, FOLLOWER).is_beyond_bound.any()
        nodes = reader.nodes.nodes
        assert found.horizon.tolist() == [max(int(of["begin"]), int(of["last_response"])) for of in nodes]


def changes_that_stop(stopped: Ints) -> Changes:
    none = np.zeros(0, np.int64)
    return Changes(new_records(READING_CHANGE, 0), none, none, none, stopped)


def one_partition(records_before: list[int], visible_at: list[int]) -> ReaderLogs:
    """A log of one partition, with batches of 100 bytes."""
    n = len(visible_at)
    batches = new_records(
        LOG_BATCH,
        n + 1,
        records_before=records_before,
        bytes_before=100 * np.arange(n + 1),
        visible_at=[*visible_at, 0],
    )
    return ReaderLogs(new_records(READ_PARTITION, 1, end_batch=n), batches, new_records(READABLE_BATCH, n))


def test_the_pace_of_fetches_is_taken_from_each_of_them() -> None:
    """Records are those of all batches that a response returned, wherever the response stands among others."""
    logs = one_partition([0, 3, 8, 20], [1, 2, 9])
    for seed in range(200):
        rng, reader = np.random.default_rng(seed), drawn(seed)
        n = len(reader.fetches)
        stopped = np.flatnonzero(rng.random(n) < 0.3)
        served = rng.integers(0, n, 4)
        begin = rng.integers(0, 4, 4)
        end = np.minimum(begin + rng.integers(-1, 3, 4), 3)
        none = np.zeros(4, np.int64)
        servings = Servings(none, none, np.sort(served), none, 100 * np.maximum(end - begin, 0), begin, end)
        paced = paced_fetches(reader.reads, reader.nodes, logs, servings, changes_that_stop(stopped))
        records = [0] * n
        for fetch, first, last in zip(np.sort(served).tolist(), begin.tolist(), end.tolist(), strict=True):
            records[fetch] += max([0, 3, 8, 20][last] - [0, 3, 8, 20][first], 0)
        assert paced.records.tolist() == records
        stops = {reader.alike(number) for number in stopped.tolist()}
        assert paced.is_stopped.tolist() == [reader.alike(number) in stops for number in range(n)]
        assert paced.max_wait_us.tolist() == [[500_000, 0, 7000][of.node] for of in reader.fetches]
        assert paced.size.tolist() == [of.returned for of in reader.fetches]
        empty = [of.returned == 0 for of in reader.fetches]
        assert (paced.ready_at[empty] == 0).all()


def test_a_response_with_records_was_ready_when_enough_had_come() -> None:
    """One fetch waits for a byte, and one, which has no time to wait, for nothing; an empty one has no such time."""
    reader = Reader([Fetch(0, 0, 50, False, False, 200), Fetch(0, 0, 60, False, False, 0)], [False], [0])
    none, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    servings = Servings(none, none, none, none, 200 * one, none, 2 * one)
    paced = paced_fetches(
        reader.reads, reader.nodes, one_partition([0, 3, 8, 20], [1, 2, 9]), servings, changes_that_stop(none[:0])
    )
    assert paced.ready_at.tolist() == [1, 0]


def captured_with(ids: list[int]) -> CapturedFetches:
    records: Records = new_records(READER_CONNECTION, len(ids), id=ids)
    return cast(CapturedFetches, SimpleNamespace(connections=SimpleNamespace(records=records)))


def test_a_node_lacks_bytes_if_one_of_its_connections_does() -> None:
    nodes = nodes_with([1, NONE, 0, 1], new_records(READER_CONNECTION, 3))
    for lossy, expected in (({7}, [False, True, False]), ({10}, [False, True, False]), ({8}, [False] * 3),
                            ({9, 7}, [True, True, False]), (set(), [False] * 3)):  # fmt: skip
        assert lossy_nodes(captured_with([7, 8, 9, 10]), nodes, frozenset(lossy)).tolist() == expected
