"""Lanes with `num.replica.fetchers`: this number of fetchers shares the partitions that a follower's fetchers read.

A broker has this number of fetchers for each leader. Each has its own connection, fetch session and limits, and Kafka's
rule says which of them fetches a partition (fetchers.py). In such a lane, the partitions of all captured fetchers of
the follower are dealt by that rule. The pace of each of the lane's fetchers is that of the captured fetchers that
fetched its partitions.

The tables have rows for captured fetchers only. What a partition gets is in the row of the captured fetcher that
fetched it. The requests and the held bytes of one of the lane's fetchers are counted with the captured fetcher that
fetched most of its partitions. So the rows of all captured fetchers add up to what the follower does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, stretch_edges
from udfs.columns.records import new_records
from udfs.replay.fetch_max_bytes.closed_loop.joined_units import joined_unit, units_in_one
from udfs.replay.fetch_max_bytes.closed_loop.outcomes import blank_outcome, joined_outcomes
from udfs.replay.fetch_max_bytes.closed_loop.state import LANE_OUTCOME, ReaderLanes, Unit
from udfs.replay.fetch_max_bytes.closed_loop.timeline import Stays, buckets_within_cells, stays_of
from udfs.replay.fetch_max_bytes.closed_loop.together import ReaderInLanes, replay_readers
from udfs.replay.fetch_max_bytes.settings import REPLICA_FETCHER
from udfs.replay.shared.lanes import AS_CAPTURED


class Fetcher(NamedTuple):
    """The outcome of a fetcher of a lane.

    captured: the indices of the captured fetchers whose partitions it has. stands_with: the index of the captured
    fetcher that has most of them, with which it is counted. numbers: where the partition numbers of each captured
    fetcher begin among its own.
    """

    outcome: ReaderLanes
    captured: Sequence[int]
    stands_with: int
    numbers: Sequence[int]


def are_dealt_anew(rules: Sequence[Records]) -> bool:
    """Whether the partitions of several fetchers are dealt anew in some lane. rules: RULES[nodes, lanes] of each."""
    return len(rules) > 1 and all(
        (of["profile"] == REPLICA_FETCHER).all() and (of["readers"] != AS_CAPTURED).any() for of in rules
    )


def common_time(
    rules: Sequence[Records], units: Sequence[Unit], numbers: Sequence[int], buckets: int
) -> tuple[Stays | None, int]:
    """(The time over which a follower's fetchers are shown together, None if each has its own; the number of buckets of
    each, at most `buckets`).

    numbers: how many partition numbers each fetcher has.
    """
    if not are_dealt_anew(rules):
        return None, buckets
    begins, ends = (np.concatenate([unit.nodes[name] for unit in units]) for name in ("begin", "horizon"))
    return stays_of(begins, ends), buckets_within_cells(rules[0].shape[1], sum(numbers), buckets)


def outcomes_of_fetchers(captured: Sequence[ReaderInLanes], fetchers: int, lanes: Ints) -> list[ReaderLanes]:
    """The outcome of each captured fetcher's partitions in some lanes, which have `fetchers` fetchers.

    lanes: int64[n], indices.
    """
    dealt = (replayed_fetcher(captured, fetchers, number, lanes) for number in range(fetchers))
    found = [fetcher for fetcher in dealt if fetcher is not None]
    outcomes = list[ReaderLanes]()
    for place, of in enumerate(captured):
        parts = [part_of_fetcher(fetcher, place) for fetcher in found if place in fetcher.captured]
        numbers = len(of.outcome.given_up_backlogs)
        blank = [] if parts else [blank_outcome(of.outcome, of.unit, numbers, lanes)]
        outcomes.append(joined_outcomes([*parts, *blank], are_one_process=True))
    return outcomes


def own_partitions(units: Sequence[Unit], fetchers: int, number: int) -> list[Ints]:
    """The numbers of each captured fetcher's partitions that fetcher `number` of `fetchers` has: int64[n] each."""
    return [
        np.unique(unit.partitions["number"][unit.partitions["dealt"] % fetchers == number].astype(np.int64))
        for unit in units
    ]


def replayed_fetcher(captured: Sequence[ReaderInLanes], fetchers: int, number: int, lanes: Ints) -> Fetcher | None:
    """Replay fetcher `number` of `fetchers` of a follower; None if it has no partition. lanes: int64[n], indices.

    Fetchers have nothing in common, so each is replayed alone, and its arrays are freed before the next one.
    """
    own = [len(numbers) for numbers in own_partitions([of.unit for of in captured], fetchers, number)]
    places = np.flatnonzero(own).tolist()
    if not places:
        return None
    members = [captured[place] for place in places]
    numbers = [len(of.outcome.given_up_backlogs) for of in members]
    rules = np.concatenate([of.rules[:, lanes] for of in members])
    together = units_in_one([of.unit for of in members], numbers)
    unit, first = joined_unit(together, rules["meter"][:, 0].copy(), fetchers, number)
    rules = np.ascontiguousarray(rules[first])
    rules["application"] = np.arange(len(first))[:, np.newaxis]
    outcome = blank_outcome(captured[0].outcome, unit, sum(numbers), lanes)
    replay_readers([ReaderInLanes(unit, rules, outcome)])
    return Fetcher(outcome, places, int(np.argmax(own)), stretch_edges(numbers).tolist())


def part_of_fetcher(fetcher: Fetcher, place: int) -> ReaderLanes:
    """The outcome of a lane's fetcher for the partitions of the captured fetcher at index `place`. Requests and held
    bytes are in it only if the fetcher is counted with that captured one.
    """
    first, end = fetcher.numbers[fetcher.captured.index(place) :][:2]
    of, timeline = fetcher.outcome, fetcher.outcome.timeline
    part = of._replace(
        sums=of.sums._replace(partitions=of.sums.partitions[first:end]),
        timeline=timeline._replace(buckets=timeline.buckets[:, first:end]),
        catch_up_us=of.catch_up_us[first:end],
        given_up_backlogs=of.given_up_backlogs[first:end],
    )
    if fetcher.stands_with == place:
        return part
    lanes, sums = part.lanes, part.sums
    return part._replace(
        sums=sums._replace(responses=np.zeros_like(sums.responses), sizes=np.zeros_like(sums.sizes)),
        timeline=part.timeline._replace(held=np.zeros_like(timeline.held)),
        lanes=new_records(LANE_OUTCOME, len(lanes), is_finished=lanes["is_finished"]),
    )
