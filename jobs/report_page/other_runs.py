"""What the page of a run says of others in its lake: what changed since the one before, and trends by night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.report_page.question import Plot
from jobs.terminal.screen import Grid


@dataclass(frozen=True)
class OtherRuns:
    """What a run's page shows of other runs; all is empty if there are none.

    previous: the run that the page compares its own with, as text. command: the command that compares the two. changes:
    (the head, the sentences) of each part of the comparison. nights: the figures that matter most, with a row for each
    night. plots: the same figures as curves.
    """

    previous: str = ""
    command: str = ""
    changes: Sequence[tuple[str, Sequence[str]]] = ()
    nights: Grid | None = None
    plots: Sequence[Plot] = ()
