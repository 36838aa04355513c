"""The command that a user types, from captures to tables and the last screen."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
import zstandard
from pyspark.sql import SparkSession

from jobs.cli import run_command
from jobs.replays.algorithms import ALGORITHMS
from jobs.report_page.questions import QUESTIONS
from jobs.scenarios.settings import ON_REQUEST
from jobs.session.spark_properties import SHUFFLE_PARTITIONS
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from schemas.tables.silver import SILVER
from tests.conftest import REPOSITORY
from tests.equal_rows.published import PUBLISHED, hashes_of_quickstart
from tests.lakes import lake_rows

USUAL = [algorithm for name, algorithm in ALGORITHMS.items() if name not in ON_REQUEST]
"""What is replayed if no replay is named."""
PARTS = ["Read", "Lost", "Fidelity", "Answers", *(algorithm.title for algorithm in USUAL), "Tables"]
TABLES = (
    *SILVER,
    RECOMMENDATIONS,
    FIDELITY,
    *(table for algorithm in USUAL for table in algorithm.tables),
    RUNS,
    GATE_RESULTS,
)
QUICKSTART = REPOSITORY / "conf/quickstart.yaml"
SETTINGS = ("--set=consumer.fetch.max.bytes=64KiB,8MiB", "--captured=broker.fetch.max.bytes=55MiB")
ASKED = (*SETTINGS, "--run-at=2026-01-31T12:00:00Z", "--verbose")


@pytest.fixture(scope="module")
def samples(repository: Path) -> list[Path]:
    """Two of the captures that ship with refetch, of brokers with Kafka's default settings."""
    return [repository / f"tests/captures/{name}.pcap.zst" for name in ("mixed", "starve")]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pipeline") / "my lake"


@pytest.fixture(scope="module")
def answer(repository: Path, samples: list[Path], lake: Path) -> subprocess.CompletedProcess[str]:
    """One `./spark-submit.sh pipeline` on the samples, run in a folder that is not the clone."""
    lake.parent.mkdir(exist_ok=True)
    arguments = ["pipeline", "--captures", *map(str, samples), f"--lake={lake.name}", "--master=local[2]", *ASKED]
    return subprocess.run(
        [str(repository / "spark-submit.sh"), *arguments],
        cwd=lake.parent, env=os.environ | {"REFETCH_PYTHON": sys.executable},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def test_the_pipeline_ends_with_what_it_found(answer: subprocess.CompletedProcess[str]) -> None:
    assert answer.returncode == 0, answer.stderr
    heads = [line for line in answer.stdout.splitlines() if line and not line.startswith(" ")]
    assert [line[: len(part)] for line, part in zip(heads, PARTS, strict=False)] == PARTS
    assert [line.split()[0] for line in heads[len(PARTS) :]][:2] == ["refetch", "TRUST"]
    assert [line.split()[0] for line in heads][-2:] == ["Report", "Tables"]


def test_the_summary_names_every_capture_lane_and_table(
    answer: subprocess.CompletedProcess[str], samples: list[Path], lake: Path
) -> None:
    for capture in samples:
        assert f"  {capture}: " in answer.stdout
    for table in TABLES:
        assert f"  {lake}/{table.layer}\n" in answer.stdout
        assert (lake / table.layer / table.name / "_delta_log").is_dir()
    assert re.search(r"^  consumer +replayed as captured ", answer.stdout, re.MULTILINE)
    assert re.search(r"^  consumer +fetch\.max\.bytes=64KiB ", answer.stdout, re.MULTILINE)


def test_the_summary_says_how_far_the_replay_of_consumers_can_be_trusted(
    answer: subprocess.CompletedProcess[str],
) -> None:
    told = re.search(r"^  consumer +fetches with records +([\d,]+) +100 % +0$", answer.stdout, re.MULTILINE)
    assert told, answer.stdout
    assert int(told[1].replace(",", "")) > 0


def test_the_screen_has_the_answers_of_the_report(answer: subprocess.CompletedProcess[str], lake: Path) -> None:
    assert f"\nReport    {lake.name}/report.html  JSON {lake.name}/summary.json\n" in answer.stdout
    assert json.loads((lake / "summary.json").read_text(encoding="utf-8"))["recommendations"]
    page = unescape((lake / "report.html").read_text(encoding="utf-8")).replace("\N{NO-BREAK SPACE}", " ")
    told = re.findall(r"^ +(\d+)  (\S.{40,60}) ", answer.stdout, re.MULTILINE)
    assert len(told) >= 10
    assert [begin for _, begin in told if begin not in page] == []


def test_stages_are_printed_on_stderr_and_spark_is_quiet(answer: subprocess.CompletedProcess[str]) -> None:
    lines = answer.stderr.splitlines()
    assert [line for line in lines if not line.startswith("refetch: ")] == []
    assert [line for line in lines if "index" in line]
    assert [line for line in lines if "replay fetch_max_bytes" in line]


@pytest.mark.usefixtures("spark", "no_page")
def test_the_same_command_again_decodes_and_replays_nothing_and_leaves_equal_tables(
    answer: subprocess.CompletedProcess[str], samples: list[Path], lake: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    once = lake_rows(str(lake), TABLES)
    assert run_command(["pipeline", "--captures", *map(str, samples), f"--lake={lake}", *ASKED]) == 0
    printed = capsys.readouterr()
    where = "\nReport "
    assert printed.out.partition(where)[0] == answer.stdout.partition(where)[0]
    assert "was ingested before" in printed.err
    assert "was replayed before" in printed.err
    assert lake_rows(str(lake), TABLES) == once


@pytest.fixture
def five_tasks(spark: SparkSession) -> Iterator[None]:
    """The session gets another number of tasks in shuffles than the command has."""
    before = spark.conf.get(SHUFFLE_PARTITIONS) or ""
    spark.conf.set(SHUFFLE_PARTITIONS, "5")
    yield
    spark.conf.set(SHUFFLE_PARTITIONS, before)


@pytest.mark.usefixtures("five_tasks", "no_page")
def test_ingest_and_replay_with_other_tasks_write_the_tables_of_the_pipeline(
    answer: subprocess.CompletedProcess[str], samples: list[Path], lake: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The jobs write to another lake. `ingest` also says what was read and lost."""
    assert answer.returncode == 0, answer.stderr
    assert run_command(["ingest", "--captures", *map(str, samples), f"--lake={tmp_path}", *SETTINGS]) == 0
    told, tables = capsys.readouterr().out.split("\nTables\n")
    of_captures, *_ = answer.stdout.split("\nFidelity")
    assert told.splitlines() == [line for line in of_captures.splitlines() if not line.startswith("  kafka: ")]
    assert re.fullmatch(rf"  {tmp_path}/silver\n  capture [0-9a-f]+\n", tables)
    assert run_command(["replay", f"--lake={tmp_path}", *ASKED]) == 0
    assert lake_rows(str(tmp_path), TABLES) == lake_rows(str(lake), TABLES)


def plain(sample: Path) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(sample.read_bytes())


@pytest.mark.usefixtures("spark")
def test_files_that_are_no_captures_are_all_named_in_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.pcap").write_bytes(b"PK\3\4 not a capture at all, but long enough to have a header")
    (tmp_path / "b.pcap.gz").write_bytes(b"not gzip")
    code = run_command(["pipeline", f"--captures={tmp_path}", f"--lake={tmp_path / 'lake'}"])
    out, err = capsys.readouterr()
    told = [line for line in err.splitlines() if not re.match(r"refetch: index( |$)", line)]
    assert (code, out, len(told)) == (1, "", 2)
    assert told[0].startswith("refetch: ")
    assert f"{tmp_path / 'a.pcap'}" in told[0]
    assert f"{tmp_path / 'b.pcap.gz'}" in told[1]
    assert not (tmp_path / "lake").exists()


@pytest.mark.usefixtures("spark")
def test_the_quickstart_makes_all_replays_and_answers_all_questions_with_a_plot_for_each(tmp_path: Path) -> None:
    assert run_command(["pipeline", f"--scenario={QUICKSTART}", f"--lake={tmp_path}"]) == 0
    told = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert {*told["lanes"]} == {*ALGORITHMS}
    assert [answer["number"] for answer in told["answers"] if answer["is_answered"]] == [
        question.number for question in QUESTIONS
    ]
    assert "No plot: " not in (tmp_path / "report.html").read_text(encoding="utf-8")
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    assert hashes_of_quickstart(str(tmp_path)) == published, "rows differ from those published: tests/equal_rows"
    changed = {one["setting"] for one in told["recommendations"] if one["verdict"] == "change"}
    assert {"producer.batch.size", "broker.max.incremental.fetch.session.cache.slots"} <= changed


@pytest.mark.usefixtures("spark")
def test_a_capture_cut_short_is_read_as_far_as_it_goes(
    samples: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cut.pcap").write_bytes(plain(samples[0])[:100_003])
    assert run_command(["ingest", f"--captures={tmp_path}", f"--lake={tmp_path / 'lake'}"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^  .*cut\.pcap: [\d,]+ packets", out, re.MULTILINE)
    assert re.search(r"^    damaged: \w+ at byte \d+$", out, re.MULTILINE)


@pytest.mark.usefixtures("spark")
def test_a_replay_of_an_empty_lake_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["replay", f"--lake={tmp_path}"]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert told.endswith("silver/captures: no such table; run `ingest` with captures and this --lake first")
