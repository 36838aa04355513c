"""Does the closed loop at the captured settings hold as much memory as the capture shows, and when?"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints
from udfs.replay.consumer_memory.state import NOT_GIVEN_BACK, Trace
from udfs.replay.shared.captured_pieces import LEAST_TIME_US, PIECES, SPAN_TOLERANCE

TOLERANCE, SMALL = 0.1, 0.01


class Drift(StrEnum):
    """How the closed loop departed from the capture: schemas.tables.fidelity_reasons."""

    MORE_HELD = "more_held"
    LESS_HELD = "less_held"
    AFTER_GIVING_UP = "after_giving_up"


AGREED = ""


class Levels(NamedTuple):
    """Bytes in use from each time (us) on, int64[n] each, in the order of time."""

    time: Ints
    level: Ints

    def most(self, begin: Ints, end: Ints) -> Ints:
        """The most bytes in use at any time from begin to end, of several spans of time."""
        first, last = (np.searchsorted(self.time, ends, side="right") for ends in (begin, end))
        level = np.concatenate([np.zeros(1, np.int64), self.level])
        return np.array([level[a : b + 1].max() for a, b in zip(first.tolist(), last.tolist(), strict=True)])


def levels_of(trace: Trace) -> Levels:
    """What would be in use without a bound: what is given back as soon as it is there is in use at that time."""
    back = trace.held != NOT_GIVEN_BACK
    time = np.concatenate([(trace.came + trace.held)[back], trace.started])
    change = np.concatenate([-trace.size[back], trace.size])
    order = np.lexsort((-change, time))
    return Levels(time[order], np.cumsum(change[order]))


def held_alike(captured: Trace, replayed: Trace, given_up: int | None = None) -> Counter[str]:
    """Of each piece of the captured time, whether both hold as much at most, a little earlier or later: drifts.

    given_up: when the client first gave up what it had not taken (us), from when on the drift is AFTER_GIVING_UP.
    """
    begin, end = int(captured.asked.min()), int(captured.came.max())
    ends = begin + np.arange(PIECES + 1) * (end - begin) // PIECES
    near = max(round(SPAN_TOLERANCE * (end - begin)), LEAST_TIME_US)
    ours, theirs = levels_of(replayed), levels_of(captured)
    some = SMALL * theirs.level.max(initial=0)

    def exceeds(one: Levels, other: Levels) -> Bools:
        most = one.most(ends[:-1], ends[1:])
        return most > (1 + TOLERANCE) * other.most(ends[:-1] - near, ends[1:] + near) + some

    more, less = exceeds(ours, theirs), exceeds(theirs, ours)
    after = ends[1:] > (ends[-1] if given_up is None else given_up)
    drifts = (
        (Drift.MORE_HELD, more & ~after), (Drift.LESS_HELD, less & ~more & ~after),
        (Drift.AFTER_GIVING_UP, (more | less) & after), (AGREED, ~more & ~less),
    )  # fmt: skip
    return Counter({str(drift): int(pieces.sum()) for drift, pieces in drifts})
