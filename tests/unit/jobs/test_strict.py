"""A replay that is refused while others are made is reported, and with --strict the job fails."""

from __future__ import annotations

from datetime import UTC, datetime
from types import ModuleType

import pytest

import jobs.pipeline
import jobs.replay
from jobs.replay import ReplayedRun
from jobs.replays.algorithms import ALGORITHMS
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from udfs.errors import CaptureError, GateError

WHY = "the captures are request logs"
DONE = ReplayedRun("a-run", (ALGORITHMS["partition_limits"],), {"fetch_max_bytes": WHY, "consumer_memory": WHY}, None)
ANSWERS: dict[str, object] = {"replay": DONE, "write_pages": "", "make_recommendations": []}
CALLED = (
    "ready_session", "check_rules", "choose_capture", "ingest", "replay", "known_run", "look_up_run",
    "make_recommendations", "write_recommendations", "write_pages", "pass_gold_gate",
)  # fmt: skip
"""The functions that the jobs call before they end."""


@pytest.fixture(params=[jobs.replay, jobs.pipeline], ids=["replay", "pipeline"])
def job(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A job of which two of three replays are refused."""
    for called in (jobs.replay, request.param):
        for name in CALLED:
            monkeypatch.setattr(called, name, lambda *_, name=name, **__: ANSWERS.get(name), raising=False)
    module: ModuleType = request.param
    return module


def run(*, strict: bool) -> Run:
    return Run(resolve_scenario(None), (), "/lake", datetime(2026, 1, 31, tzinfo=UTC), strict=strict)


def test_a_refused_replay_does_not_fail_the_job_if_another_was_made(
    job: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[object] = []
    monkeypatch.setattr(jobs.replay, "pass_gold_gate", lambda *_: passed.append(job))
    job.main(run(strict=False))
    assert passed == [job]


def test_a_refused_replay_fails_the_job_if_all_are_required(job: ModuleType) -> None:
    with pytest.raises(CaptureError, match=r"^2 of 3 replays refused, .*: fetch_max_bytes, consumer_memory\. --strict"):
        job.main(run(strict=True))


def test_a_gate_that_refuses_ends_the_job_before_a_refused_replay_does(
    job: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise GateError("rule r: 3 rows")

    monkeypatch.setattr(jobs.replay, "pass_gold_gate", refuse)
    with pytest.raises(GateError):
        job.main(run(strict=True))


def test_a_run_that_its_gate_refuses_is_shown_with_its_page_before_the_job_fails(
    job: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Screen and page then say that the gate refused it."""
    done: list[object] = []

    def refuse(*_: object) -> None:
        done.append("refused")
        raise GateError("rule r: 3 rows")

    def report(*_: object) -> str:
        done.append("page")
        return ""

    monkeypatch.setattr(jobs.replay, "pass_gold_gate", refuse)
    monkeypatch.setattr(jobs.replay, "write_pages", report)
    with pytest.raises(GateError):
        job.main(run(strict=False))
    assert done == ["refused", "page"]
