"""Followers with another number of fetchers: the command says how they read, and how many fetch sessions they need."""

from __future__ import annotations

import html
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.replay import main
from jobs.run import Output, Run
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FIDELITY
from tests.e2e.conftest import RUN_AT, Rows
from tests.lakes import queried
from udfs.replay.fetch_max_bytes.closed_loop.fetchers import fetcher_hash, is_topic_id

ONE, TWO = "num.replica.fetchers=1", "num.replica.fetchers=2"
C, F = FETCH_CONSUMERS, FETCH_FAIRNESS


@dataclass(frozen=True)
class Shown:
    """A run, and the text of its screen and page."""

    run: Run
    screen: str
    page: str


@pytest.fixture(scope="module")
def shown(spark: SparkSession, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """A run on three brokers that follow one another, with one fetcher for each leader, and with two."""
    folder = tmp_path_factory.mktemp("fetchers")
    of = replace(resolve_scenario(None), replay={"fetch_max_bytes": {"num.replica.fetchers": (1, 2)}})
    capture, page = repository / "tests/captures/mixed.pcap.zst", folder / "report.html"
    run = Run(of, (capture,), str(folder / "lake"), RUN_AT, output=Output(page, verbose=True))
    ingest(spark, run)
    with redirect_stdout(StringIO()) as screen:
        main(run)
    return Shown(run, " ".join(screen.getvalue().split()), html.unescape(page.read_text(encoding="utf-8")))


def followers(run: Run, lane: str) -> Mapping[str, dict[str, object]]:
    """The rows of followers in a lane of the closed loop, by client.id."""
    where = f"{C.reader} = 'follower' and {C.mode} = 'closed' and {C.scenario} = '{lane}'"
    return {row[C.client_id]: row for row in queried(run.lake, C, where=where)}


def partitions(run: Run, lane: str) -> Rows:
    """How each partition of the followers is read in a lane of the closed loop."""
    where = f"{F.reader} = 'follower' and {F.mode} = 'closed' and {F.scenario} = '{lane}'"
    columns = (F.client_id, F.broker, F.topic, F.partition, F.requests, F.bytes, F.catch_up_ms)
    rows = queried(run.lake, F, *columns, where=where)
    return sorted(rows, key=lambda row: (row[F.client_id], row[F.broker], row[F.topic], row[F.partition]))


def test_every_captured_partition_has_the_fetcher_that_kafkas_rule_gives_it(shown: Shown) -> None:
    """Partitions of topics that have only an id are not checked, since no client asked for their names."""
    found = queried(shown.run.lake, FIDELITY, where="metric = 'fetcher_of_partition'")
    assert {row[FIDELITY.client_id] for row in found} == {f"broker-{n}-fetcher-0" for n in (1, 2, 3)}
    assert all(row[FIDELITY.checked] == row[FIDELITY.agreed] > 0 for row in found)
    named = [row for row in partitions(shown.run, CAPTURED_LANE) if not is_topic_id(row[F.topic])]
    assert sum(row[FIDELITY.checked] for row in found) == len(named)


def test_a_lane_with_one_fetcher_equals_the_captured_lane(shown: Shown) -> None:
    assert partitions(shown.run, ONE) == partitions(shown.run, CAPTURED_LANE)


def test_two_fetchers_read_as_much_as_one_with_a_session_for_each_leader(
    shown: Shown,
) -> None:
    captured, two = (partitions(shown.run, lane) for lane in (CAPTURED_LANE, TWO))
    assert sum(row[F.bytes] for row in captured) > 0
    assert [row[F.topic] for row in two] == [row[F.topic] for row in captured]
    for client, row in followers(shown.run, TWO).items():
        own = [of for of in two if of[F.client_id] == client]
        named = [of for of in own if not is_topic_id(of[F.topic])]
        sessions = {(of[F.broker], fetcher_hash(of[F.topic], of[F.partition]) % 2) for of in named}
        leaders = {of[F.broker] for of in own}
        assert len(sessions) <= int(str(row[C.fetchers])) <= 2 * len(leaders)
        assert row[C.read_all]
        assert row[C.bytes] >= sum(of[F.bytes] for of in captured if of[F.client_id] == client) * 0.99


def test_screen_and_page_say_how_many_sessions_two_fetchers_need(shown: Shown) -> None:
    before, after = (
        sum(int(str(row[C.fetchers])) for row in followers(shown.run, lane).values()) for lane in (CAPTURED_LANE, TWO)
    )
    assert after > before
    assert f"fetch sessions {before} -> {after}" in shown.screen
    assert f"fetch sessions {before} \N{RIGHTWARDS ARROW} {after}" in shown.page
    assert "FETCHERS" in shown.screen
