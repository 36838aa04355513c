"""Whether a lake holds what the model says; and if the model allows several lakes, which of them it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.histories.model import ADVICE, CAPTURES, CHECKED, GATES, OWN, RUN_ROWS, TRENDS, Cell, Known, Lake
from tests.histories.seen import Seen

AFTER_THE_MARK = (GATES, ADVICE)
"""Tables that get the rows of a capture set or run after it is listed as complete."""


@dataclass
class Hashes:
    """The hash of each cell's rows, by variant (a value of `Lake.cells`). The first hash found of rows that only later
    commands write is kept: all later ones have to be the same.
    """

    by_variant: dict[tuple[Cell, str], str | None] = field(default_factory=dict)

    def agrees(self, cell: Cell, variant: str | None, found: str | None) -> bool:
        """Whether a cell's rows are those of the variant. found: their hash. None stands for no rows in both."""
        if variant is None:
            return found is None
        is_learnt = cell[0] in (TRENDS, CHECKED) or variant != OWN
        if is_learnt:
            self.by_variant.setdefault((cell, variant), found)
        return self.by_variant.get((cell, variant)) == found


def settled(
    lakes: Sequence[Lake], found: Seen, hashes: Hashes, known: Known, may_stray: bool
) -> tuple[Lake, list[str]]:
    """(the lake that was found, everything in it that the model does not allow). lakes: those that the model allows."""
    cells, faults = dict[Cell, str](), list[str]()
    for cell in sorted({cell for lake in lakes for cell in lake.cells} | {*found.cells}):
        variants = dict.fromkeys(lake.cells.get(cell) for lake in lakes)
        match = [variant for variant in variants if hashes.agrees(cell, variant, found.cells.get(cell))]
        if not match:
            faults.append(f"{cell[0]} has other rows of {cell[1]} than {' or '.join(map(str, variants))}")
        if match and match[0] is not None:
            cells[cell] = match[0]
    lake = Lake(
        cells, found.written, found.files, found.run_at, found.pages, found.shown, found.tables, may_stray
    )  # fmt: skip
    gone = sorted({table for lake in lakes for table in lake.tables} - found.tables)
    faults += [f"{', '.join(gone)}: no such table any more"] if gone else []
    return lake, [*faults, *of_lists(lakes, found), *incomplete(lake, known), *of_files(found, may_stray)]


def of_lists(lakes: Sequence[Lake], found: Seen) -> Iterator[str]:
    """What is wrong with the lists of capture sets and runs, and with the pages."""
    if len(lakes) == 1 and found.written != lakes[0].written:
        yield f"capture sets were written in the order {found.written}, expected {lakes[0].written}"
    if found.shown not in {lake.shown for lake in lakes}:
        yield f"report.html shows {found.shown}, expected one of {[lake.shown for lake in lakes]}"
    for run in {*found.run_at, *(run for lake in lakes for run in lake.run_at)}:
        at = {lake.run_at.get(run) for lake in lakes}
        if found.run_at.get(run) not in at:
            yield f"run {run} has the clock {found.run_at.get(run)} h, expected one of {sorted(map(str, at))}"
    for of in {*found.files, *(of for lake in lakes for of in lake.files)}:
        names = {lake.files.get(of) if of in lake.written else None for lake in lakes}
        if found.files.get(of) not in names:
            yield f"capture set {of} has the file {found.files.get(of)}, expected one of {sorted(map(str, names))}"
    pages = [lake.pages for lake in lakes]
    if not frozenset.intersection(*pages) <= found.pages <= frozenset.union(*pages):
        yield f"there are pages of {sorted(found.pages)}, expected {sorted(frozenset.union(*pages))}"


def incomplete(lake: Lake, known: Known) -> Iterator[str]:
    """Capture sets and runs that are listed as complete, but are not."""
    for mark, identities in ((CAPTURES, lake.written), (RUN_ROWS, lake.run_at)):
        for of in identities:
            lacking = [t for t in known.tables(of) if t not in AFTER_THE_MARK and (t, of) not in lake.cells]
            if lacking:
                yield f"{mark} lists {of}, but these tables have no rows of it: {', '.join(sorted(lacking))}"


def of_files(found: Seen, may_stray: bool) -> Iterator[str]:
    """Files that no version of a table has had, unless a killed command may have left them."""
    if found.strays and not may_stray:
        yield f"{len(found.strays)} files that no table has had: {', '.join(found.strays[:3])}"


def joined_badly(found: Seen) -> list[str]:
    """Capture sets and runs with more than one file in a table after `compact`, which does not change `captures`."""
    return [
        f"{table} has {files} files of {of} after compact"
        for (table, of), files in found.files_of.items()
        if files > 1 and table != CAPTURES
    ]


def told_badly(code: int, said: str) -> list[str]:
    """What is wrong with a command's stderr. If the command failed, its stderr has to end with one message. Further
    lines of that are indented, or name a table or file as the first one does.
    """
    faults = [f"stderr has {sign}" for sign in ("Traceback", "Exception ignored") if sign in said]
    if code <= 0:
        return faults
    last = said[said.rfind("\nrefetch: ") + 1 :].strip().splitlines()
    is_one = bool(last) and last[0].startswith("refetch: ") and all(line.startswith(("  ", "/")) for line in last[1:])
    return faults + ([] if is_one else [f"stderr does not end with a message: {last[-3:]}"])
