"""Which capture set another one continues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.captures import earlier_sets
from jobs.captures.capture_plan import plan_capture
from jobs.captures.earlier_sets import Earlier, choose_earlier, continuing
from jobs.lake.capture_sets import CaptureSet
from tests.unit.jobs.test_request_log_plan import index
from udfs.errors import ArgumentError

NOW = datetime(2026, 1, 31, tzinfo=UTC)
NO_SESSION: Any = None


def a_set(capture_id: str, first: timedelta, last: timedelta) -> CaptureSet:
    """A capture set. The times are relative to the beginning of these captures."""
    return CaptureSet(capture_id, 1, ["night.pcap"], NOW + first, NOW + last)


SETS = [
    a_set("itself", timedelta(0), timedelta(seconds=30)),
    a_set("over", -timedelta(hours=1), timedelta(minutes=2)),
    a_set("last", -timedelta(hours=1), timedelta(seconds=59)),
    a_set("older", -timedelta(hours=9), -timedelta(hours=1)),
]


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plan of these captures, and a lake that has SETS."""
    monkeypatch.setattr(earlier_sets, "has_table", lambda *_: True)
    monkeypatch.setattr(earlier_sets, "capture_sets", lambda *_: SETS)
    monkeypatch.setattr(earlier_sets, "decoder_of_set", lambda *_: "0.1.0")
    return SimpleNamespace(indexes=[SimpleNamespace(first_ts_ns=int(NOW.timestamp()) * 10**9)])


def test_the_latest_is_the_last_one_that_ends_before_and_never_the_set_itself(lake: Any) -> None:
    assert choose_earlier(NO_SESSION, "lake", "latest", lake) == Earlier("last", "0.1.0")
    assert choose_earlier(NO_SESSION, "lake", "older", lake) == Earlier("older", "0.1.0")


@pytest.mark.parametrize(("named", "why"), [("over", "after these captures begin"), ("itself", "after these captures"),
                                            ("none", "no such capture set")])  # fmt: skip
def test_a_set_that_cannot_be_the_one_before_is_refused(lake: Any, named: str, why: str) -> None:
    with pytest.raises(ArgumentError, match=why):
        choose_earlier(NO_SESSION, "lake", named, lake)


def test_the_id_of_a_set_depends_on_the_one_that_it_continues(tmp_path: Path) -> None:
    plan = plan_capture((index(tmp_path / "broker.log", 10),), 2)
    one, same, other = (continuing(plan, Earlier(of, "0.1.0")) for of in ("a", "a", "b"))
    assert one == same
    assert len({plan.capture_id, one.capture_id, other.capture_id}) == 3
    assert (plan.continues, one.continues) == (None, "a")
