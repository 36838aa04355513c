"""A run's window in words: from when requests count, and which ones are left out."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.report_page.findings import KnownRun


def window_sentences(run: KnownRun) -> Iterator[str]:
    """A sentence for each end of the window that lies within the capture."""
    begin, end = run.window
    if begin is not None:
        yield f"counted from {begin} on; what the capture has before that warmed up the state, and nothing more"
    if end is not None:
        yield f"what the capture has from {end} on is left out"


def window_flags(run: KnownRun) -> list[str]:
    """The flags that ask for the same window."""
    return [f"--{name}={at}" for name, at in zip(("from", "to"), run.window, strict=True) if at is not None]
