"""Packets and request logs of the same traffic in one set: the log adds to the exchanges and is compared with them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.silver import CAPTURES, EXCHANGES, FETCH_PARTITIONS, QUARANTINE, RECORD_BATCHES
from schemas.tables.silver_quality import LOG_AGREEMENT
from tests.e2e.conftest import RUN_AT, CapturedLake, Rows
from tests.e2e.request_log import read_request_logs
from udfs.facts.exchange_rows import LOG_COLUMNS

NAMES = ("starve", "sasl")
LOST, ALTERED = 40, 60
"""The line of a broker's log that is taken out, and the line that gets another client id."""


def rotated(log: Path, folder: Path) -> list[Path]:
    """A broker's log in two files that overlap, with one line lost and another altered."""
    with gzip.open(log, "rb") as stored:
        lines = stored.readlines()
    lines[ALTERED] = lines[ALTERED].replace(b'"clientId":"', b'"clientId":"not-')
    del lines[LOST]
    files = {folder / "requests.log.1": lines[:100], folder / "requests.log": lines[80:]}
    for path, part in files.items():
        path.write_bytes(b"".join(part))
    return list(files)


@pytest.fixture(scope="module")
def both(spark: SparkSession, shared_captures: Path, tmp_path_factory: pytest.TempPathFactory) -> CapturedLake:
    """The lake made from two captures and their brokers' logs. One log is in two files, another one comes twice."""
    folder = tmp_path_factory.mktemp("both")
    logs = sorted(path for name in NAMES for path in shared_captures.glob(f"{name}.requests-*.log.gz"))
    first = next(path for path in logs if path.name == "starve.requests-1.log.gz")
    copy = folder / "copy.log.gz"
    copy.write_bytes(logs[0].read_bytes())
    captures = [shared_captures / f"{name}.pcap" for name in NAMES]
    files = (*captures, *(path for path in logs if path != first), *rotated(first, folder), copy)
    lake = str(folder / "lake")
    capture_id = ingest(spark, Run(resolve_scenario(None, [], []), files, lake, RUN_AT))
    logged = {key: line for name in NAMES for key, line in read_request_logs(shared_captures, name).items()}
    return CapturedLake(spark, lake, captures[0], capture_id, "", logged)


@pytest.fixture(scope="module", params=NAMES)
def packets(request: pytest.FixtureRequest, captured: Callable[[str], CapturedLake]) -> CapturedLake:
    """The lake made from the packets of one of the captures, without logs."""
    return captured(request.param)


def unlogged(both: CapturedLake) -> Rows:
    """The exchanges that a broker's authenticator answers. No log has them."""
    x = EXCHANGES
    rows = list(both.exchanges.values())
    authenticating = {row[x.connection_id] for row in rows if row[x.api_name] == "SASL_HANDSHAKE"}
    names = ("SASL_HANDSHAKE", "SASL_AUTHENTICATE", "API_VERSIONS")
    return [row for row in rows if row[x.connection_id] in authenticating and row[x.api_name] in names]


def test_what_messages_say_comes_from_the_packets(both: CapturedLake, packets: CapturedLake) -> None:
    others = (*LOG_COLUMNS, "capture_id")
    same = [column for column in EXCHANGES.columns if column not in others and "packet" not in column]
    for key, row in packets.exchanges.items():
        assert {column: both.exchanges[key][column] for column in same} == {column: row[column] for column in same}, key


def test_no_request_is_counted_twice(both: CapturedLake, captured: Callable[[str], CapturedLake]) -> None:
    alone = [captured(name) for name in NAMES]
    for table in (EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES, QUARANTINE):
        assert len(both.rows(table)) == sum(len(lake.rows(table)) for lake in alone), table.name


def test_the_log_adds_listener_principal_and_how_long_each_step_took(both: CapturedLake) -> None:
    x = EXCHANGES
    told = [(row, both.logged[key]) for key, row in both.exchanges.items() if row[x.log_line] is not None]
    assert len(told) + len(unlogged(both)) == len(both.exchanges) - 1
    for row, line in told:
        assert row[x.total_time_ms] == line.taken_ms
        parts = (
            x.request_queue_time_ms, x.local_time_ms, x.remote_time_ms, x.api_throttle_time_ms,
            x.response_queue_time_ms, x.send_time_ms,
        )  # fmt: skip
        assert sum(row[part] for part in parts) == pytest.approx(row[x.total_time_ms], abs=1)
    by_listener = {(row[x.listener], row[x.security_protocol], row[x.principal]) for row, _ in told}
    assert ("PLAINTEXT", "PLAINTEXT", "User:ANONYMOUS") in by_listener
    assert any(protocol == "SASL_PLAINTEXT" and principal != "User:ANONYMOUS" for _, protocol, principal in by_listener)


def test_the_lost_line_and_the_altered_one_are_found(both: CapturedLake) -> None:
    t, x = LOG_AGREEMENT, EXCHANGES
    rows = both.rows(LOG_AGREEMENT)
    requests = [row for row in rows if row[t.field] == "request"]
    assert sum(row[t.only_in_packets] for row in requests) == 1
    assert sum(row[t.in_both] for row in requests) == len(both.exchanges) - 1 - len(unlogged(both))
    assert sum(row[t.only_in_log] for row in requests) == len(both.logged) - len(both.exchanges) + len(unlogged(both))
    (altered,) = (row for row in rows if row[t.field] == x.client_id and row[t.different])
    assert altered[t.different] == 1
    place = (altered[t.different_connection_id], altered[t.different_exchange_no])
    (key,) = (key for key, row in both.exchanges.items() if (row[x.connection_id], row[x.exchange_no]) == place)
    assert both.exchanges[key][x.client_id] == both.logged[key].client_id
    differing = {row[t.field] for row in rows if row[t.different]}
    assert differing == {"request", x.client_id}
    (late,) = {row[t.field] for row in rows if row[t.only_in_log]} - {"request", x.error_code, x.throttle_time_ms}
    assert late == x.status, "a capture may end before an answer comes"


def test_lines_that_two_files_have_are_named_and_count_once(both: CapturedLake) -> None:
    t = CAPTURES
    repeated = {Path(row[t.path]).name: row[t.repeated_lines] for row in both.rows(CAPTURES) if row[t.repeated_lines]}
    (copied,) = repeated.keys() - {"requests.log"}
    assert repeated["requests.log"] == 20
    assert repeated[copied] == next(row[t.log_lines] for row in both.rows(CAPTURES) if Path(row[t.path]).name == copied)
