"""Partitions that move to another broker: the reader goes on there from where it is at the one before, in every lane.

When a partition has a new leader, or a reader turns to another replica, it keeps its position and what is buffered
(SubscriptionState); what is under way is dropped. As with reopened connections, the capture cannot distinguish that
from a reader that left and came back: see `reconnects` for what both have to have in common.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from schemas.tables.steps import READS
from udfs.columns.arrays import edges
from udfs.replay.fetch_max_bytes.closed_intent import Intent
from udfs.replay.fetch_max_bytes.closed_unit import Unit
from udfs.replay.fetch_max_bytes.observed import FETCHED, Observed, joined
from udfs.replay.fetch_max_bytes.reconnects import GONE_US


class Reading(NamedTuple):
    """A partition as one node reads it: when from, when to (us), the node's place, and the partition's number."""

    begin: int
    end: int
    node: int
    number: int


class Move(NamedTuple):
    """A partition that goes from one node to another."""

    before: Reading
    after: Reading


def moves_between(nodes: Sequence[Observed], keys: Sequence[str]) -> list[Move]:
    """The partitions that go from one broker to another. keys: broker, topic and partition by number."""
    readings: dict[str, list[Reading]] = defaultdict(list)
    for place, seen in enumerate(nodes):
        request = joined(seen.fetches, FETCHED)[READS.request_time]
        for number, first in seen.first.items():
            end = int(request[seen.last[number].fetch])
            readings[keys[number].partition("\0")[2]].append(Reading(first.time, end, place, number))
    ordered = (sorted(of) for of in readings.values())
    pairs = (Move(*pair) for of in ordered for pair in pairwise(of))
    return [move for move in pairs if goes_on(nodes, move)]


def goes_on(nodes: Sequence[Observed], move: Move) -> bool:
    """Whether the reader can have gone on at another broker."""
    before, after = move
    one, other = nodes[before.node], nodes[after.node]
    soon = before.end < after.begin <= before.end + GONE_US
    onward = other.first[after.number].fetch_offset >= one.last[before.number].fetch_offset
    return soon and onward and one.broker != other.broker and one.limits == other.limits


def with_moves(nodes: Sequence[Observed], moves: Sequence[Move], keys: Sequence[str]) -> list[Observed]:
    """The nodes, knowing what moves away and here; the log is known where a partition moves to as where it was."""
    found = [replace(seen, logs=seen.logs.copy()) for seen in nodes]
    away: Mapping[int, dict[int, int]] = defaultdict(dict)
    here: Mapping[int, dict[int, int]] = defaultdict(dict)
    for before, after in moves:
        one, other = found[before.node], found[after.node]
        away[before.node][before.number] = other.first[after.number].since
        first = one.first[before.number].fetch_offset
        here[after.node][after.number] = here[before.node].get(before.number, first)
        key, there = keys[after.number], one.logs.get(keys[before.number], [])
        other.logs[key] = [*other.logs.get(key, []), *there]
    return [replace(seen, moved_away=away[place], moved_here=here[place]) for place, seen in enumerate(found)]


def follow(unit: Unit, intents: Sequence[Intent], moves: Sequence[Move]) -> Unit:
    """The whole unit, its partitions that come from another broker bound to the same ones there."""
    parts = edges([len(intent.unit.number) for intent in intents])
    follows, shift = unit.follows.copy(), unit.shift.copy()
    for before, after in moves:
        one, other = (int(np.flatnonzero(intents[of.node].unit.number == of.number)[0]) for of in (before, after))
        bases, others = intents[before.node].logs[one].base, intents[after.node].logs[other].base
        here, there = int(parts[after.node]) + other, int(parts[before.node]) + one
        at = int(np.searchsorted(others, bases[0])) if len(bases) else len(others)
        if at < len(others) and others[at] == bases[0]:
            follows[here] = there
            shift[here] = unit.first[here] + at - unit.first[there]
    return unit._replace(follows=follows, shift=shift)
