"""What undisturbed commands leave: ids, tables and rows of each capture under each scenario.

It is kept together with the version of the code that made it, since making it takes longer than some steps.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from jobs.flags import PIPELINE
from jobs.lake.table_address import table_path
from jobs.version import replayer_version
from schemas.tables.gold import RUNS
from tests.histories.check import Hashes
from tests.histories.commands import Child, Home, arguments, done_here
from tests.histories.model import OWN, Cell
from tests.histories.seen import seen
from tests.histories.steps import CONTENTS, FILES, SCENARIOS, SETS, Step


@dataclass(frozen=True)
class Undisturbed:
    """Implements `Known`. sets: ids by name in SETS. runs: ids by (name, scenario). rows: the hash of each cell."""

    sets: Mapping[str, str]
    runs: Mapping[tuple[str, str], str]
    rows: Mapping[Cell, str]

    def set_id(self, content: str) -> str:
        """See `Known`."""
        return self.sets[content]

    def run_id(self, content: str, scenario: str) -> str:
        """See `Known`."""
        return self.runs[content, scenario]

    def tables(self, identity: str) -> frozenset[str]:
        """See `Known`."""
        return frozenset(table for table, of in self.rows if of == identity)

    def set_of(self, run_id: str) -> str:
        """See `Known`."""
        return next(self.sets[content] for (content, _), run in self.runs.items() if run == run_id)

    @property
    def hashes(self) -> Hashes:
        """The hashes of a pipeline's rows; those of other commands are not known yet."""
        return Hashes({(cell, OWN): rows for cell, rows in self.rows.items()})


def undisturbed(home: Home, names: Sequence[str] = SETS, scenarios: Sequence[str] = SCENARIOS) -> Undisturbed:
    """Run each capture set under each scenario, in the home's lake. Raises RuntimeError if one fails."""
    sets, runs = dict[str, str](), dict[tuple[str, str], str]()
    for content in names:
        for scenario in scenarios:
            capture, _, earlier = content.partition(">")
            step = Step(PIPELINE, capture, FILES[0], scenario, goes_on=earlier)
            ended = done_here(arguments(step, home, Undisturbed(sets, runs, {})))
            if ended.code:
                raise RuntimeError(f"{step}: exit code {ended.code}: {ended.said}")
            path = Path(table_path(str(home.lake), RUNS))
            rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
            (new,) = {(r[RUNS.run_id], r[RUNS.capture_id]) for r in rows} - {(runs[k], sets[k[0]]) for k in runs}
            runs[content, scenario], sets[content] = new
    return Undisturbed(sets, runs, seen(home.lake, home.begin).cells)


def kept(home: Home) -> tuple[Undisturbed, float]:
    """(what undisturbed commands leave, seconds that a `pipeline` takes in a process of its own). Both come from the
    folder if this code made it, and are made anew otherwise. Raises RuntimeError if a command fails.
    """
    file, code = home.folder / "ids.json", replayer_version("")
    if file.exists() and (told := json.loads(file.read_text()))["code"] == code:
        runs = {(content, scenario): run for content, scenario, run in told["runs"]}
        return Undisturbed(told["sets"], runs, seen(home.lake, home.begin).cells), told["pipeline_s"]
    home.prepare()
    known = undisturbed(home)
    seconds = pipeline_seconds(home, known)
    listed = [[*of, run] for of, run in known.runs.items()]
    file.write_text(json.dumps({"code": code, "sets": known.sets, "runs": listed, "pipeline_s": seconds}))
    return known, seconds


def pipeline_seconds(home: Home, known: Undisturbed) -> float:
    """Seconds that a `pipeline` whose capture is already in the lake takes in a process of its own. Raises RuntimeError
    if it fails.
    """
    began, step = time.monotonic(), Step(PIPELINE, CONTENTS[0], FILES[0], SCENARIOS[0])
    ended = Child(arguments(step, home, known), home).ended()
    if ended.code:
        raise RuntimeError(f"a pipeline: exit code {ended.code}: {ended.said}")
    return time.monotonic() - began
