"""The steps of a history: random commands on one lake. The same seed and commit give the same steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jobs.flags import COMPACT, COMPARE, GATE, INGEST, LATEST, MIGRATE, PIPELINE, PRUNE, REPLAY, REPORT, RUNS

TREND = "trend"
"""The job `runs` with its flag --trend."""
CONTENTS = ("a", "b", "c")
"""The contents of captures, by letter; a content may come under either name of FILES. `c` follows `b` on the same
connections."""
ENDED_BEFORE: Mapping[str, tuple[str, ...]] = {"c": ("b", "a")}
"""By content: the contents that end before it begins, so that it can continue their sets; the one that ends last is
first."""
SETS = (*CONTENTS, *(f"{later}>{earlier}" for later, before in ENDED_BEFORE.items() for earlier in before))
"""Capture sets: each content alone, and each that continues another one, which has rows and an id of its own."""
FILES = ("monday", "tuesday")
SCENARIOS = ("sessions", "limits")
AGE, BY_RUN, BY_SET = "age", "run", "capture"
"""How `prune` chooses what it removes."""
SILVER, GOLD = "silver", "gold"
"""The gates."""
DRIVER, JAVA, TERM = "driver", "java", "term"
"""What is killed: the driver or its Java process by SIGKILL, or the driver by SIGTERM."""
HALF_DAY = 12
WEIGHTS: Mapping[str, float] = {
    INGEST: 6, PIPELINE: 7, REPLAY: 5, PRUNE: 6, COMPACT: 3, MIGRATE: 2, RUNS: 2, REPORT: 2, COMPARE: 2, TREND: 1,
    GATE: 1,
}  # fmt: skip
DISTURBED = (INGEST, PIPELINE, REPLAY, PRUNE, COMPACT, MIGRATE)
"""Jobs that may be killed, or run at the same time as another one."""
KILLED, BESIDE, AGAIN = 0.2, 0.12, 0.7
"""Probabilities: that one of these jobs is killed, that it runs beside another one, and that it is done again after it
was killed."""


@dataclass(frozen=True)
class Step:
    """A command.

    content: the content of the capture that it reads, or the capture set (of SETS) that it names; empty if it names
    none. goes_on: the set that the capture continues, or `latest`; empty if it continues none. file: the name of the
    capture. scenario: of the run that it makes or names. by: how `prune` chooses, or the gate. days: the age for
    `prune`. clock: the run's clock in hours since the history began; it can go back from step to step. at_once: files
    that no table needs are removed at once. dry_run: nothing changes. killed: what is killed, and after which part of
    the usual time. beside: a step that begins at the same time.
    """

    job: str
    content: str = ""
    file: str = ""
    scenario: str = ""
    goes_on: str = ""
    by: str = ""
    days: int = 0
    clock: int = HALF_DAY
    at_once: bool = False
    dry_run: bool = False
    killed: tuple[str, float] | None = None
    beside: Step | None = None

    def __str__(self) -> str:
        told = [self.job, self.by, self.content, self.file, self.scenario]
        told += [f"continues {self.goes_on}"] if self.goes_on else []
        told += [f"{self.days}d"] if self.by == AGE else []
        told += [f"at {self.clock:+d}h", "at once" if self.at_once else "", "dry run" if self.dry_run else ""]
        told += [f"killed {self.killed[0]} at {self.killed[1]:.2f}"] if self.killed else []
        told += [f"beside ({self.beside})"] if self.beside else []
        return " ".join(filter(None, told))

    @property
    def kind(self) -> str:
        """The kind under which the step is counted."""
        return f"{self.job} killed" if self.killed else f"{self.job} beside another" if self.beside else self.job


def plan(seed: int, steps: int) -> list[Step]:
    """This many steps of a history. A longer history of the same seed begins with the same steps."""
    rng = np.random.default_rng(seed)
    done, clock = list[Step](), HALF_DAY
    while len(done) < steps:
        clock = moved(rng, clock)
        if done and done[-1].killed and rng.random() < AGAIN:
            done.append(replace(done[-1], killed=None, clock=clock))
            continue
        step = drawn(rng, clock, list(WEIGHTS)) if done else drawn(rng, clock, [INGEST, PIPELINE])
        done.append(disturbed(rng, step, clock) if step.job in DISTURBED else step)
    return done


def moved(rng: np.random.Generator, clock: int) -> int:
    """The clock of the next step: mostly the same or later, sometimes earlier. It is an odd number of half days, so
    that no age in whole days ends exactly when the history begins, which is when files are written.
    """
    days = int(rng.choice([0, 0, 1, 3, 20, -1, -15]))
    return int(np.clip(clock + 24 * days, -20 * 24 + HALF_DAY, 60 * 24 + HALF_DAY))


def drawn(rng: np.random.Generator, clock: int, jobs: list[str]) -> Step:
    """A step of one of these jobs."""
    weights = np.array([WEIGHTS[job] for job in jobs])
    job = str(rng.choice(jobs, p=weights / weights.sum()))
    names = CONTENTS if job in (INGEST, PIPELINE) else SETS
    content, file, scenario = (str(rng.choice(those)) for those in (names, FILES, SCENARIOS))
    before = ENDED_BEFORE.get(content, ())
    goes_on = str(rng.choice(["", LATEST, LATEST, *before])) if before else ""
    named, is_rare = rng.random() < 0.5, rng.random() < 0.3
    step = Step(job, clock=clock)
    match job:
        case "ingest":
            return replace(step, content=content, file=file, goes_on=goes_on)
        case "pipeline":
            return replace(step, content=content, file=file, scenario=scenario, goes_on=goes_on)
        case "replay":
            return replace(step, content=content if named else "", scenario=scenario)
        case "report":
            return replace(step, content=content if named else "", scenario=scenario if named else "")
        case "gate":
            return replace(step, by=SILVER if named else GOLD)
        case "migrate":
            return replace(step, dry_run=is_rare)
        case "compact":
            return replace(step, at_once=is_rare)
        case "prune":
            by = str(rng.choice([AGE, AGE, BY_RUN, BY_SET]))
            return replace(
                step, by=by, days=int(rng.choice([1, 5, 30])) if by == AGE else 0, at_once=is_rare,
                content="" if by == AGE else content, scenario=scenario if by == BY_RUN else "",
                dry_run=bool(rng.random() < 0.1),
            )  # fmt: skip
    return step


def disturbed(rng: np.random.Generator, step: Step, clock: int) -> Step:
    """The step, sometimes killed or beside another one. Neither of two such steps removes files at once, which is only
    for a lake that nobody else uses.
    """
    chance, part, victim = rng.random(), float(rng.uniform(0.2, 1.0)), str(rng.choice([DRIVER, DRIVER, JAVA, TERM]))
    if chance < KILLED:
        return replace(step, killed=(victim, round(part, 2)), at_once=False, dry_run=False)
    if chance < KILLED + BESIDE:
        other = replace(drawn(rng, clock, list(DISTURBED)), at_once=False, dry_run=False)
        if other.file == step.file and other.content != step.content:  # one file has one content at a time
            other = replace(other, file=next((name for name in FILES if name != step.file), "") if step.file else "")
        return replace(step, beside=other, at_once=False, dry_run=False)
    return step
