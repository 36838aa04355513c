"""Results of a benchmark as lines: medians, and ratios to the peers of the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ROUNDS = 5


@dataclass(frozen=True)
class Timing:
    """One contestant: its name, and the seconds of each measured round. All contestants do the same work."""

    name: str
    seconds: Sequence[float]

    @property
    def median(self) -> float:
        """The middle round."""
        return statistics.median(self.seconds)


def timed(
    name: str,
    work: Callable[[], object],
    *,
    warm_up: int = 1,
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Run the work this many times, after `warm_up` rounds that do not count.

    clock: time.process_time for CPU time, which does not depend on other work of the machine.
    """
    seconds = []
    for _ in range(warm_up + rounds):
        start = clock()
        work()
        seconds.append(clock() - start)
    return Timing(name, seconds[warm_up:])


def told(title: str, amount: int, unit: str, ours: Timing, peers: Sequence[Timing]) -> str:
    """The contestants with their rates and, for a peer, how many times faster refetch was."""
    lines = [title, f"  {'':<42}{'median':>10}  {'slowest':>10}  {unit + '/s':>14}  {'refetch is':>11}"]
    for timing in (ours, *peers):
        ratio = "" if timing is ours else f"{timing.median / ours.median:,.1f} x"
        lines.append(
            f"  {timing.name:<42}{timing.median * 1000:>7,.1f} ms  {max(timing.seconds) * 1000:>7,.1f} ms"
            f"  {amount / timing.median:>14,.0f}  {ratio:>11}"
        )
    return "\n".join(lines)
