"""Producers under a byte quota: the command says how long each is throttled, as captured and under other quotas."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.replay import main
from jobs.replays.fetch_max_bytes.producer_answers import RANGES_ARE_TOO_NARROW
from jobs.run import Output, Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FETCH_CONSUMERS, FIDELITY, PRODUCER_THROTTLES
from schemas.tables.silver import EXCHANGES
from tests.e2e.conftest import RUN_AT
from tests.lakes import queried

T = PRODUCER_THROTTLES
HEAVY, LIGHT = "producer_byte_rate=25kB", "producer_byte_rate=100kB"


@dataclass(frozen=True)
class Shown:
    """A run, and the text of its screen and page."""

    run: Run
    screen: str
    page: str


@pytest.fixture(scope="module")
def shown(spark: SparkSession, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """A run on the capture with its quota stated, and with lanes of other quotas."""
    folder = tmp_path_factory.mktemp("quota")
    of = resolve_scenario(None, ["producer_byte_rate=25kB,100kB"], ["producer_byte_rate=50kB"])
    capture, page = repository / "tests/captures/quotas/producers.pcap.zst", folder / "report.html"
    run = Run(of, (capture,), str(folder / "lake"), RUN_AT, output=Output(page, verbose=True))
    ingest(spark, run)
    with redirect_stdout(StringIO()) as screen:
        main(run)
    return Shown(run, " ".join(screen.getvalue().split()), html.unescape(page.read_text(encoding="utf-8")))


def rows(run: Run, lane: str) -> Mapping[tuple[str, str], dict[str, Any]]:
    """The rows of a lane by client.id and broker."""
    return {(row[T.client_id], row[T.broker]): row for row in queried(run.lake, T, where=f"{T.scenario} = '{lane}'")}


def test_the_captured_quota_throttles_as_the_responses_say(shown: Shown) -> None:
    run, x, f = shown.run, EXCHANGES, FIDELITY
    responses = queried(run.lake, x, where=f"{x.api_name} = 'PRODUCE'")
    captured = rows(run, "captured")
    assert captured.keys() == {(client, broker) for client in ("burst", "steady") for broker in "123"}
    for (client, broker), row in captured.items():
        own = [one for one in responses if (one[x.client_id], one[x.broker]) == (client, broker)]
        assert row[T.requests] == len(own)
        assert row[T.bytes] == sum(one[x.request_bytes] - 4 for one in own)
        assert row[T.captured_throttle_time_ms] == sum(one[x.throttle_time_ms] for one in own)
        assert row[T.throttle_time_ms] == pytest.approx(row[T.captured_throttle_time_ms], rel=0.02)
        assert row[T.sending_ms] == pytest.approx(row[T.captured_sending_ms], rel=0.01)
        assert row[T.shown_byte_rate] == pytest.approx(50_000, rel=0.01)
    replayed, seen = (
        sum(row[name] for row in captured.values())
        for name in (T.replayed_throttle_time_ms, T.captured_throttle_time_ms)
    )
    assert replayed == pytest.approx(seen, rel=0.01)
    metric = queried(run.lake, f, where=f"{f.metric} = 'produce_throttles'")
    assert sum(row[f.checked] for row in metric) == len(responses) == 308
    assert sum(row[f.agreed] for row in metric) >= 290


def test_a_smaller_quota_makes_producers_send_for_longer_and_a_larger_one_for_less_time(shown: Shown) -> None:
    captured, heavy, light = (rows(shown.run, lane) for lane in ("captured", HEAVY, LIGHT))
    for key, row in captured.items():
        assert heavy[key][T.bytes] == light[key][T.bytes] == row[T.bytes]
        # The bytes at 25 kB/s, less what the quota lets through at once: 10 s of it, or one request and window more.
        needed_ms = row[T.bytes] / 25 - 11_000
        assert heavy[key][T.sending_ms] > max(needed_ms, row[T.sending_ms])
        assert light[key][T.throttled_requests] == 0
        assert light[key][T.sending_ms] < row[T.sending_ms]


def test_screen_and_page_say_who_is_throttled_and_consumers_have_no_row_in_such_lanes(shown: Shown) -> None:
    for said in ("producer_byte_rate=25 kB", "producer_byte_rate=100 kB", "none of 2 producers is throttled"):
        assert said in shown.screen
        assert said in shown.page
    waits = r"burst for 30\.1 s \([\d.]+ to [\d.]+ s\) over its brokers; in all 59\.1 s"
    assert re.search(f"captured 2 of 2 producers are throttled, {waits}", shown.screen)
    assert RANGES_ARE_TOO_NARROW in shown.screen
    assert RANGES_ARE_TOO_NARROW in " ".join(shown.page.split())
    assert queried(shown.run.lake, FETCH_CONSUMERS) == []
