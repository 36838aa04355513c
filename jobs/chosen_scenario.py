"""Chooses grids from the capture if nobody says what to replay, prints them, and writes them to a scenario file."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.captures.amounts import read_amounts
from jobs.captures.clusters import captured_clusters
from jobs.report_page.verdict import short_path
from jobs.run import Run
from jobs.scenarios.chosen_grids import choose_grids
from jobs.scenarios.scenario import Scenario, with_grids
from jobs.scenarios.scenario_text import scenario_file_text
from jobs.scenarios.settings import setting_of
from udfs.errors import LakeError

NAME = "scenario.yaml"
"""The file beside the page that states what was chosen."""


def with_chosen_grids(spark: SparkSession, run: Run, capture_id: str) -> Run:
    """The run; if nobody says what to replay, with grids that are chosen from a capture set of the lake.

    Raises LakeError if the file that states them cannot be written beside the page.
    """
    if not run.chooses:
        return run
    clusters = captured_clusters(spark, run.lake, capture_id)
    cluster_id = run.cluster_id or (clusters[0].cluster_id if len(clusters) > 1 else None)
    grids = choose_grids(read_amounts(spark, run.lake, capture_id, cluster_id), run.scenario.stated)
    scenario = with_grids(run.scenario, grids)
    kept = None if run.output.page is None else run.output.page.with_name(NAME)
    if kept is not None:
        write_scenario_file(kept, scenario, run.captures)
    sys.stderr.writelines(f"refetch: {line}\n" for line in chosen_lines(scenario, kept))
    return replace(run, scenario=scenario, chooses=False)


def write_scenario_file(file: Path, scenario: Scenario, captures: tuple[Path | str, ...]) -> None:
    """Write a scenario file that states the chosen grids. Raises LakeError if it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(scenario_file_text(scenario, map(str, captures)), encoding="utf-8")
    except OSError as fault:
        raise LakeError(f"{file}: the chosen scenario could not be written: {fault.strerror or fault}") from fault


def chosen_lines(scenario: Scenario, kept: Path | None) -> list[str]:
    """The chosen values as text: a heading, and a line for each replay. kept: the file that states them, if any."""
    file = "" if kept is None else f"; {short_path(str(kept))} states them"
    lines = [f"no --set and no scenario says what to replay: these values are chosen from the capture{file}"]
    for name, grid in sorted(scenario.replay.items()):
        values = [f"{key}={','.join(map(setting_of(key).format, chosen))}" for key, chosen in grid.items()]
        lines.append(f"  {name}: {' '.join(values) or 'as captured'}")
    return lines
