"""report: a run of the lake as one self-contained HTML page that answers twenty questions."""

from __future__ import annotations

from jobs.report.job import main

__all__ = ["main"]
