"""The stage line."""

from __future__ import annotations

import pytest

from jobs.terminal.progress import TaskProgress


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (TaskProgress(0, 0, 0.0), "decode"),
        (TaskProgress(0, 40, 2.0), "decode  0/40 tasks"),
        (TaskProgress(12, 40, 4.0), "decode  12/40 tasks  3.0/s  ETA 9 s"),
        (TaskProgress(40, 40, 8.0), "decode  40/40 tasks  5.0/s"),
    ],
)
def test_the_stage_line_shows_what_is_known_so_far(progress: TaskProgress, line: str) -> None:
    assert progress.line("decode") == line
