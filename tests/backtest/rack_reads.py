"""Reads from followers (KIP-392): what each broker would serve without, beside what it served without."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jobs.replays.algorithm import Source
from jobs.report_page.fetch_max_bytes.follower_reads import served_by_broker, served_bytes
from schemas.tables import algorithms
from tests.backtest.figures import Figures
from tests.backtest.rack_traffic import RACKS
from tests.backtest.replays import Replayed, replayed


def compared(work: Path, _: int) -> Iterator[tuple[str, Figures]]:
    """What brokers served to consumers in a rack, what they would serve from leaders alone, and what they then did."""
    captured, leaders_alone = served_by_broker(rows(of(work, "named")))
    served = served_by_broker(rows(of(work, "none")))[0]
    yield "from followers -> from leaders alone", Figures([named(captured)], [named(leaders_alone)], [named(served)])


def rows(of_capture: Replayed) -> list[Any]:
    """The rows of `served_bytes`."""
    source = Source(of_capture.spark, of_capture.run, of_capture.capture_id, of_capture.run_id, {})
    return served_bytes(source.rows).collect()


@cache
def of(work: Path, name: str) -> Replayed:
    """The capture of consumers that name a rack, or none."""
    assert name in RACKS
    return replayed(algorithms.FETCH_MAX_BYTES, work / f"rack-{name}.pcap")


def named(served: dict[str, int]) -> dict[str, Any]:
    """The bytes of each broker, by what figures call them."""
    return {f"bytes of broker {broker}": served[broker] for broker in ("1", "2", "3")}
