"""Lanes with `num.replica.fetchers`: so many fetchers of a follower share what its captured ones read.

A broker has so many for each leader, each with a connection, a fetch session and limits of its own, and Kafka's rule
says which of them fetches a partition (fetchers.py). In such a lane the partitions of all captured fetchers of the
follower are dealt by that rule. Each new one goes at the pace of those that fetched its partitions.

What becomes of a partition stands with the captured fetcher that fetched it. A new one's requests, and what it holds,
stand with the captured one that fetched most of its partitions: so what all of them come to is what the follower does.
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
    """What a fetcher of a lane comes to.

    captured: the places of captured fetchers whose partitions it has. stands_with: the place of the one that has most
    of them. numbers: where the numbers of each captured one's partitions begin among its own.
    """

    outcome: ReaderLanes
    captured: Sequence[int]
    stands_with: int
    numbers: Sequence[int]


def are_dealt_anew(rules: Sequence[Records]) -> bool:
    """Whether in some lane the partitions of several fetchers are dealt anew. rules: RULES[nodes, lanes] of each."""
    return len(rules) > 1 and all(
        (of["profile"] == REPLICA_FETCHER).all() and (of["readers"] != AS_CAPTURED).any() for of in rules
    )


def common_time(
    rules: Sequence[Records], units: Sequence[Unit], numbers: Sequence[int], buckets: int
) -> tuple[Stays | None, int]:
    """(The time over which a follower's fetchers are shown together, None for each one's own; how many of these buckets
    each has). numbers: how many numbers the partitions of each have.
    """
    if not are_dealt_anew(rules):
        return None, buckets
    begins, ends = (np.concatenate([unit.nodes[name] for unit in units]) for name in ("begin", "horizon"))
    return stays_of(begins, ends), buckets_within_cells(rules[0].shape[1], sum(numbers), buckets)


def outcomes_of_fetchers(captured: Sequence[ReaderInLanes], fetchers: int, lanes: Ints) -> list[ReaderLanes]:
    """What each captured fetcher's partitions come to with so many fetchers in some lanes: int64[n], which they are."""
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
    """The numbers of the partitions of each captured fetcher that one of so many fetchers has: int64[n] each."""
    return [
        np.unique(unit.partitions["number"][unit.partitions["dealt"] % fetchers == number].astype(np.int64))
        for unit in units
    ]


def replayed_fetcher(captured: Sequence[ReaderInLanes], fetchers: int, number: int, lanes: Ints) -> Fetcher | None:
    """One of so many fetchers of a follower, None where no partition is its own. lanes: int64[n], which they are.

    Fetchers have nothing in common, so each is replayed alone, and what it reads is gone before the next one.
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
    """What a fetcher of a lane comes to with the partitions of the captured one at a place; requests, and what is held,
    if it stands with that one.
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
