"""Whose partitions each server answers for: the leaders that Metadata responses list, beside fetches and appends that
the server did not refuse.

A leader epoch belongs to one leader, so a fetch that names it and is answered shows which node the server is. A produce
request has no
epoch: its leader is the one that responses have both before and after it, under one epoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints


class TopicPartition(NamedTuple):
    """A partition of a topic, which is called by its id or name, in the cluster of a server."""

    cluster_id: str
    topic: str
    partition: int


class Leadership(NamedTuple):
    """A leader of a partition, and from when to when responses have it, us since 1970."""

    of: TopicPartition
    epoch: int
    node_id: int
    first: int
    last: int


class AnsweredFetch(NamedTuple):
    """A server answered a fetch that names a partition's epoch."""

    server: str
    of: TopicPartition
    epoch: int


class AnsweredAppend(NamedTuple):
    """A server appended to a partition, the first and the last time when, us since 1970."""

    server: str
    of: TopicPartition
    first: int
    last: int


def leaders_by_server(
    leaders: Iterable[Leadership], fetched: Iterable[AnsweredFetch], produced: Iterable[AnsweredAppend]
) -> dict[str, set[int]]:
    """By server, the nodes that lead the partitions it answers for; servers of which nothing shows a leader are left
    out.
    """
    of_epoch: dict[tuple[TopicPartition, int], set[int]] = defaultdict(set)
    listed: dict[TopicPartition, list[Leadership]] = defaultdict(list)
    for led in leaders:
        of_epoch[led.of, led.epoch].add(led.node_id)
        listed[led.of].append(led)
    spans = {of: LeaderSpans.of(each) for of, each in listed.items()}
    nodes: dict[str, set[int]] = defaultdict(set)
    for fetch in fetched:
        nodes[fetch.server] |= only_node(of_epoch.get((fetch.of, fetch.epoch), set()))
    for appended in produced:
        if appended.of in spans:
            for time in (appended.first, appended.last):
                nodes[appended.server] |= spans[appended.of].leader_at(time)
    return {server: of for server, of in nodes.items() if of}


class LeaderSpans(NamedTuple):
    """The leaders of a partition and from when to when responses have them, us since 1970; int64[n] each."""

    node_id: Ints
    first: Ints
    last: Ints

    @staticmethod
    def of(leaders: Iterable[Leadership]) -> LeaderSpans:
        """The spans of a partition's leaders."""
        return LeaderSpans(*np.array([(led.node_id, led.first, led.last) for led in leaders], np.int64).T)

    def leader_at(self, time: int) -> set[int]:
        """The leader at a time, if responses from before and after it have one epoch and leader alone."""
        return only_node(set(self.node_id[(self.first <= time) & (time <= self.last)].tolist()))


def only_node(nodes: set[int]) -> set[int]:
    """The nodes if there is a single one, else none: if a topic was made again under its name, several leaders may have
    had the same epoch.
    """
    return nodes if len(nodes) == 1 else set()
