"""The benchmarks give contestants all of a capture, and can be called by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from tests.bench.__main__ import BENCHMARKS, wanted
from tests.bench.capture_frames import FetchFrames, fetches
from tests.bench.jobs import stages
from tests.bench.session_cache import Traffic, step_rows
from udfs.wire.messages import decode_bodies

UNANSWERED = 6
"""How many fetches in the capture have no response, because their connections ended."""


def test_decoding_is_measured_over_every_answered_fetch_of_a_capture(shared_captures: Path) -> None:
    parts = fetches(shared_captures / "sessions.pcap")
    asked, answered = (
        [part for part in parts if part.message is message] for message in (FETCH_REQUEST, FETCH_RESPONSE)
    )
    assert sum(map(len, asked)) == sum(map(len, answered)) == 9_082 - UNANSWERED
    assert all(faultless(part) for part in parts)


def faultless(part: FetchFrames) -> bool:
    """Whether all frames decode without a fault."""
    return not decode_bodies(part.message, part.arena, *part.bodies()).fault.any()


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("decoding", 2)])
def test_help_and_an_unknown_name_list_the_benchmarks(
    argument: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        wanted([argument])
    assert ended.value.code == code
    told = "".join(capsys.readouterr())
    assert "usage: python -m tests.bench" in told
    assert all(name in told for name in BENCHMARKS)


def test_all_benchmarks_run_if_none_is_named() -> None:
    assert wanted([]) == list(BENCHMARKS)
    assert wanted(["ingest", "decode"]) == ["ingest", "decode"]


def test_stages_of_a_job_are_those_that_it_reports_as_done() -> None:
    said = (
        "refetch: index ...\nrefetch: decode  12/53 tasks  3.1/s  ETA 9 s\nrefetch: decode  53 tasks  17.2 s\n"
        "refetch: replay fetch_max_bytes  1,043 tasks  1,240.4 s\nrefetch: gate gold: capture passed 12 rules\n"
    )
    assert stages(said) == [("decode", 17.2), ("replay fetch_max_bytes", 1240.4)]


def test_the_fetches_of_sessions_are_step_rows() -> None:
    traffic = Traffic(brokers=2, clients=3, partitions=4, rounds=5, every_ms=3, longest_wait_ms=500)
    rows = step_rows(traffic)
    assert rows.num_rows == traffic.fetches * (1 + traffic.partitions)
