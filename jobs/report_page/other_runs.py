"""What the page of a run says of others in its lake: what changed since the one before, and trends by night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.report_page.question import Plot
from jobs.terminal.screen import Grid


@dataclass(frozen=True)
class OtherRuns:
    """Beside a run, all empty where there is no other.

    previous: the run that it is compared with, and how that is asked for on a command line. changes: by part of the
    comparison its sentences. nights: the figures that matter most, a row a night. plots: the same as curves.
    """

    previous: str = ""
    command: str = ""
    changes: Sequence[tuple[str, Sequence[str]]] = ()
    nights: Grid | None = None
    plots: Sequence[Plot] = ()
