"""Readers that leave a broker before they have read everything there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.closed_loop.changes import GIVEN_UP_US, ReaderFetches
from udfs.replay.fetch_max_bytes.closed_loop.events import READER_CONNECTION
from udfs.replay.fetch_max_bytes.closed_loop.intent import bytes_waited_for
from udfs.replay.fetch_max_bytes.closed_loop.leaving import has_closed, is_silent, nodes_left
from udfs.replay.fetch_max_bytes.closed_loop.nodes import Nodes


@dataclass
class Fetch:
    request: int
    response: int
    is_throttled: bool = False


@dataclass
class Node:
    """A reader's node: its fetches, and until when the capture shows its broker."""

    fetches: list[Fetch]
    until: int = ALWAYS
    max_wait_us: int = 0
    is_unread: bool = False
    closed_at: int = field(default=NEVER)

    @property
    def end(self) -> int:
        return self.fetches[-1].response


def drawn(seed: int) -> list[Node]:
    """Nodes that pause, that a quota throttles, and that the capture shows for more or less long afterwards."""
    rng = np.random.default_rng(seed)
    nodes = []
    for _ in range(int(rng.integers(1, 4))):
        at, fetches = int(rng.integers(0, 3)) * GIVEN_UP_US // 2, list[Fetch]()
        for _ in range(int(rng.integers(1, 5))):
            response = at + int(rng.choice([10, GIVEN_UP_US // 4]))
            fetches.append(Fetch(at, response, is_throttled=bool(rng.random() < 0.2)))
            at = response + int(rng.choice([0, 5, GIVEN_UP_US, GIVEN_UP_US + 3, 2 * GIVEN_UP_US]))
        wait = int(rng.choice([0, GIVEN_UP_US // 2]))
        after = rng.choice([0, GIVEN_UP_US, GIVEN_UP_US + 1, GIVEN_UP_US + 4, 2 * GIVEN_UP_US + 1, 9 * GIVEN_UP_US])
        until = ALWAYS if rng.random() < 0.1 else fetches[-1].response + wait + int(after)
        nodes.append(Node(fetches, until, wait, is_unread=bool(rng.random() < 0.5)))
    return nodes


def fetches_of(nodes: Sequence[Node]) -> ReaderFetches:
    counts = [len(node.fetches) for node in nodes]
    every = [fetch for node in nodes for fetch in node.fetches]
    end = np.repeat(np.cumsum(counts), counts)
    throttled = np.array([fetch.is_throttled for fetch in every])
    return ReaderFetches(
        request=np.array([fetch.request for fetch in every]),
        response=np.array([fetch.response for fetch in every]),
        returned=np.zeros(len(every), np.int64),
        node=np.repeat(np.arange(len(nodes)), counts),
        first=end - np.repeat(counts, counts),
        last=end - 1,
        opens_session=np.zeros_like(throttled),
        is_throttled=throttled,
        is_beyond_bound=np.zeros_like(throttled),
        horizon=np.array([node.end for node in nodes]),
    )


def silent(node: Node) -> bool:
    """It sends nothing for longer than a second, and than before any earlier fetch, beyond the longest wait."""
    pauses = [one.request - before.response for before, one in zip(node.fetches, node.fetches[1:], strict=False)]
    silence = node.until - node.end - node.max_wait_us
    return silence > max([*pauses, GIVEN_UP_US]) and not node.fetches[-1].is_throttled


def left(nodes: Sequence[Node], *, is_one_process: bool) -> list[bool]:
    """It leaves silently what it has not read; one process leaves with that all other nodes that it leaves then."""
    away = [node for node in nodes if silent(node) and node.is_unread]
    return [
        node in away
        or (is_one_process and silent(node)
            and any(abs(node.end - one.end) <= GIVEN_UP_US + node.max_wait_us for one in away))
        for node in nodes
    ]  # fmt: skip


def test_a_reader_leaves_the_nodes_that_plain_rules_say() -> None:
    found = set()
    for seed in range(400):
        nodes, fetches = drawn(seed), fetches_of(drawn(seed))
        wait_us, until = (np.array([getattr(node, name) for node in nodes]) for name in ("max_wait_us", "until"))
        is_quiet = is_silent(fetches, wait_us, until)
        assert (seed, is_quiet.tolist()) == (seed, [silent(node) for node in nodes])
        unread = np.array([node.is_unread for node in nodes])
        for one in (True, False):
            gone = nodes_left(fetches, is_quiet, unread, wait_us, one).tolist()
            assert (seed, gone) == (seed, left(nodes, is_one_process=one))
            found |= set(gone)
    assert found == {True, False}


def test_one_process_leaves_at_once_what_it_last_asked_within_a_second_and_the_longest_wait() -> None:
    wait_us = 7
    for apart, together in ((GIVEN_UP_US + wait_us, True), (GIVEN_UP_US + wait_us + 1, False)):
        nodes = [Node([Fetch(0, 10)], NEVER, wait_us, is_unread=True), Node([Fetch(0, 10 + apart)], NEVER, wait_us)]
        quiet, unread = np.array([True, True]), np.array([True, False])
        gone = nodes_left(fetches_of(nodes), quiet, unread, np.array([wait_us] * 2), is_one_process=True)
        assert gone.tolist() == [True, together]


def connections(*rows: tuple[int, int, int, int]) -> Records:
    """READER_CONNECTION of (id, broker, begin, last response)."""
    id_, broker, begin, last = zip(*rows, strict=True)
    return new_records(READER_CONNECTION, len(rows), id=id_, broker=broker, begin=begin, last_response=last)


def nodes_with(node: Sequence[int], records: Records) -> Nodes:
    none = np.zeros(0, np.int64)
    return Nodes("consumer", records, none, True, none.astype(bool), np.array(node), none, none, none)


@pytest.mark.parametrize(
    ("rows", "node", "closed_at", "closed"),
    [
        ([(7, 0, 0, 50)], [0], {7: 100}, True),
        ([(7, 0, 0, 50)], [0], {7: 101}, False),
        ([(7, 0, 0, 50)], [0], {}, False),
        ([(7, 0, 0, 50), (8, 0, 51, 0)], [0, NONE], {7: 60}, False),
        ([(7, 0, 0, 50), (8, 0, 50, 0)], [0, NONE], {7: 60}, True),
        ([(7, 0, 0, 50), (8, 1, 70, 80)], [0, NONE], {7: 60}, True),
        ([(9, 0, 60, 90), (7, 0, 0, 50)], [0, 0], {9: 95}, True),
        ([(9, 0, 60, 90), (7, 0, 0, 50)], [0, 0], {7: 55}, False),
    ],
    ids=[
        "in the capture", "after the capture", "never", "another one follows", "another one was open before",
        "another one is to another broker", "the last of a node is closed", "only the first of a node is closed",
    ],
)  # fmt: skip
def test_a_reader_has_closed_a_node_if_its_last_connection_is_closed_and_no_other_follows(
    rows: list[tuple[int, int, int, int]], node: list[int], closed_at: dict[int, int], closed: bool
) -> None:
    records = connections(*rows)
    assert has_closed(nodes_with(node, records), records, closed_at, np.array([100])).tolist() == [closed]


def test_each_node_is_closed_by_its_own_connections() -> None:
    records = connections((1, 0, 0, 50), (2, 1, 0, 60), (3, 2, 0, 70))
    nodes = nodes_with([2, 0, 1], records)
    found = has_closed(nodes, records, {2: 65, 3: 75}, np.array([100, 74, 100]))
    assert found.tolist() == [True, False, False]


def test_a_fetch_waits_for_the_fewer_of_its_min_and_max_bytes_or_for_nothing() -> None:
    limits = new_records(
        READER_CONNECTION, 4, max_wait_ms=[500, 500, 0, 1], min_bytes=[30, 80, 30, 0], max_bytes=[50, 50, 50, 50]
    )
    assert bytes_waited_for(nodes_with([], limits)).tolist() == [30, 50, 1, 1]
