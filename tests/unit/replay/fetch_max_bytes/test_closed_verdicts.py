"""Which catch-ups of the closed loop agree with the capture."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from schemas.tables.fetch_reasons import CLOSED_FETCHES
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop import fidelity
from udfs.replay.fetch_max_bytes.closed_loop.state import NO_BACKLOG
from udfs.replay.shared.captured_pieces import LEAST_TIME_US
from udfs.replay.shared.fidelity_rows import AGREED

FASTER, SLOWER = (CLOSED_FETCHES.codes[word] for word in (CLOSED_FETCHES.faster, CLOSED_FETCHES.slower))
LONG = 100 * LEAST_TIME_US


def test_a_catch_up_agrees_within_a_fifth_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions without a backlog, or whose backlog was not read, are not compared."""
    took = [NEVER, NO_BACKLOG, *[LONG] * 5, 0, 0]
    replayed = [LONG, LONG, LONG, LONG * 6 // 5, LONG * 6 // 5 + 1, LONG * 4 // 5, LONG * 4 // 5 - 1]
    replayed += [LEAST_TIME_US, LEAST_TIME_US + 1]
    monkeypatch.setattr(fidelity, "captured_catch_up", lambda intent: np.array(took))
    monkeypatch.setattr(fidelity, "partition_nodes", lambda intent: np.arange(len(took)))
    lane: Any = SimpleNamespace(catch_up_us=np.array(replayed))
    intent: Any = None
    found = fidelity.compared_catch_up(intent, lane)
    assert found.node.tolist() == list(range(2, 9))
    assert found.verdict.tolist() == [AGREED, AGREED, SLOWER, AGREED, FASTER, AGREED, SLOWER]


def test_a_catch_up_ends_with_the_response_that_has_the_last_batch_of_the_backlog() -> None:
    """A response at 50 has the first partition's last batch. The second's backlog is not read to its end."""
    partitions = np.array([(3, 0), (3, 0), (2, 2)], [("backlog_end", np.int64), ("start_batch", np.int64)])
    servings = SimpleNamespace(
        partition=np.array([0, 0, 1]),
        begin=np.array([0, 1, 0]),
        end=np.array([1, 3, 2]),
        response=np.array([40, 50, 60]),
    )
    intent: Any = SimpleNamespace(
        unit=SimpleNamespace(partitions=partitions), servings=servings, requested_at=np.array([10, 10, 10])
    )
    assert fidelity.captured_catch_up(intent).tolist() == [40, NEVER, NO_BACKLOG]
