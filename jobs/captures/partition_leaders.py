"""The nodes for whose partitions each server answers. They follow from the leaders that Metadata responses list, and
from fetches and appends that the server did not refuse.

A leader epoch belongs to one leader, so an answered fetch with a leader epoch shows which node the server is. A produce
request has no epoch: its leader is the one that responses list with the same epoch both before and after it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints


class TopicPartition(NamedTuple):
    """A partition of a topic, with the topic's id or name, in the cluster of a server."""

    cluster_id: str
    topic: str
    partition: int


class Leadership(NamedTuple):
    """A leader of a partition, and the times of the first and the last response with it, us since 1970."""

    of: TopicPartition
    epoch: int
    node_id: int
    first: int
    last: int


class AnsweredFetch(NamedTuple):
    """A server answered a fetch that has a partition's leader epoch."""

    server: str
    of: TopicPartition
    epoch: int


class AnsweredAppend(NamedTuple):
    """A server appended to a partition: the times of the first and the last append, us since 1970."""

    server: str
    of: TopicPartition
    first: int
    last: int


def leaders_by_server(
    leaders: Iterable[Leadership], fetched: Iterable[AnsweredFetch], produced: Iterable[AnsweredAppend]
) -> dict[str, set[int]]:
    """The nodes that lead the partitions for which each server answers, by server. Servers for which nothing shows a
    leader are left out.
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
    """The leaders of a partition: node ids, and the times of the first and the last response with each, us since 1970;
    int64[n] each.
    """

    node_id: Ints
    first: Ints
    last: Ints

    @staticmethod
    def of(leaders: Iterable[Leadership]) -> LeaderSpans:
        """The spans of a partition's leaders."""
        return LeaderSpans(*np.array([(led.node_id, led.first, led.last) for led in leaders], np.int64).T)

    def leader_at(self, time: int) -> set[int]:
        """The leader at a time, if responses from before and after it show a single leader with the same epoch."""
        return only_node(set(self.node_id[(self.first <= time) & (time <= self.last)].tolist()))


def only_node(nodes: set[int]) -> set[int]:
    """The nodes if there is a single one, else an empty set: if a topic was deleted and created again with the same
    name, several leaders may have had the same epoch.
    """
    return nodes if len(nodes) == 1 else set()
