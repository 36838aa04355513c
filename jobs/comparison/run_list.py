"""The runs and the capture sets that a lake has, the newest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from jobs.lake.capture_sets import CaptureSet, KnownSets, known_sets
from jobs.lake.delta_tables import has_table, read_table
from jobs.lake.listed_runs import finished_runs
from jobs.report_page.findings import runs_in
from jobs.terminal.screen import WIDTH, Grid, grid_lines, printable_text, share_text, with_rest_count
from jobs.terminal.wording import utc_time
from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import CAPTURES
from udfs.errors import LakeError

MOST_SHOWN, MOST_LISTED = 20, 1_000
"""How many runs and capture sets are on the first screen, and how many are listed at most."""
GateVerdict = Literal["passed", "refused", "not applied"]
HEAD = ("run", "at", "capture set", "replays of KIP", "gate", "equal", "captures")
SET_HEAD = ("capture set", "files", "from", "to", "gate", "runs", "captures")


KIPS: Mapping[str, str] = {
    algorithms.FETCH_MAX_BYTES: "74",
    algorithms.CONSUMER_MEMORY: "81",
    algorithms.BATCH_SPLIT: "126",
    algorithms.SESSION_CACHE: "227",
    algorithms.PARTITION_LIMITS: "578",
}
"""A word for what a replay replays that is short enough for a table, by the replay's name."""


class ListedRun(BaseModel):
    """A run. captures: the names of the first files of its capture set; none for a run of `size`. gate: the verdict of
    the gates on the run and its captures. checked, agreed: results of the replay of the captured settings.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    run_at: str
    capture_id: str
    captures: list[str]
    files: int
    replays: list[str]
    gate: GateVerdict
    checked: int
    agreed: int


class ListedSet(BaseModel):
    """A capture set, with the times of its first and last packet, and the number of its runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    capture_id: str
    files: int
    captures: list[str]
    first_time: str | None
    last_time: str | None
    gate: GateVerdict
    runs: int


class RunList(BaseModel):
    """The newest runs and capture sets of a lake, the newest first, and how many there are of each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    lake: str
    runs: list[ListedRun]
    runs_in_all: int
    capture_sets: list[ListedSet]
    capture_sets_in_all: int


class GateCounts(NamedTuple):
    """How many rules gates applied to a capture set or run, and how many critical ones of them refused rows."""

    rules: int
    refused: int


class ResultCounts(NamedTuple):
    """How many results of a run's replay of the captured settings were checked, and how many agree with the capture."""

    checked: int
    agreed: int


def run_list(spark: SparkSession, lake: str, most: int = MOST_LISTED) -> RunList:
    """The lake's newest runs and capture sets, at most `most` of each. Raises LakeError if it has neither."""
    has_captures, has_runs = (has_table(spark, lake, table) for table in (CAPTURES, RUNS))
    if not has_captures and not has_runs:
        raise LakeError(f"{lake}: no captures and no runs; run `pipeline` with captures and this --lake first")
    sets = known_sets(spark, lake) if has_captures else KnownSets()
    finished = finished_runs(spark, lake)
    run_ids, set_ids = [run.run_id for run in finished[:most]], sets.ids[:most]
    of_runs = [run.capture_id for run in finished[:most]]
    by_id = {one.capture_id: one for one in sets.of([*set_ids, *of_runs])}
    gates, checks = gate_counts(spark, lake, [*run_ids, *of_runs, *set_ids]), checked_results(spark, lake, run_ids)
    of_set = Counter(run.capture_id for run in finished)
    runs = rows_of_runs(spark, lake, run_ids) if run_ids else []
    return RunList(
        lake=lake,
        runs=[listed_run(row, by_id.get(row[RUNS.capture_id]), gates, checks) for row in runs],
        runs_in_all=len(finished),
        capture_sets=[listed_set(by_id[one], gates, of_set[one]) for one in set_ids],
        capture_sets_in_all=len(sets.ids),
    )


def rows_of_runs(spark: SparkSession, lake: str, runs: Collection[str]) -> list[Row]:
    """Rows (run_id, capture_id, run_at, replays) of these runs, the newest first."""
    t = RUNS
    rows = read_table(spark, lake, t, runs, columns=(t.run_id, t.capture_id, t.run_at, t.algorithm))
    return runs_in(rows).orderBy(F.desc(t.run_at), t.run_id).collect()


def checked_results(spark: SparkSession, lake: str, runs: Collection[str]) -> dict[str, ResultCounts]:
    """The counts of `fidelity` for these runs, by run; runs without replays of captures have none."""
    t = FIDELITY
    if not has_table(spark, lake, t):
        return {}
    rows = read_table(spark, lake, t, runs, columns=(t.run_id, t.checked, t.agreed))
    sums = rows.groupBy(t.run_id).agg(F.sum(t.checked), F.sum(t.agreed)).collect()
    return {row[0]: ResultCounts(row[1], row[2]) for row in sums}


def gate_counts(spark: SparkSession, lake: str, identities: Collection[str]) -> dict[str, GateCounts]:
    """What gates found for these capture sets and runs, by id."""
    t = GATE_RESULTS
    if not has_table(spark, lake, t):
        return {}
    refused = F.count_if((F.col(t.severity) == "critical") & ~F.col(t.passed))
    rows = read_table(spark, lake, t, identities, columns=(t.checked_id, t.severity, t.passed))
    counts = rows.groupBy(t.checked_id).agg(F.count("*"), refused).collect()
    return {row[0]: GateCounts(row[1], row[2]) for row in counts}


def combined_gate(*of_parts: GateCounts | None) -> GateVerdict:
    """The verdict of the gates on something, from their counts for its parts.

    >>> combined_gate(GateCounts(12, 0), GateCounts(7, 1)), combined_gate(None)
    ('refused', 'not applied')
    """
    applied = [one for one in of_parts if one is not None and one.rules]
    if any(one.refused for one in applied):
        return "refused"
    return "passed" if applied else "not applied"


def listed_run(
    row: Row, captures: CaptureSet | None, gates: Mapping[str, GateCounts], checks: Mapping[str, ResultCounts]
) -> ListedRun:
    """A run."""
    t, of_run = RUNS, checks.get(row[RUNS.run_id], ResultCounts(0, 0))
    return ListedRun(
        run_id=row[t.run_id], run_at=utc_iso_text(row[t.run_at]), capture_id=row[t.capture_id],
        captures=[] if captures is None else first_file_names(captures),
        files=0 if captures is None else captures.files,
        replays=list(row["replays"]), gate=combined_gate(gates.get(row[t.run_id]), gates.get(row[t.capture_id])),
        checked=of_run.checked, agreed=of_run.agreed,
    )  # fmt: skip


def listed_set(capture_set: CaptureSet, gates: dict[str, GateCounts], runs: int) -> ListedSet:
    """A capture set."""
    first, last = (None if at is None else utc_iso_text(at) for at in (capture_set.first_time, capture_set.last_time))
    return ListedSet(
        capture_id=capture_set.capture_id, files=capture_set.files, captures=first_file_names(capture_set),
        first_time=first, last_time=last,
        gate=combined_gate(gates.get(capture_set.capture_id)), runs=runs,
    )  # fmt: skip


def utc_iso_text(at: datetime) -> str:
    """A time from Spark as ISO 8601 in UTC. Spark's time has no zone and is in the zone of this process."""
    return at.astimezone(UTC).isoformat()


def first_file_names(capture_set: CaptureSet) -> list[str]:
    """The names of the first files of a set."""
    return [path.rpartition("/")[2] for path in capture_set.first_paths]


def list_lines(listed: RunList, most: int = MOST_SHOWN) -> Iterator[str]:
    """The lines of two tables, of runs and of capture sets, each with at most `most` rows."""
    yield f"Runs of {listed.lake}, the newest first, times in UTC"
    yield from table_lines(HEAD, [run_cells(one) for one in listed.runs], listed.runs_in_all, most, "run")
    yield from ("", "Capture sets, the one written last first")
    yield from table_lines(
        SET_HEAD, [set_cells(one) for one in listed.capture_sets], listed.capture_sets_in_all, most, "capture set"
    )
    if listed.runs:
        yield from (
            "",
            "compare RUN RUN says what changed between two of them; report --run=RUN writes the page of one.",
        )


def table_lines(head: Sequence[str], cells: Sequence[Sequence[str]], in_all: int, most: int, what: str) -> list[str]:
    """A table as lines. If there are more rows, the last line says how many. what: what a row is."""
    if not cells:
        return [f"  no {what}"]
    texts = [name for name in head if name not in ("files", "runs", "equal")]
    lines = [line[:WIDTH] for line in grid_lines(Grid(head, cells[:most], texts), most)]
    left = in_all - min(most, len(cells))
    return [*lines, f"  ... {left:,} more"] if left else lines


def run_cells(run: ListedRun) -> list[str]:
    """A run as cells."""
    files = ", ".join(with_rest_count(run.captures[:1], run.files)) if run.files else "a cluster's file"
    replays = ", ".join(kip for name, kip in KIPS.items() if name in run.replays)
    at = utc_minute(run.run_at)
    return [
        run.run_id,
        at,
        run.capture_id,
        replays,
        run.gate,
        share_text(run.agreed, run.checked),
        printable_text(files),
    ]


def set_cells(listed: ListedSet) -> list[str]:
    """A capture set as cells."""
    files = ", ".join(with_rest_count(listed.captures, listed.files))
    times = [utc_minute(at) for at in (listed.first_time, listed.last_time)]
    return [listed.capture_id, f"{listed.files:,}", *times, listed.gate, f"{listed.runs:,}", printable_text(files)]


def utc_minute(at: str | None) -> str:
    """A time in UTC to the minute."""
    return "-" if at is None else utc_time(datetime.fromisoformat(at))[:16]
