"""How well the captured lane agrees with the capture: when responses are drained, and how much memory is held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from schemas.tables.memory_reasons import DRAINED, HELD
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.time_units import NEVER
from udfs.replay.consumer_memory.consumers import Consumers
from udfs.replay.consumer_memory.draining import ANOTHER_CONNECTION
from udfs.replay.consumer_memory.state import Traces
from udfs.replay.shared.captured_pieces import LEAST_TIME_US, PIECES, SPAN_TOLERANCE
from udfs.replay.shared.fidelity_rows import NO_REASON, FidelityCounts, count_cases, count_codes
from udfs.replay.shared.lanes import CAPTURED

DRAINED_PARTITIONS, CLOSED_LOOP_HELD = "drained_partitions", "closed_loop_held"
TOLERANCE, SMALL = 0.1, 0.01
"""Two amounts of held memory agree if they differ by at most TOLERANCE of the amount, plus SMALL of the most that is
ever held."""


class Levels(NamedTuple):
    """The bytes in use from each time on. time: int64[n], us, rising. level: int64[n], bytes."""

    time: Ints
    level: Ints

    def most(self, begin: Ints, end: Ints) -> Ints:
        """The most bytes in use at any time from begin to end: int64[n]. begin, end: int64[n], us."""
        first, last = (np.searchsorted(self.time, ends, side="right") for ends in (begin, end))
        level = np.concatenate([np.zeros(1, np.int64), self.level])
        return np.array([level[a : b + 1].max() for a, b in zip(first.tolist(), last.tolist(), strict=True)])


def levels_without_bound(messages: Records) -> Levels:
    """The bytes that would be in use without a bound. A message that is released when it comes counts at that time.

    messages: MESSAGE[n].
    """
    complete_at, held_us, size = (messages[name] for name in ("complete_at", "held_us", "size"))
    is_released = held_us != NEVER
    time = np.concatenate([(complete_at + held_us)[is_released], messages["size_known_at"]])
    change = np.concatenate([-size[is_released], size])
    order = np.lexsort((-change, time))
    return Levels(time[order], np.cumsum(change[order]))


def held_alike(captured: Records, replayed: Records, given_up_at: int | None = None) -> dict[str, int]:
    """In how many pieces of the captured time the most bytes held are equal in both (NO_REASON), and in how many they
    differ, by the reasons of HELD. They may be equal a little earlier or later.

    captured, replayed: MESSAGE[n], the messages of the capture and of the closed loop. given_up_at: when the client
    first gave up records that it had not taken (us); this is the reason for every difference from then on.
    """
    begin, end = int(captured["requested_at"].min()), int(captured["complete_at"].max())
    edges = begin + np.arange(PIECES + 1) * (end - begin) // PIECES
    near_us = max(round(SPAN_TOLERANCE * (end - begin)), LEAST_TIME_US)
    in_loop, in_capture = levels_without_bound(replayed), levels_without_bound(captured)
    little = SMALL * in_capture.level.max(initial=0)

    def exceeds(one: Levels, other: Levels) -> Bools:
        most = one.most(edges[:-1], edges[1:])
        return most > (1 + TOLERANCE) * other.most(edges[:-1] - near_us, edges[1:] + near_us) + little

    more, less = exceeds(in_loop, in_capture), exceeds(in_capture, in_loop)
    after = edges[1:] > (edges[-1] if given_up_at is None else given_up_at)
    pieces = {
        HELD.more_held: more & ~after,
        HELD.less_held: less & ~more & ~after,
        HELD.after_giving_up: (more | less) & after,
        NO_REASON: ~more & ~less,
    }
    return {reason: int(is_piece.sum()) for reason, is_piece in pieces.items()}


def verdicts_on_consumers(consumers: Consumers) -> Iterator[tuple[int, FidelityCounts]]:
    """The fidelity counts of each consumer, by its number: when its responses are drained, and what the closed loop
    holds.
    """
    given_up = consumers.closed.given_up_under(CAPTURED)
    for unit in consumers.numbers.tolist():
        yield unit, drained_partitions(consumers.verdicts[unit], bool(consumers.is_told_apart[unit]))
        if consumers.closed.counts[unit]:
            since = given_up["last_requested_at"][given_up["unit"] == unit]
            yield unit, closed_loop_held(consumers, unit, int(since.min()) if len(since) else None)


def drained_partitions(verdicts: Ints, is_told_apart: bool) -> FidelityCounts:
    """How often the rule holds that tells when responses are drained. verdicts: int64[VERDICTS]. is_told_apart: they
    are those of one process.
    """
    if not is_told_apart:
        count = int(verdicts.sum())
        return count_cases(DRAINED_PARTITIONS, {DRAINED.several_processes: count} if count else {}, DRAINED)
    return count_codes(DRAINED_PARTITIONS, verdicts, DRAINED)


def closed_loop_held(consumers: Consumers, unit: int, given_up_at: int | None) -> FidelityCounts:
    """Whether the closed loop at the captured settings holds as much memory as the consumer did.

    If several processes share a name, nobody knows what each of them held: the fetches of one seem to drain the
    responses of others.
    """
    obstacles = sorted(consumers.closed.unchecked[unit])
    if not consumers.is_told_apart[unit]:
        obstacles.insert(0, HELD.several_processes)
    if consumers.verdicts[unit, ANOTHER_CONNECTION]:
        obstacles.append(HELD.another_connection)
    if obstacles:
        return count_cases(CLOSED_LOOP_HELD, {obstacles[0]: PIECES}, HELD)
    captured, replayed = consumers.captured_traces, consumers.unchanged_traces
    in_capture, in_loop = (
        messages[consumers.window.has(messages["requested_at"])]
        for messages in (messages_of_unit(captured, unit), messages_of_unit(replayed, unit))
    )
    if not len(in_capture):
        return count_cases(CLOSED_LOOP_HELD, {}, HELD)
    verdicts = held_alike(in_capture, in_loop, given_up_at)
    return count_cases(CLOSED_LOOP_HELD, {reason: count for reason, count in verdicts.items() if count}, HELD)


def messages_of_unit(traces: Traces, unit: int) -> Records:
    """A unit's messages: MESSAGE[n]."""
    trace = traces.traces[unit]
    return traces.messages[trace["first_message"] : trace["end_message"]]
