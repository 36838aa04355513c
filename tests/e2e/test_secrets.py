"""No payload, key, value or password is in any file of the lake, nor on the screen, nor in Spark's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.cli import run_command
from jobs.lake.delta_tables import read_table, write_table
from jobs.session.spark import spark_log
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS
from tests.lakes import queried
from udfs.facts.pseudonyms import KNOWN_TO_ALL

PASSWORD, CARD = b"s3cr3t-pa55", b"4111111111111111"
SECRETS = (PASSWORD, CARD)


def texts_of(path: Path) -> Iterator[bytes]:
    """The texts in a file: its bytes, and for a Parquet file also each column as Arrow has it, without compression or
    encoding.
    """
    yield path.read_bytes()
    if path.suffix == ".parquet":
        # This reads a single file. pq.read_table would take table=... in the path for a column.
        yield from buffers_of(pq.ParquetFile(path).read())


def buffers_of(table: pa.Table) -> Iterator[bytes]:
    for column in table.columns:
        for chunk in column.chunks:
            yield from (buffer.to_pybytes() for buffer in chunk.buffers() if buffer is not None)


def leaks(folder: Path, secrets: Iterable[bytes] = SECRETS) -> list[tuple[str, bytes]]:
    """(file, secret) of every file below the folder that has a secret in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert files
    return [
        (path.name, secret) for path in files for secret in secrets if any(secret in text for text in texts_of(path))
    ]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets") / "lake"


@pytest.fixture(scope="module")
def screen(spark: SparkSession, shared_captures: Path, lake: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a pipeline prints on a capture with logins and card numbers."""
    capture = shared_captures / "sasl.pcap"
    assert all(secret in capture.read_bytes() for secret in SECRETS)
    shown = tmp_path_factory.mktemp("screen") / "stdout"
    with pytest.MonkeyPatch.context() as patched, shown.open("w+") as out:
        patched.setattr("sys.stdout", out)
        patched.setattr("sys.stderr", out)
        assert run_command(["pipeline", f"--captures={capture}", f"--lake={lake}"]) == 0
    return shown.read_text()


def test_no_secret_is_in_the_lake(screen: str, lake: Path) -> None:
    assert list(lake.rglob("*.parquet"))
    assert leaks(lake) == []


def test_no_secret_is_on_the_screen_or_in_sparks_log(screen: str) -> None:
    told = screen.encode() + spark_log().read_bytes()
    assert [secret for secret in SECRETS if secret in told] == []


def test_logins_are_known_by_their_headers_alone(screen: str, lake: Path) -> None:
    x = EXCHANGES
    logins = queried(str(lake), x, where=f"{x.api_name} = 'SASL_AUTHENTICATE'")
    assert logins
    assert all(row[x.request_bytes] > 0 and row[x.decode_fault] is None for row in logins)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_leak_would_be_found(spark: SparkSession, screen: str, lake: Path, tmp_path: Path, secret: bytes) -> None:
    """It is found in a compressed file of a table, not only among the least and largest values in Delta's log."""
    x = EXCHANGES
    rows = read_table(spark, str(lake), x)
    (capture_id,) = rows.select(x.capture_id).distinct().first() or ("",)
    leaking = F.when(F.col(x.exchange_no) == 3, F.lit(f"user={secret.decode()}")).otherwise(F.col(x.client_id))
    write_table(rows.withColumn(x.client_id, leaking), str(tmp_path), x, str(capture_id))
    found = leaks(tmp_path)
    assert {told for _, told in found} == {secret}
    assert [name for name, _ in found if name.endswith(".parquet")]


def test_with_a_key_no_name_of_a_topic_client_or_host_is_in_the_lake(
    screen: str, lake: Path, shared_captures: Path, tmp_path: Path
) -> None:
    """Without a key, the lake has all of these names."""
    (tmp_path / "key").write_text("one secret key of ours\n")
    plain, called = lake / "silver", tmp_path / "called"
    capture = f"--captures={shared_captures / 'sasl.pcap'}"
    assert run_command(["ingest", capture, f"--lake={called}", f"--pseudonymise={tmp_path / 'key'}"]) == 0
    clients = {row[EXCHANGES.client_id] for row in queried(str(lake), EXCHANGES)}
    f = FETCH_PARTITIONS
    rows = queried(str(lake), f)
    topics = {row[f.topic] for row in rows if row[f.topic] != row[f.topic_id]}  # an id is nobody's name
    not_ours = {*KNOWN_TO_ALL, "rdkafka"}  # a default client.id, and part of its software's name
    names = {name.encode() for name in clients | topics if name and name not in not_ours} | {b"127.0.0.1"}
    assert len(names) > 3
    assert {name for _, name in leaks(plain, names)} == names
    assert leaks(called, {*names, b"one secret key of ours"}) == []


@pytest.mark.parametrize(("key", "told"), [(None, "No such file"), ("short", "expected at least 16")])
def test_a_key_that_is_missing_or_short_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str | None, told: str
) -> None:
    if key is not None:
        (tmp_path / "key").write_text(key)
    (tmp_path / "a.pcap").touch()
    arguments = ["ingest", f"--captures={tmp_path / 'a.pcap'}", f"--pseudonymise={tmp_path / 'key'}"]
    assert run_command(arguments) == 2
    assert told in capsys.readouterr().err
