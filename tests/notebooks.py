"""The notebooks: made from their scripts, with the outputs of their cells, which are run in this process.

    python -m tests.notebooks      # runs every notebook and writes its .ipynb

A Jupyter kernel for each notebook would start its own JVM; here all notebooks share one Spark session.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_output
from traitlets.config import Config

from jobs.ingest import ingest
from jobs.open_lake import LAKE_VARIABLE
from jobs.ready_session import ready_session
from jobs.replay import replay
from jobs.run import Run, SessionWishes
from jobs.scenarios.scenario_file import resolve_scenario
from tests.e2e.conftest import IN_FORCE, RUN_AT, WHAT_IF

REPOSITORY = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted(path for path in (REPOSITORY / "notebooks").glob("*.py") if path.stem != "__init__")
SHOWN = ("image/svg+xml", "text/html")
"""MIME types of outputs, a plot or a table. Of each output, the first of these that it has is kept."""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
ASKED = (
    "consumer.fetch.max.bytes=256KiB,50MiB",
    "consumer.max.partition.fetch.bytes=64KiB,1MiB",
    "consumer.buffer.memory=256KiB,1MiB",
    "broker.max.incremental.fetch.session.cache.slots=8,16",
    "max.broker.partitions=4,200",
)
"""The settings that are replayed over the sample captures for the notebooks."""
OF_PRODUCERS, PRODUCERS = "splits", "split"
"""A notebook that the sample captures cannot answer, since their records are zeros; and the shared capture that can."""
SAMPLES = ("mixed", "starve")
"""The sample captures that the other notebooks show."""


def sample_run(lake: Path) -> Run:
    """The replay of the sample captures for the notebooks."""
    captures = tuple(REPOSITORY / "tests" / "captures" / f"{name}.pcap.zst" for name in SAMPLES)
    scenario = resolve_scenario(None, ASKED, ["broker.fetch.max.bytes=55MiB"])
    return Run(scenario, captures, str(lake), RUN_AT, session=SessionWishes("local[2]"))


def producers_run(lake: Path) -> Run:
    """The replay of the shared capture of producers whose batches are split, with the settings of its tests."""
    capture = REPOSITORY.parent / "shared" / "captures" / f"{PRODUCERS}.pcap"
    scenario = resolve_scenario(None, WHAT_IF[PRODUCERS], IN_FORCE[PRODUCERS])
    return Run(scenario, (capture,), str(lake), RUN_AT, session=SessionWishes("local[2]"))


def script_of(path: Path) -> nbformat.NotebookNode:
    """A notebook from its script, without outputs."""
    notebook = jupytext.read(path)
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{path.stem}-{number}"
    return notebook


def executed(path: Path, lake: str) -> nbformat.NotebookNode:
    """A notebook from its script, with the outputs of its cells on a lake. Raises what a cell raises, and an
    AssertionError if a cell prints.
    """
    notebook = script_of(path)
    with shell(lake) as run:
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = run(cell.source)
    return notebook


@contextmanager
def shell(lake: str) -> Iterator[Any]:
    """A function that runs a cell as Jupyter does, and returns its outputs. The cells share one namespace."""
    before = os.environ.get(LAKE_VARIABLE)
    os.environ[LAKE_VARIABLE] = lake
    with tempfile.TemporaryDirectory() as folder:
        interactive: Any = _Shell.instance(config=Config(HistoryManager={"enabled": False}), ipython_dir=folder)
        try:
            yield interactive.outputs_of
        finally:
            _Shell.clear_instance()
            os.environ.pop(LAKE_VARIABLE) if before is None else os.environ.update({LAKE_VARIABLE: before})


class _Shown(DisplayHook):
    """Keeps the value of a cell's last line instead of printing it."""

    def compute_format_data(self, result: Any) -> Any:
        """Only the types in SHOWN, since a DataFrame runs its query for each type."""
        assert isinstance(self.shell, _Shell)
        assert self.shell.display_formatter is not None
        return self.shell.display_formatter.format(result, include=SHOWN)

    def write_output_prompt(self) -> None:
        """There is no prompt."""

    def write_format_data(self, format_dict: Mapping[str, str], md_dict: object = None) -> None:
        """Keep the value."""
        assert isinstance(self.shell, _Shell)
        self.shell.shown.append(format_dict)


class _Shell(InteractiveShell):
    displayhook_class = _Shown
    display_pub_class = CapturingDisplayPublisher

    def outputs_of(self, source: str) -> list[nbformat.NotebookNode]:
        self.shown: list[Mapping[str, str]] = []
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            done = self.run_cell(source)
        done.raise_error()
        assert not printed.getvalue(), f"a cell prints: {printed.getvalue()}"
        return [output_of(data) for data in self.shown]


def output_of(data: Mapping[str, str]) -> nbformat.NotebookNode:
    """The output that is kept of a value that a cell shows."""
    kind = next(kind for kind in SHOWN if kind in data)
    return new_output("execute_result", data={kind: data[kind]}, execution_count=None)


def written(notebook: nbformat.NotebookNode) -> str:
    """The text of the notebook's .ipynb. Raises ValidationError if it is not a valid notebook."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n"


def main() -> None:
    """Run every notebook, and write it with its outputs next to its script."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {False: sample_run(Path(folder) / "samples"), True: producers_run(Path(folder) / "producers")}
        spark = ready_session(runs[False], runs[True].scenario.algorithms)
        for run in runs.values():
            replay(spark, run, ingest(spark, run))
        for path in NOTEBOOKS:
            path.with_suffix(".ipynb").write_text(written(executed(path, runs[path.stem == OF_PRODUCERS].lake)))


if __name__ == "__main__":
    main()
