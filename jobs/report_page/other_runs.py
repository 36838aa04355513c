"""What a run's page says about other runs in its lake: what changed since the previous one, and trends by night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.report_page.question import Plot
from jobs.terminal.screen import Grid


@dataclass(frozen=True)
class OtherRuns:
    """What a run's page shows of other runs; all is empty if there are none.

    previous: the run with which the page compares its own, as text. command: the command that compares the two.
    changes: (heading, sentences) of each part of the comparison. nights: the most important figures, with a row for
    each night.
    plots: the same figures as curves.
    """

    previous: str = ""
    command: str = ""
    changes: Sequence[tuple[str, Sequence[str]]] = ()
    nights: Grid | None = None
    plots: Sequence[Plot] = ()
