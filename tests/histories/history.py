"""A history: its steps are done one after the other, and after each step the lake is compared with the model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from jobs.flags import COMPACT, MIGRATE
from tests.faults.undisturbed import TornTableError
from tests.histories.check import Hashes, joined_badly, settled, told_badly
from tests.histories.commands import PART, Child, Ended, Home, arguments, done_here
from tests.histories.model import Lake, after, possible, possible_beside
from tests.histories.older import lacking, lacking_lines, make_older
from tests.histories.seen import seen
from tests.histories.steps import TERM, Step
from tests.histories.undisturbed import Undisturbed

FAILED, TERMED = 1, 143


@dataclass
class Done:
    """A step that was done: its exit codes, how long it took, whether a kill changed its exit code, and its faults."""

    number: int
    step: Step
    codes: list[int]
    seconds: float
    was_killed: bool
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ends = "/".join(map(str, self.codes))
        lines = [f"{self.number} {self.step}: exit {ends}, {self.seconds:.0f} s"]
        return "\n".join([*lines, *(f"  FAULT {fault}" for fault in self.faults)])


@dataclass
class History:
    """Steps on a lake. pipeline_s: seconds that a `pipeline` takes in a process of its own."""

    home: Home
    known: Undisturbed
    hashes: Hashes
    pipeline_s: float
    lake: Lake = field(default_factory=Lake)

    def done(self, steps: Sequence[Step], only: frozenset[int], until: float) -> Iterator[Done]:
        """Do the steps up to the first fault; begin none after `until`. only: their numbers, from 1; empty for all."""
        for number, step in enumerate(steps, 1):
            if time.monotonic() > until:
                return
            if only and number not in only:
                continue
            done = self.do(number, step)
            yield done
            if done.faults:
                return

    def do(self, number: int, step: Step) -> Done:
        """Do a step, and compare the lake with the model."""
        began, is_older = time.monotonic(), MIGRATE in (step.job, step.beside and step.beside.job)
        if is_older:
            make_older(self.home.lake)
        ends = self.beside(step, step.beside) if step.beside else [self.alone(step)]
        wanted = [after(self.lake, one, self.known)[1] for one in (step, step.beside) if one]
        codes = [end.code for end in ends]
        was_killed = step.killed is not None and codes != wanted
        done = Done(number, step, codes, time.monotonic() - began, was_killed)
        done.faults += [fault for end in ends for fault in told_badly(end.code, end.said)]
        done.faults += [f"still running: {end.left}" for end in ends if end.left]
        done.faults += self.wrong_code(step, codes, wanted, was_killed)
        done.faults += self.migrated(step, codes) if is_older else []
        done.faults += self.compared(step, codes, wanted, was_killed)
        done.faults += [end.said for end in ends if done.faults]
        return done

    def migrated(self, step: Step, codes: list[int]) -> Iterator[str]:
        """What is wrong after `migrate` with a lake that was made older. If `migrate` was a dry run, was killed or
        failed, it is run again, since no other command accepts a lake that lacks something.
        """
        steps = (step, step.beside) if step.beside else (step,)
        by = [(one, code) for one, code in zip(steps, codes, strict=True) if one.job == MIGRATE]
        if any(code == 0 and not one.dry_run for one, code in by):
            yield from lacking_lines(self.home.lake)
            return
        if not step.beside and step.dry_run and self.lake.tables and not lacking(self.home.lake):
            yield "a dry run has added what the lake lacks"
        end = done_here(arguments(Step(MIGRATE), self.home, self.known))
        if self.lake.tables:
            yield from [f"the second migrate: exit code {end.code}: {end.said}"] if end.code else []
            yield from lacking_lines(self.home.lake)

    def alone(self, step: Step) -> Ended:
        """Do one step, which may be killed."""
        told = arguments(step, self.home, self.known)
        if step.killed is None:
            return done_here(told)
        child, (victim, part) = Child(told, self.home), step.killed
        child.kill(victim, part * PART[step.job] * self.pipeline_s)
        return child.ended()

    def beside(self, step: Step, other: Step) -> list[Ended]:
        """Do two steps that begin at the same time. Their captures are written before either begins."""
        told = [arguments(one, self.home, self.known) for one in (step, other)]
        children = [Child(one, self.home) for one in told]
        return [child.ended() for child in children]

    def wrong_code(self, step: Step, codes: list[int], wanted: list[int], was_killed: bool) -> Iterator[str]:
        """What is wrong with the exit codes."""
        if step.beside:
            if not set(codes) <= {0, 1, 2}:
                yield f"exit codes {codes}"
        elif was_killed and step.killed:
            victim = step.killed[0]
            fitting = {"driver": -9, "java": FAILED, TERM: TERMED}[victim]
            if codes != [fitting] and not (victim == TERM and codes == [-15]):
                yield f"exit code {codes[0]} after {victim} was killed, expected {fitting}"
        elif codes != wanted:
            yield f"exit code {codes[0]}, expected {wanted[0]}"

    def compared(self, step: Step, codes: list[int], wanted: list[int], was_killed: bool) -> list[str]:
        """What is wrong with the lake. From here on the model is the lake that was found."""
        may_stray = self.lake.may_stray or was_killed or (step.beside is not None and any(codes))
        if step.beside:
            lakes = possible_beside(self.lake, step, step.beside, self.known, not any(codes))
        else:
            lakes = possible(self.lake, step, self.known) if was_killed else [after(self.lake, step, self.known)[0]]
        try:
            found = seen(self.home.lake, self.home.begin)
        except TornTableError as torn:
            return [f"torn: {torn}"]
        is_clean = step.at_once and codes == [0] and not step.dry_run
        self.lake, faults = settled(lakes, found, self.hashes, self.known, may_stray and not is_clean)
        if step.job == COMPACT and codes == [0]:
            faults += joined_badly(found) if not was_killed and step.beside is None else []
        if is_clean and found.unneeded:
            faults.append(f"{len(found.unneeded)} files stay that no table needs: {found.unneeded[:3]}")
        return faults


def undone(steps: Sequence[Step]) -> list[Step]:
    """The steps; if the last one is killed, it is done again, so that each history ends with a whole lake."""
    last = steps[-1:]
    return [*steps, *(replace(step, killed=None) for step in last if step.killed)]
