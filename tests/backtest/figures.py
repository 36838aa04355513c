"""Figures of several runs side by side: as captured, as predicted from that, and as seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from statistics import median
from types import NoneType
from typing import Any

from jobs.terminal.screen import aligned_lines

HEAD = ("what", "captured", "predicted", "seen", "error", "runs differ by")


@dataclass(frozen=True)
class Figures:
    """By run, each figure's value under A, as it is predicted from that for B, and as seen under B."""

    captured: Sequence[Mapping[str, Any]]
    predicted: Sequence[Mapping[str, Any]]
    seen: Sequence[Mapping[str, Any]]


def lines(title: str, of: Figures) -> list[str]:
    """The figures as lines of a screen."""
    rows = [row(name, *([run[name] for run in runs] for runs in (of.captured, of.predicted, of.seen)))
            for name in of.seen[0]]  # fmt: skip
    return ["", title, *aligned_lines(HEAD, rows, ("what", "captured", "predicted", "seen"))]


def row(name: str, captured: Sequence[Any], predicted: Sequence[Any], seen: Sequence[Any]) -> Sequence[str]:
    """A figure as cells: numbers by their ranges, what has parts by how much of it is alike.

    A number that some run does not have, such as the size of a response where none has records, is told as that.
    """
    if isinstance(seen[0], Mapping):
        return name, "", "", "", f"{share(alike_of(predicted, seen))} alike", f"{share(alike_of(seen, seen))} alike"
    values = {type(value) for value in (*captured, *predicted, *seen)}
    if not values <= {int, float, NoneType}:
        return name, text(captured), text(predicted), text(seen), "", ""
    if NoneType in values:
        return name, span(captured), span(predicted), span(seen), "-", "-"
    error = relative(median(predicted), median(seen))
    spread = relative(max(seen), min(seen), of=median(seen))
    return name, span(captured), span(predicted), span(seen), error, spread


def span(values: Sequence[float | None]) -> str:
    """The values of all runs, as one where they are equal, and `none` for those without one."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return f"{span(known)} or none" if known else "none"
    low, high = min(known), max(known)
    return f"{low:,.0f}" if round(low) == round(high) else f"{low:,.0f} to {high:,.0f}"


def relative(value: float, other: float, of: float | None = None) -> str:
    """How far a value is from another, in percent of that."""
    whole = other if of is None else of
    if value == other:
        return "0"
    return f"{100 * (value - other) / whole:+.2f} %" if whole else f"{value - other:+,.0f}"


def text(values: Sequence[Any]) -> str:
    """What is no number, each once."""
    return " / ".join(dict.fromkeys(map(str, values)))


def share(values: Sequence[float]) -> str:
    """The median of shares."""
    return f"{100 * median(values):.1f} %" if values else "-"


def alike_of(some: Sequence[Mapping[Any, Any]], others: Sequence[Mapping[Any, Any]]) -> list[float]:
    """How much of each pair of runs is alike; a run is not held against itself."""
    return [alike(a, b) for a in some for b in others if a is not b]


def alike(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> float:
    """The share of the parts that are equal; of sequences what stands in the same order in both."""
    matches = list(matching(a, b))
    whole = sum(parts for _, parts in matches)
    return sum(equal for equal, _ in matches) / whole if whole else 1.0


def matching(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> Iterator[tuple[int, int]]:
    """Of each part, how much is equal and of how much."""
    for key in a.keys() | b.keys():
        x, y = (parts if isinstance(parts, Sequence) else [parts] for parts in (a.get(key, ()), b.get(key, ())))
        blocks = SequenceMatcher(None, x, y, autojunk=False).get_matching_blocks()
        yield sum(block.size for block in blocks), max(len(x), len(y))
