"""The notebooks: each has the cells of its script, runs on a lake, and shows what the committed notebook shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.open_lake import LAKE_VARIABLE, open_lake
from jobs.replay import replay
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.silver import CAPTURES, EXCHANGES
from tests.e2e.conftest import CapturedLake
from tests.lakes import queried
from tests.notebooks import NOTEBOOKS, OF_PRODUCERS, PRODUCERS, executed, sample_run, script_of

FAMILIES = {"explore", "fairness", "limits", "memory", "sessions", "splits"}
PROPOSALS = {"limits": "KIP-578", "memory": "KIP-81"}
MOST_BYTES = 200_000
WINDOW, CHARACTER, COLUMN = 1160, 8, 12
"""Approximate widths in pixels: of a table in a window of 1280, of a character, and of the edges of a column."""

notebooks = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def kept(path: Path) -> nbformat.NotebookNode:
    """The committed notebook beside the script."""
    return nbformat.read(path.with_suffix(".ipynb"), as_version=nbformat.NO_CONVERT)


@pytest.fixture(scope="module")
def sample_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake with the sample captures and every usual replay. Their records are zeros, so splits are not replayed."""
    run = sample_run(tmp_path_factory.mktemp("notebooks") / "lake")
    replay(spark, run, ingest(spark, run))
    return run.lake


def test_there_is_a_notebook_for_each_family_of_questions() -> None:
    assert {path.stem for path in NOTEBOOKS} == FAMILIES


@notebooks
def test_a_notebook_has_the_cells_of_its_script(path: Path) -> None:
    notebook = kept(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    assert notebook == script_of(path), "python -m tests.notebooks writes the notebooks anew"


@notebooks
def test_a_committed_notebook_is_small_and_names_no_folder_of_a_machine(path: Path, repository: Path) -> None:
    text = path.with_suffix(".ipynb").read_text()
    assert len(text) < MOST_BYTES
    shown = [output for cell in kept(path).cells for output in cell.get("outputs", [])]
    assert len(shown) > 5
    assert {output.output_type for output in shown} == {"execute_result"}
    assert not re.search(r"(?<![\w.:])/(home|root|tmp|work|Users)/", text)
    assert str(repository) not in text


@notebooks
def test_a_table_of_a_notebook_fits_a_window(path: Path) -> None:
    for cell in kept(path).cells:
        for output in cell.get("outputs", []):
            rows = re.findall(r"<tr>(.*?)</tr>", output.data.get("text/html", ""), re.DOTALL)
            cells = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]
            # The text of a cell may wrap between words and after a hyphen.
            longest = [
                max(len(word) for cell in column for word in re.split(r"[\s-]", cell))
                for column in zip(*cells, strict=True)
            ]
            across = sum(CHARACTER * width + COLUMN for width in longest)
            assert across <= WINDOW, f"{cell.source}\ntakes {across} pixels"


@notebooks
def test_numbers_of_a_notebook_are_rounded_as_those_of_the_report_and_not_cut_off(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\bint\((?!round\()|\bfloor\(", text)


@notebooks
def test_the_first_cell_of_a_notebook_shows_nothing(path: Path) -> None:
    assert "\n_ = alt.renderers.enable(" in path.read_text()


@notebooks
def test_the_settings_that_a_notebook_suggests_are_accepted(path: Path) -> None:
    text = "\n".join(cell.source for cell in script_of(path).cells if cell.cell_type == "markdown")
    told = {flag: re.findall(rf"--{flag}=(\S+?=[^\s`]+)", text) for flag in ("set", "captured")}
    assert told["set"] or path.stem == "explore"
    resolve_scenario(None, told["set"], told["captured"])


@pytest.mark.parametrize("family", PROPOSALS)
def test_a_proposal_is_called_one_before_any_number(family: str) -> None:
    text = (script_of(next(path for path in NOTEBOOKS if path.stem == family))).cells[0].source
    assert re.search(
        rf"\*\*{PROPOSALS[family]}\b[^*]*is a proposal that no release of Kafka has", " ".join(text.split())
    )


@notebooks
def test_a_notebook_shows_what_the_committed_one_shows(
    path: Path, sample_lake: str, captured: Callable[[str], CapturedLake]
) -> None:
    lake = captured(PRODUCERS).path if path.stem == OF_PRODUCERS else sample_lake
    shown = [cell.get("outputs") for cell in executed(path, lake).cells]
    assert shown == [cell.get("outputs") for cell in kept(path).cells]


def test_an_opened_lake_shows_one_capture_set_and_the_newest_run_of_each_replay(
    spark: SparkSession, sample_lake: str
) -> None:
    lake = open_lake(sample_lake)
    assert lake.spark is spark
    assert lake.lanes("session_cache")[0] == "captured"
    runs = lake.rows(RUNS).collect()
    assert {row[RUNS.algorithm]: row[RUNS.run_id] for row in runs} == {
        algorithm: replay.run_id for algorithm, replay in lake.replays.items()
    }
    assert {row[0] for row in lake.rows(EXCHANGES).select(EXCHANGES.capture_id).distinct().collect()} == {
        lake.capture_id
    }
    (by_sql,) = lake.sql("SELECT sum(checked) AS checked FROM fidelity").collect()
    assert by_sql.checked == sum(row[FIDELITY.checked] for row in lake.rows(FIDELITY).collect()) > 0


def test_a_table_at_the_end_of_a_cell_has_the_rows_of_every_lane_of_a_large_grid(sample_lake: str) -> None:
    shown = open_lake(sample_lake).sql("SELECT explode(sequence(1, 96)) AS row")._repr_html_()
    assert shown is not None
    assert "<td>96</td>" in shown
    assert "only showing" not in shown


def test_a_notebook_that_starts_spark_says_in_one_sentence_what_its_lake_lacks(
    sample_lake: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LAKE_VARIABLE, sample_lake)
    monkeypatch.setenv("PYTHONPATH", str(repository))
    notebook = script_of(repository / "notebooks" / f"{OF_PRODUCERS}.py")
    with pytest.raises(CellExecutionError):
        NotebookClient(notebook, timeout=300).execute()
    (told,) = (output for cell in notebook.cells for output in cell.get("outputs", []) if output.output_type == "error")
    command = (
        f"`./spark-submit.sh pipeline --captures=CAPTURES --lake={sample_lake} --set=producer.batch.size=16KiB,64KiB`"
    )
    (capture_id,) = {row[CAPTURES.capture_id] for row in queried(sample_lake, CAPTURES)}
    assert told.traceback == [
        f"refetch: {sample_lake} has no replay of batch_split over capture set {capture_id}; make one with {command}"
    ]


def test_views_answer_common_questions_with_settings_as_numbers(sample_lake: str, spark: SparkSession) -> None:
    lake = open_lake(sample_lake)
    slowest = lake.rows("latency_by_client").collect()
    times = lake.rows(EXCHANGES).toPandas().dropna(subset=["request_time", "response_time"])
    took = (times["response_time"] - times["request_time"]).dt.total_seconds() * 1000
    expected = took.groupby([times["client_id"], times["api_name"]]).agg(["size", "max"])
    named = [row for row in slowest if row["client_id"] is not None]
    assert {(row["client_id"], row["api_name"]): row["requests"] for row in named} == expected["size"].to_dict()
    assert {(row["client_id"], row["api_name"]): row["longest_ms"] for row in named} == pytest.approx(
        expected["max"].to_dict()
    )
    waits = lake.sql(
        "SELECT * FROM starved_partitions JOIN lane_settings USING (scenario) WHERE algorithm = 'fetch_max_bytes'"
    )
    lanes = {row["scenario"]: row["fetch_max_bytes"] for row in waits.collect()}
    assert lanes.pop("captured") is None
    assert lanes
    assert all(f"consumer.fetch.max.bytes={size >> 10}KiB" in lane for lane, size in lanes.items() if size < 1 << 20)
