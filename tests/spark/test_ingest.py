"""The silver tables depend only on the captures: not on how the work is cut, nor on what an earlier run left behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import zstandard
from pyspark.sql import SparkSession

import jobs.captures.capture_plan
import jobs.captures.capture_rows
import jobs.ingest
import jobs.lake.delta_tables
import jobs.lake.packed_tables
from jobs.captures.capture_index import BUCKETS
from jobs.captures.capture_plan import plan_capture
from jobs.captures.capture_rows import packed_rows
from jobs.lake.packed_tables import unpack_table
from jobs.lake.table_address import table_path
from jobs.lake.target import keep_files
from jobs.run import Decoding, Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.silver import CAPTURES, CONNECTIONS, DECODED, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES, SILVER
from schemas.tables.silver_quality import CAPTURE_QUALITY
from schemas.tables.table import Column, Table
from tests.lakes import Row, lake_rows, queried
from udfs.capture.file_index import CaptureIndex, index_capture
from udfs.errors import LakeError
from udfs.facts.pseudonyms import Pseudonyms

SAMPLE_BYTES = 400_000
MOST_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"

Silver = dict[str, list[Any]]
Rows = list[dict[str, Any]]
BROKER, TOPIC = "broker", "topic"


@pytest.fixture(scope="module")
def capture(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The beginning of a sample capture, uncompressed, so that it can be cut into ranges. It ends within a packet."""
    packed = (repository / "tests/captures/mixed.pcap.zst").read_bytes()
    path = tmp_path_factory.mktemp("capture") / "mixed.pcap"
    path.write_bytes(zstandard.ZstdDecompressor().decompressobj().decompress(packed)[:SAMPLE_BYTES])
    return path


def run_into(lake: Path, *captures: Path) -> Run:
    return Run(resolve_scenario(None, [], []), captures, str(lake), datetime(2026, 1, 31, tzinfo=UTC))


@pytest.fixture(scope="module")
def lake(spark: SparkSession, capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake as one undisturbed run leaves it. Tests work on copies."""
    lake = tmp_path_factory.mktemp("expected") / "lake"
    jobs.ingest.ingest(spark, run_into(lake, capture))
    return lake


@pytest.fixture(scope="module")
def expected(spark: SparkSession, lake: Path) -> Silver:
    """The tables of that lake."""
    rows = lake_rows(str(lake), SILVER)
    assert all(rows[table.name] for table in (CAPTURES, FETCH_PARTITIONS, RECORD_BATCHES))
    return rows


@pytest.fixture
def copy(lake: Path, tmp_path: Path) -> Path:
    """A copy of that lake."""
    return Path(shutil.copytree(lake, tmp_path / "lake"))


@pytest.fixture
def spark_property(spark: SparkSession) -> Iterator[Callable[[str, int], None]]:
    """Set a property of the session until the test ends."""
    before: dict[str, str] = {}

    def set_property(key: str, value: int) -> None:
        before.setdefault(key, str(spark.conf.get(key)))
        spark.conf.set(key, str(value))

    yield set_property
    for key, value in before.items():
        spark.conf.set(key, value)


def index_of(capture: Path, range_bytes: int = 1 << 30) -> CaptureIndex:
    return index_capture(str(capture), range_bytes=range_bytes, buckets=BUCKETS)


def decoded(spark: SparkSession, index: CaptureIndex) -> Silver:
    """The decoded rows of a capture, before names are learnt and tables written. Later steps do not depend on how the
    work is cut.
    """
    plan = plan_capture((index,), spark.sparkContext.defaultParallelism)
    packed = packed_rows(spark, plan, None, None).cache()
    rows = {table.name: sorted(map(repr, unpack_table(packed, table).collect())) for table in DECODED}
    packed.unpersist()
    return rows


@pytest.fixture(scope="module")
def uncut(spark: SparkSession, capture: Path) -> Silver:
    """The rows of a capture that is decoded in one piece."""
    rows = decoded(spark, index_of(capture))
    assert all(rows[table.name] for table in (CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES))
    return rows


@pytest.mark.parametrize(("key", "value"), [(MOST_RECORDS, 1), (MOST_RECORDS, 7), (SHUFFLE_PARTITIONS, 5)])
def test_the_rows_are_the_same_however_spark_cuts_batches(
    spark: SparkSession, capture: Path, uncut: Silver, spark_property: Callable[[str, int], None], key: str, value: int
) -> None:
    spark_property(key, value)
    assert decoded(spark, index_of(capture)) == uncut


@pytest.mark.parametrize("range_bytes", [10_000, 150_000])
def test_the_rows_are_the_same_however_a_capture_is_cut_into_ranges(
    spark: SparkSession, capture: Path, uncut: Silver, monkeypatch: pytest.MonkeyPatch, range_bytes: int
) -> None:
    index = index_of(capture, range_bytes)
    assert len(index.ranges) > 2
    # More shards than cores, and packets that go through Spark in many small batches.
    monkeypatch.setattr(jobs.captures.capture_plan, "SHARD_BYTES", 1 << 14)
    monkeypatch.setattr(jobs.captures.capture_rows, "BATCH_BYTES", 3_000)
    assert decoded(spark, index) == uncut


def test_a_lake_that_has_names_is_given_no_pseudonyms(spark: SparkSession, capture: Path, copy: Path) -> None:
    """The names would stay in the lake, since Delta keeps the files of earlier versions."""
    keyed = replace(run_into(copy, capture), decoding=Decoding(Pseudonyms(b"a key of our own")))
    with pytest.raises(LakeError, match=r"names that are not pseudonymised.* name another folder by --lake"):
        jobs.ingest.ingest(spark, keyed)


def test_files_that_are_no_captures_cost_the_others_nothing(
    spark: SparkSession, capture: Path, expected: Silver, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(capture.parent, tmp_path / "folder"))
    (folder / "notes.pcap").write_text("no capture")
    (folder / "empty.pcap").touch()
    jobs.ingest.ingest(spark, run_into(tmp_path / "lake", *sorted(folder.iterdir())))
    found, c = lake_rows(str(tmp_path / "lake"), DECODED), CAPTURES
    assert [len(found[table.name]) for table in DECODED] == [len(expected[table.name]) for table in DECODED]
    told = {row[c.size_bytes]: (row[c.faults], row[c.unread_bytes]) for row in queried(str(tmp_path / "lake"), c)}
    assert told[10] == (["not_a_capture at byte 0"], 10)
    assert told[0] == (["file_empty at byte 0"], 0)


def test_a_lake_of_pseudonyms_is_given_neither_names_nor_those_of_another_key(
    spark: SparkSession, capture: Path, tmp_path: Path
) -> None:
    """The lake would have real names too, or one name would have two pseudonyms."""
    plain = run_into(tmp_path, capture)
    jobs.ingest.ingest(spark, replace(plain, decoding=Decoding(Pseudonyms(b"a key of our own"))))
    before = lake_rows(str(tmp_path), SILVER)
    with pytest.raises(LakeError, match=r"real names would come beside them: give --pseudonymise=KEYFILE .* --lake"):
        jobs.ingest.ingest(spark, plain)
    with pytest.raises(LakeError, match=r"under another key .* One name would be two in it: give the file .* --lake"):
        jobs.ingest.ingest(spark, replace(plain, decoding=Decoding(Pseudonyms(b"the next one"))))
    assert lake_rows(str(tmp_path), SILVER) == before


def test_pseudonyms_take_the_place_of_names_and_change_nothing_else(
    spark: SparkSession, capture: Path, expected: Silver, tmp_path: Path
) -> None:
    pseudonyms = Pseudonyms(b"a key of our own")
    keyed = replace(run_into(tmp_path, capture), decoding=Decoding(pseudonyms))
    jobs.ingest.ingest(spark, keyed)
    jobs.ingest.ingest(spark, keyed)  # the same key again is allowed
    decoder = CAPTURES.columns.index(CAPTURES.decoder)

    def called(table: Table, row: Row) -> Row:
        if table is CAPTURES:
            return (*row[:decoder], f"{row[decoder]}+{pseudonyms.key_id}", *row[decoder + 1 :])
        return tuple(new_name(column, value, row) for column, value in zip(table.columns, row, strict=True))

    def new_name(column: Column, value: Any, row: Row) -> Any:
        is_id = value is None or (column == BROKER and value.isdigit()) or (column == TOPIC and row.count(value) > 1)
        return value if is_id or not column.names else pseudonyms.of(column.names, value)

    found = lake_rows(str(tmp_path), SILVER)
    for table in SILVER:
        assert sorted(map(repr, found[table.name])) == sorted(repr(called(table, row)) for row in expected[table.name])
    assert found != expected


def test_nothing_decoded_is_kept_when_ingest_has_ended_or_failed(
    spark: SparkSession, capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = spark.sparkContext._jsc.sc().getPersistentRDDs()
    before = kept.size()
    jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    monkeypatch.setattr(jobs.ingest, "names_in_packed", lambda packed, *_: packed.count() / 0)
    with pytest.raises(ZeroDivisionError):
        jobs.ingest.ingest(spark, run_into(tmp_path / "other", capture))
    assert spark.sparkContext._jsc.sc().getPersistentRDDs().size() == before


class Killed(BaseException):
    """Stands for the end of a killed process. Nothing handles it."""


def test_a_run_after_one_that_was_killed_leaves_the_same_tables(
    spark: SparkSession, capture: Path, expected: Silver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run was killed when three tables were complete, and the others had files without a commit."""
    done = 0

    def keep_until_killed(*of: Any) -> None:
        nonlocal done
        if done >= 3:
            raise Killed
        keep_files(*of)
        done += 1

    with monkeypatch.context() as patched:
        patched.setattr(jobs.lake.packed_tables, "keep_files", keep_until_killed)
        with pytest.raises(Killed):
            jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    of_no_version = next((tmp_path / "silver/exchanges").rglob("*.parquet"))
    shutil.copy(of_no_version, of_no_version.with_name(f"of-a-task-that-was-cut-off-{of_no_version.name}"))
    jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    assert lake_rows(str(tmp_path), SILVER) == expected


def test_the_tables_are_the_same_where_workers_do_not_reach_the_lake(
    spark: SparkSession, capture: Path, expected: Silver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs.lake.delta_tables, "workers_folder", lambda *_: None)
    jobs.ingest.ingest(spark, run_into(tmp_path, capture))
    assert lake_rows(str(tmp_path), SILVER) == expected
    assert not list(tmp_path.rglob("*.zstd.parquet"))


def test_the_tables_are_the_same_in_a_lake_whose_name_looks_like_a_pattern(
    spark: SparkSession, capture: Path, expected: Silver, tmp_path: Path
) -> None:
    lake = tmp_path / "lake [1] *? {a,b} ü"
    jobs.ingest.ingest(spark, run_into(lake, capture))
    assert lake_rows(str(lake), SILVER) == expected


def test_a_lake_of_other_tables_is_told_before_anything_is_decoded(
    spark: SparkSession, capture: Path, tmp_path: Path
) -> None:
    spark.range(1).write.format("delta").save(table_path(str(tmp_path), EXCHANGES))
    with pytest.raises(LakeError, match=r"silver/exchanges is not the table this version writes.*Use another --lake"):
        jobs.ingest.ingest(spark, run_into(tmp_path, capture))


def test_a_second_run_leaves_the_same_tables_and_brings_a_lost_one_back(
    spark: SparkSession, capture: Path, expected: Silver, copy: Path
) -> None:
    shutil.rmtree(table_path(str(copy), RECORD_BATCHES))
    jobs.ingest.ingest(spark, run_into(copy, capture))
    assert lake_rows(str(copy), SILVER) == expected


def test_capture_sets_stand_side_by_side(spark: SparkSession, repository: Path, expected: Silver, copy: Path) -> None:
    """A capture set has the same rows as in a lake of its own."""
    other = jobs.ingest.ingest(spark, run_into(copy, repository / "tests/captures/starve.pcap.zst"))
    rows = lake_rows(str(copy), SILVER)
    assert {name: [row for row in of if row[0] != other] for name, of in rows.items()} == expected
    assert all(any(row[0] == other for row in rows[table.name]) for table in (CAPTURES, FETCH_PARTITIONS))


@pytest.fixture(scope="module")
def damaged(spark: SparkSession, capture: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """The tables of a capture without its first 300 packets and without every 40th packet."""
    folder = tmp_path_factory.mktemp("damaged")
    content = capture.read_bytes()
    packets, at = [], 24
    while at + 16 <= len(content):
        size = 16 + int.from_bytes(content[at + 8 : at + 12], "little")
        packets.append(content[at : at + size])
        at += size
    kept = [packet for n, packet in enumerate(packets) if n >= 300 and n % 40]
    (folder / "damaged.pcap").write_bytes(content[:24] + b"".join(kept))
    capture_id = jobs.ingest.ingest(spark, run_into(folder / "lake", folder / "damaged.pcap"))
    tables = (CAPTURE_QUALITY, CONNECTIONS, EXCHANGES, FETCH_PARTITIONS)
    own = f"capture_id = '{capture_id}'"
    return {table.name: queried(str(folder / "lake"), table, where=own) for table in tables}


def test_quality_tells_of_each_connection_what_the_other_tables_show(damaged: dict[str, Rows]) -> None:
    q, c, x, f = CAPTURE_QUALITY, CONNECTIONS, EXCHANGES, FETCH_PARTITIONS
    told = {row[q.connection_id]: row for row in damaged[q.name]}
    assert len(told) == len(damaged[c.name]) + 1
    for row in damaged[c.name]:
        found = told[row[c.connection_id]]
        exchanges = [e for e in damaged[x.name] if e[x.connection_id] == row[c.connection_id]]
        idle = {
            e[x.exchange_no]: False
            for e in exchanges
            if e[x.fetch_replica_id] is not None and e[x.fetch_session_epoch] > 0 and not e[x.error_code]
        }
        fetches = idle | {
            r[f.exchange_no]: r[f.readable_known] for r in damaged[f.name] if r[f.connection_id] == row[c.connection_id]
        }
        assert found[q.scope] == "connection"
        assert found[q.missing_bytes] == row[c.missing_bytes]
        assert found[q.exchanges] == len(exchanges)
        assert found[q.unanswered_requests] == sum(e[x.status] == "unanswered" for e in exchanges)
        assert found[q.orphan_responses] == sum(e[x.status] == "orphan_response" for e in exchanges)
        assert found[q.cut_exchanges] == sum(e[x.missing_bytes] > 0 for e in exchanges)
        assert (found[q.fetches], found[q.fetches_of_unknown_sessions]) == (
            len(fetches),
            sum(not known for known in fetches.values()),
        )


def test_quality_of_a_capture_set_is_the_sum_of_its_connections(damaged: dict[str, Rows]) -> None:
    q = CAPTURE_QUALITY
    (total,) = (row for row in damaged[q.name] if row[q.scope] == "capture set")
    connections = [row for row in damaged[q.name] if row[q.scope] == "connection"]
    counts = [c for c in q.columns if c.type == "bigint" and c != q.connection_id]
    assert {c: total[c] for c in counts} == {c: sum(row[c] for row in connections) for c in counts}
    lacking = (q.missing_bytes, q.connections_begun_before, q.unanswered_requests, q.fetches_of_unknown_sessions)
    assert all(total[c] > 0 for c in lacking), "the damage shows"
    streamed = total[q.payload_bytes] - total[q.repeated_bytes] + total[q.missing_bytes]
    assert total[q.missing_share] == total[q.missing_bytes] / streamed
