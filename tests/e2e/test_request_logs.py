"""Brokers' request logs alone give the same tables as packets of the same traffic, except for what no log has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.replay import check_refused, replay
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import RUNS
from schemas.tables.silver import CAPTURES, EXCHANGES, FETCH_PARTITIONS, QUARANTINE, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA
from tests.e2e.conftest import RUN_AT, CapturedLake, Rows
from tests.e2e.request_log import Key, read_request_logs
from tests.lakes import queried
from udfs.errors import CaptureError

A_MILLISECOND = timedelta(milliseconds=1)
CLOCKS_APART = A_MILLISECOND * 250
"""A line is written after the response was sent, by a machine that was busy. Its time is in milliseconds."""

OF_THE_SET = ("capture_id", "connection_id", "exchange_no", "request_time", "response_time", "topic")
"""Columns of `fetch_partitions` that depend on the files, and on what else is in the capture set."""


NAMES = ("mixed", "starve", "sessions")


@pytest.fixture(scope="module")
def logs(spark: SparkSession, shared_captures: Path, tmp_path_factory: pytest.TempPathFactory) -> CapturedLake:
    """The lake made from the request logs of the brokers of three captures, read as one set."""
    lake = str(tmp_path_factory.mktemp("logs"))
    files = tuple(path for name in NAMES for path in sorted(shared_captures.glob(f"{name}.requests-*.log.gz")))
    capture_id = ingest(spark, log_run(lake, *files))
    logged = {key: line for name in NAMES for key, line in read_request_logs(shared_captures, name).items()}
    return CapturedLake(spark, lake, files[0], capture_id, "", logged)


@pytest.fixture(scope="module", params=NAMES)
def packets(request: pytest.FixtureRequest, captured: Callable[[str], CapturedLake]) -> CapturedLake:
    """The lake made from the packets of one of the captures."""
    return captured(request.param)


def log_run(lake: str, *files: Path) -> Run:
    return Run(resolve_scenario(None, [], []), files, lake, RUN_AT)


def in_both(logs: CapturedLake, packets: CapturedLake) -> list[Key]:
    """The requests with the same status in both. A capture may end, or a client may leave, before a response comes."""
    same = [key for key, row in packets.exchanges.items() if logs.exchanges[key]["status"] == row["status"]]
    late = [row for row in packets.exchanges.values() if row["status"] == "unanswered"]
    assert len(same) + len(late) == len(packets.exchanges)
    assert len(late) < 10
    return same


def fetched(lake: CapturedLake) -> dict[Key, Rows]:
    """Rows of `fetch_partitions` by request."""
    keys = {(row["connection_id"], row["exchange_no"]): key for key, row in lake.exchanges.items()}
    by_key: dict[Key, Rows] = defaultdict(list)
    for row in lake.rows(FETCH_PARTITIONS):
        plain = {name: value for name, value in row.items() if name not in OF_THE_SET}
        plain["topic"] = row["topic_id"] or row["topic"]
        by_key[keys[row["connection_id"], row["exchange_no"]]].append(plain)
    for rows in by_key.values():
        rows.sort(key=lambda row: (row["topic"], row["partition"]))
    return by_key


def test_every_line_is_an_exchange_and_none_is_in_quarantine(logs: CapturedLake) -> None:
    assert logs.exchanges.keys() == logs.logged.keys()
    assert sum(row[CAPTURES.log_lines] for row in logs.rows(CAPTURES)) == len(logs.logged)
    assert logs.rows(QUARANTINE) == []


def test_every_request_of_the_packets_is_in_the_logs(logs: CapturedLake, packets: CapturedLake) -> None:
    assert packets.exchanges.keys() - logs.exchanges.keys() == set()


def test_exchanges_are_the_same(logs: CapturedLake, packets: CapturedLake) -> None:
    """The exception are fields that a version does not have: there packets give 0 and a log gives null."""
    x = EXCHANGES
    same = (
        x.api_key, x.api_name, x.api_version, x.correlation_id, x.client_id, x.client_address, x.broker, x.status,
        x.client_software_name, x.client_software_version, x.fetch_max_bytes, x.fetch_replica_id, x.fetch_session_id,
        x.fetch_session_epoch,
    )  # fmt: skip
    for key in in_both(logs, packets):
        ours, theirs = logs.exchanges[key], packets.exchanges[key]
        assert [ours[name] for name in same] == [theirs[name] for name in same], key
        for name in (x.error_code, x.throttle_time_ms):
            assert None in (ours[name], theirs[name]) or ours[name] == theirs[name], key


def test_requests_came_and_responses_went_when_packets_did(logs: CapturedLake, packets: CapturedLake) -> None:
    """A broker reads a request from the socket after it answered the one before, so later than the packets show.

    A response counts as sent when the broker has given it to the socket. Packets show it later if the client does not
    take it yet.
    """
    x, late = EXCHANGES, 0
    for key in in_both(logs, packets):
        ours, theirs = logs.exchanges[key], packets.exchanges[key]
        assert theirs[x.request_time] - ours[x.request_time] < A_MILLISECOND * 2, key
        if theirs[x.status] == "answered":
            assert ours[x.response_time] - theirs[x.response_time] < CLOCKS_APART, key
            late += theirs[x.response_time] - ours[x.response_time] >= CLOCKS_APART
    assert late < 0.02 * len(packets.exchanges)


def test_fetch_partitions_are_the_same(logs: CapturedLake, packets: CapturedLake) -> None:
    """Every column of every partition is the same, also of those that an incremental fetch leaves out."""
    ours, theirs = fetched(logs), fetched(packets)
    fetches = [key for key in in_both(logs, packets) if packets.exchanges[key]["api_name"] == "FETCH"]
    assert [key for key in fetches if ours.get(key) != theirs.get(key)] == []
    assert len(fetches) > 300


def test_brokers_and_topics_are_the_same(logs: CapturedLake, packets: CapturedLake) -> None:
    m = CLUSTER_METADATA
    named = (m.entry, m.node_id, m.host, m.port, m.topic, m.topic_id, m.partition)
    ours, theirs = ({tuple(row[c] for c in named) for row in lake.rows(m)} for lake in (logs, packets))
    assert theirs - ours == set()


def test_a_log_has_no_batches_and_a_replay_that_needs_them_says_so(logs: CapturedLake) -> None:
    assert logs.rows(RECORD_BATCHES) == []
    run = log_run(logs.path)
    only_fetches = replace(run, scenario=replace(run.scenario, replay={"fetch_max_bytes": {}}))
    with pytest.raises(CaptureError, match="which lack the sizes of record batches"):
        replay(logs.spark, only_fetches, logs.capture_id)


def test_a_replay_of_splits_says_that_a_log_has_no_batches(logs: CapturedLake) -> None:
    run = log_run(logs.path)
    only_splits = replace(run, scenario=replace(run.scenario, replay={"batch_split": {}}))
    with pytest.raises(CaptureError, match="are request logs, which lack the record batches"):
        replay(logs.spark, only_splits, logs.capture_id)


def test_the_run_says_which_replays_were_refused_and_why(logs: CapturedLake) -> None:
    run = log_run(logs.path)
    both = replace(run, scenario=replace(run.scenario, replay={"fetch_max_bytes": {}, "partition_limits": {}}))
    done = replay(logs.spark, both, logs.capture_id)
    (row,) = queried(logs.path, RUNS, where=f"{RUNS.run_id} = '{done.run_id}'")
    assert (row[RUNS.algorithm], dict(row[RUNS.refused])) == ("partition_limits", done.refused)
    kept = replay(logs.spark, both, logs.capture_id, keep=True)
    assert kept == replace(done, counts=None)
    with pytest.raises(CaptureError, match="1 of 2 replays refused, for the reasons above: fetch_max_bytes"):
        check_refused(replace(both, strict=True), kept)
