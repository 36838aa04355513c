"""What a lake must hold after each step: which capture sets and runs, and which table has which of their rows.

A cell is a table's rows of one capture set, run or comparison. It has either all rows that an undisturbed command
writes, or none. The model is plain Python. An undisturbed lake tells it the ids, and which tables have rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from jobs.flags import COMPACT, COMPARE, GATE, INGEST, LATEST, MIGRATE, PIPELINE, PRUNE, REPLAY, REPORT, RUNS
from tests.histories.steps import AGE, BY_RUN, ENDED_BEFORE, SETS, SILVER, TREND, Step

CAPTURES, RUN_ROWS, GATES, ADVICE, TRENDS, CHECKED = (
    "captures", "runs", "gate_results", "recommendations", "trends", "predictions_checked"
)  # fmt: skip
OWN, BY_GATE = "own", "by gate"
"""The variants of a cell: the rows that a pipeline writes, or those that the job `gate` writes."""
RECORD = (TRENDS, CHECKED)
DAY = 24
Cell = tuple[str, str]
"""A table and the id of the capture set, run or comparison."""


class Known(Protocol):
    """The ids of capture sets and runs, and the tables in which an undisturbed command leaves rows of them."""

    def set_id(self, content: str) -> str:
        """The capture set of a capture, or of one that continues another (`c>b`)."""

    def run_id(self, content: str, scenario: str) -> str:
        """The run of a capture under a scenario."""

    def tables(self, identity: str) -> frozenset[str]:
        """The tables that have rows of a capture set or run."""

    def set_of(self, run_id: str) -> str:
        """The capture set of a run."""


@dataclass(frozen=True)
class Lake:
    """What a lake holds.

    cells: the variant of each cell that has rows. written: capture sets, in the order in which they were written last.
    files: the name of each set's capture. run_at: each run's clock in hours. pages: runs that have a page. shown: the
    run that report.html shows. tables: the tables that exist, with or without rows. may_stray: a command was killed or
    failed, so there may be files that no log names.
    """

    cells: Mapping[Cell, str] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    run_at: Mapping[str, int] = field(default_factory=dict)
    pages: frozenset[str] = frozenset()
    shown: str | None = None
    tables: frozenset[str] = frozenset()
    may_stray: bool = False

    def newest(self, known: Known) -> list[str]:
        """Finished runs whose capture sets are in the lake, the newest first."""
        own = [run for run in self.run_at if known.set_of(run) in self.written]
        return sorted(own, key=lambda run: (-self.run_at[run], run))


class RefusedError(Exception):
    """The command ends with this exit code, and changes nothing."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def after(lake: Lake, step: Step, known: Known) -> tuple[Lake, int]:
    """(the lake after an undisturbed step, the exit code)."""
    try:
        return OUTCOMES[step.job](lake, step, known), 0
    except RefusedError as refused:
        return lake, refused.code


def pipelined(lake: Lake, step: Step, known: Known) -> Lake:
    """The lake with a run of a capture, which is ingested unless the lake has it from a file of the same name."""
    of = set_written(lake, step, known)
    there = gated(lake, of) if is_kept(lake, step, known) else ingested(lake, step, known)
    return with_run(there, of, step, known)


def is_kept(lake: Lake, step: Step, known: Known) -> bool:
    """Whether a pipeline finds its capture set in the lake, read from a file of the same name."""
    of = set_written(lake, step, known)
    return of in lake.written and lake.files[of] == step.file


def set_written(lake: Lake, step: Step, known: Known) -> str:
    """The capture set that a step writes. If it continues another set, that one has to be listed as complete."""
    before = [content for content in ENDED_BEFORE.get(step.content, ()) if known.set_id(content) in lake.written]
    if step.goes_on not in ("", LATEST, *before):
        raise RefusedError(2)
    earlier = before[:1] if step.goes_on == LATEST else [step.goes_on] if step.goes_on else []
    return known.set_id(">".join([step.content, *earlier]))


def replayed(lake: Lake, step: Step, known: Known) -> Lake:
    """The lake with a run of the named capture set; without a name, of the one written last."""
    return with_run(lake, chosen_set(lake, step, known), step, known)


def checked(lake: Lake, step: Step, known: Known) -> Lake:
    """The lake with the rows of the job `gate`."""
    of = chosen_set(lake, step, known) if step.by == SILVER else chosen_run(lake, step, known)
    return replace(lake, cells={**lake.cells, (GATES, of): BY_GATE})


def reported(lake: Lake, step: Step, known: Known) -> Lake:
    """The lake with the page of the named run; without a name, of the newest one."""
    return with_page(lake, chosen_run(lake, step, known), known)


def listed(lake: Lake, _step: Step, _known: Known) -> Lake:
    """The lake unchanged. Refused if it has neither table, since there is nothing to list."""
    if not lake.tables & {CAPTURES, RUN_ROWS}:
        raise RefusedError(1)
    return lake


def unchanged(lake: Lake, _step: Step, _known: Known) -> Lake:
    """The same rows: in fewer files after `compact`, and with all tables and columns after `migrate`."""
    if not lake.tables:
        raise RefusedError(1)
    return lake


def with_trends(lake: Lake, step: Step, known: Known) -> Lake:
    """The lake with the trend figures of the newest run of each capture set."""
    chosen_run(lake, step, known)
    return replace(lake, cells={**lake.cells, **{(TRENDS, run): OWN for run in nights(lake, known)}})


def ingested(lake: Lake, step: Step, known: Known) -> Lake:
    """The lake with a capture set written anew, which is now the one written last."""
    of = set_written(lake, step, known)
    own = {(table, of): OWN for table in known.tables(of)}
    written = (*(one for one in lake.written if one != of), of)
    return replace(lake, cells={**lake.cells, **own}, written=written, files={**lake.files, of: step.file})


def gated(lake: Lake, of: str) -> Lake:
    """The lake with the gate's rows of a capture set, which are written only if it has none yet."""
    return replace(lake, cells={(GATES, of): OWN, **lake.cells})


def with_run(lake: Lake, of: str, step: Step, known: Known) -> Lake:
    """The lake with a run of a capture set at the step's clock, and with its page. It replaces the same run."""
    content = next(name for name in SETS if known.set_id(name) == of)
    run = known.run_id(content, step.scenario)
    own = {(table, run): OWN for table in known.tables(run)}
    there = replace(lake, cells={**lake.cells, **own}, run_at={**lake.run_at, run: step.clock})
    return with_page(there, run, known)


def with_page(lake: Lake, run: str, known: Known) -> Lake:
    """The lake with the page of a run. report.html shows it if no other run is newer, or if it shows none yet."""
    is_newest = lake.run_at[run] >= lake.run_at[lake.newest(known)[0]]
    shown = run if is_newest or lake.shown is None else lake.shown
    return replace(lake, pages=lake.pages | {run}, shown=shown)


def chosen_set(lake: Lake, step: Step, known: Known) -> str:
    """The named capture set; without a name, the one written last."""
    if not lake.written:
        raise RefusedError(1)
    of = known.set_id(step.content) if step.content else lake.written[-1]
    if of not in lake.written:
        raise RefusedError(2)
    return of


def chosen_run(lake: Lake, step: Step, known: Known) -> str:
    """The named run; without a name, the newest one."""
    newest = lake.newest(known)
    if not newest:
        raise RefusedError(1)
    run = known.run_id(step.content, step.scenario) if step.content else newest[0]
    if run not in newest:
        raise RefusedError(2)
    return run


def compared(lake: Lake, step: Step, known: Known) -> Lake:
    """The lake with the check of an earlier run's predictions by the newest run. The earlier run is the newest one of
    another capture set; if there is none, of the same set.
    """
    latest = chosen_run(lake, step, known)
    before = [run for run in lake.newest(known) if run != latest]
    if not before:
        raise RefusedError(2)
    previous = next((run for run in before if known.set_of(run) != known.set_of(latest)), before[0])
    return replace(lake, cells={**lake.cells, (CHECKED, f"{previous}-{latest}"): OWN})


def nights(lake: Lake, known: Known) -> Iterator[str]:
    """The newest run of each capture set that has runs."""
    latest = lake.newest(known)[0]
    for of in lake.written:
        own = [run for run in lake.run_at if known.set_of(run) == of]
        if own:
            newest = max(own, key=lambda run: (lake.run_at[run], run))
            yield latest if of == known.set_of(latest) else newest


def pruned(lake: Lake, step: Step, known: Known) -> Lake:
    """The lake without what `prune` removes."""
    if not lake.tables:
        raise RefusedError(1)
    runs, others = what_goes(lake, step, known)
    if step.dry_run:
        return lake
    by_age, gone = step.by == AGE, {*runs, *others}
    cells = {
        (table, of): has
        for (table, of), has in lake.cells.items()
        if (by_age and table in RECORD) or gone.isdisjoint(of.split("-"))
    }
    left = replace(
        lake, cells=cells, written=tuple(of for of in lake.written if of not in gone),
        files={of: name for of, name in lake.files.items() if of not in gone},
        run_at={run: at for run, at in lake.run_at.items() if run not in gone}, pages=lake.pages - {*runs},
    )  # fmt: skip
    if lake.shown not in runs:
        return left
    by_clock = sorted(left.run_at, key=lambda run: (-left.run_at[run], run))
    return replace(left, shown=next((run for run in by_clock if run in left.pages), None))


def what_goes(lake: Lake, step: Step, known: Known) -> tuple[set[str], set[str]]:
    """(finished runs to remove, capture sets and unfinished runs to remove). All files count as written at hour 0."""
    if step.by == BY_RUN:
        run = known.run_id(step.content, step.scenario)
        if run in lake.run_at:
            return {run}, set()
        is_there = any(run == of for table, of in lake.cells if table != GATES)
        return set(), {run} if is_there else refuse_id()
    if step.by == AGE:
        return of_age(lake, step.clock, step.days * DAY, known)
    of = known.set_id(step.content)
    own = {run for run in lake.run_at if known.set_of(run) == of}
    is_there = any(of == identity for table, identity in lake.cells if table != GATES)
    return own, {of} if own or is_there else refuse_id()


def refuse_id() -> set[str]:
    """Raises RefusedError, since the lake does not have the named run or capture set."""
    raise RefusedError(2)


def of_age(lake: Lake, clock: int, age: int, known: Known) -> tuple[set[str], set[str]]:
    """(runs, the rest) that `prune` removes by age in hours: runs whose clock is older; capture sets that were written
    earlier and have no younger run; and unfinished sets and runs that are older than that age and than a day.
    """
    old = {run for run, at in lake.run_at.items() if at < clock - age}
    in_use = {known.set_of(run) for run in lake.run_at if run not in old}
    sets = {of for of in lake.written if clock - age > 0 and of not in in_use}
    finished = {*lake.written, *lake.run_at, *map(known.set_of, lake.run_at)}
    left = {of for table, of in lake.cells if table not in RECORD and of not in finished}
    return old, sets | (left if clock - max(age, DAY) > 0 else set())


def halfway(before: Lake, step: Step, known: Known) -> Lake:
    """The lake during a step: a capture set that is written again is not listed until it is complete."""
    if step.job not in (INGEST, PIPELINE) or (step.job == PIPELINE and is_kept(before, step, known)):
        return before
    of = set_written(before, step, known)
    cells = {cell: has for cell, has in before.cells.items() if cell != (CAPTURES, of)}
    return replace(before, cells=cells, written=tuple(one for one in before.written if one != of))


def possible(before: Lake, step: Step, known: Known) -> list[Lake]:
    """The lakes that a killed step may leave: as before it, after it, or during it. Each cell is as in one of them."""
    done, code = after(before, step, known)
    return [before] if code else [before, done, halfway(before, step, known)]


def possible_beside(before: Lake, step: Step, other: Step, known: Known, both_done: bool) -> list[Lake]:
    """The lakes that two steps at the same time may leave; each cell is as in one of them. both_done: neither step gave
    up, so that the result is that of both steps one after the other.
    """
    pairs = ((step, other), (other, step))
    orders = [after(after(before, one, known)[0], two, known)[0] for one, two in pairs]
    for one, two in pairs:  # one step may choose a set while the other step's set is not listed
        between = possible(before, two, known)[-1]
        if between.written != before.written:
            orders.append(after(after(between, one, known)[0], two, known)[0])
    if both_done:
        return orders
    return [*orders, *possible(before, step, known), *possible(before, other, known)]


OUTCOMES: Mapping[str, Callable[[Lake, Step, Known], Lake]] = {
    INGEST: ingested, PIPELINE: pipelined, REPLAY: replayed, GATE: checked, REPORT: reported, COMPARE: compared,
    TREND: with_trends, RUNS: listed, PRUNE: pruned, COMPACT: unchanged,
    MIGRATE: unchanged,
}  # fmt: skip
"""By job: the function that gives the lake after it. It raises RefusedError if the job refuses."""
