"""The work of an application between its polls is what follows from each pair of calls, one by one."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from udfs.replay.fetch_max_bytes.closed_loop.polls import TakenResponses, WorkBetweenPolls, work_between_polls


class Call(NamedTuple):
    """A call of poll(): when it was, when its first response came, its records, whether the reader stood still before
    it, and the nodes that it asked.
    """

    at: int
    came: int
    records: int
    is_stopped: bool
    nodes: list[int]


def drawn(seed: int) -> TakenResponses:
    """Responses of an application that works most of the time, and reads from one node or two. Times are multiples of
    100 us, so that limits are met exactly.
    """
    rng = np.random.default_rng(seed)
    at_work, quickest = rng.choice([1.0, 0.9, 0.5]), int(rng.choice([0, 100, 3000]))
    rows, at = list[tuple[int, int, int, int, bool]](), 50_000
    for _ in range(int(rng.integers(8, 30))):
        pause, is_work = int(rng.integers(1, 12)) * 1000, rng.random() < at_work
        at += pause if is_work else int(rng.choice([301, 500, 9000]))
        waited = pause // int(rng.choice([1, 2])) // 100 * 100 if is_work else int(rng.choice([0, 500, 600]))
        for node in range(int(rng.integers(1, 3))):
            rows.append((node, at - waited - quickest, at, int(rng.integers(0, 20)), bool(rng.random() < 0.03)))
            at += int(rng.choice([20, 100, 300])) if node == 0 else 0
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return TakenResponses(*columns)


def calls_of(taken: TakenResponses) -> list[Call]:
    """Fetches that follow each other within 300 us are of one call."""
    calls, last = list[Call](), -1000
    for node, came, fetched, records, stopped in zip(*(column.tolist() for column in taken), strict=True):
        if fetched - last > 300:
            calls.append(Call(fetched, came, 0, is_stopped=False, nodes=[]))
        call = calls[-1]
        calls[-1] = call._replace(
            came=min(call.came, came), records=call.records + records, is_stopped=call.is_stopped or stopped,
            nodes=[*call.nodes, node],
        )  # fmt: skip
        last = fetched
    return calls


def plain_work(taken: TakenResponses) -> WorkBetweenPolls | None:
    calls = calls_of(taken)
    shortest = min(call.at - call.came for call in calls)
    pairs = [(one, after) for one, after in pairwise(calls)
             if one.records > 0 and not after.is_stopped]  # fmt: skip
    at_work = [(one, after) for one, after in pairs if after.at - after.came > shortest + 500]
    worked = sum(after.at - one.at for one, after in at_work)
    waited = sum(max(after.came - one.at, 0) for one, after in pairs if (one, after) not in at_work)
    if len(taken.fetched) < 10 or len(at_work) < 10 or worked < 0.8 * (worked + waited):
        return None
    if sum(after.at - after.came for _, after in at_work) < 0.5 * worked:
        return None
    all_records = sum(one.records for one, _ in at_work)
    times = [
        after.at - one.at
        if (one, after) in at_work
        else min(one.records * worked // all_records, max(after.came - one.at, 0))
        for one, after in pairs
    ]
    return WorkBetweenPolls(
        np.array([one.nodes[0] for one, _ in pairs]), np.array([one.records for one, _ in pairs]), np.array(times),
        max(shortest, 0), 0 if calls[0].is_stopped else max(calls[0].at - calls[0].came, 0), np.array(calls[0].nodes),
    )  # fmt: skip


def as_lists(work: WorkBetweenPolls | None) -> list[object] | None:
    return None if work is None else [of.tolist() if isinstance(of, np.ndarray) else of for of in work]


@pytest.mark.parametrize("first", range(0, 400, 200))
def test_work_between_polls_is_as_plain_rules_say(first: int) -> None:
    known = 0
    for seed in range(first, first + 200):
        taken = drawn(seed)
        work = work_between_polls(taken)
        assert (seed, as_lists(work)) == (seed, as_lists(plain_work(taken)))
        known += work is not None
    assert 40 < known < 160


def evenly(work_us: int, waited_us: int, pause_us: int, pauses: int) -> TakenResponses:
    """Twenty calls after work, for whose end a response waited, and some calls that a response woke up."""
    at, rows = 0, [(0, -100, 0, 5, False)]
    for number in range(20 + pauses):
        at += work_us if number < 20 else pause_us
        rows.append((0, at - (waited_us if number < 20 else 100), at, 5, False))
    return TakenResponses(*(np.array(column) for column in zip(*rows, strict=True)))


def test_an_application_at_work_for_four_fifths_of_the_time_is_always_at_work() -> None:
    """It works for 20 x 8 ms, and waits for 40 ms."""
    assert work_between_polls(evenly(8000, 8000, 4100, 10)) is not None
    assert work_between_polls(evenly(8000, 8000, 4101, 10)) is None


def test_responses_of_an_application_at_work_wait_for_half_of_the_work() -> None:
    assert work_between_polls(evenly(8000, 4000, 4000, 0)) is not None
    assert work_between_polls(evenly(8000, 3999, 4000, 0)) is None
