"""Figures of several runs side by side: captured, predicted, and seen."""

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
    """The figures of each run under A, the figures predicted from these for B, and the figures seen under B."""

    captured: Sequence[Mapping[str, Any]]
    predicted: Sequence[Mapping[str, Any]]
    seen: Sequence[Mapping[str, Any]]


def lines(title: str, of: Figures) -> list[str]:
    """The figures as lines of a screen."""
    rows = [row(name, *([run[name] for run in runs] for runs in (of.captured, of.predicted, of.seen)))
            for name in of.seen[0]]  # fmt: skip
    return ["", title, *aligned_lines(HEAD, rows, ("what", "captured", "predicted", "seen"))]


def row(name: str, captured: Sequence[Any], predicted: Sequence[Any], seen: Sequence[Any]) -> Sequence[str]:
    """A figure as cells: for numbers their ranges, for figures with parts the share that is equal.

    If some run lacks a number, such as the size of a response if none has records, the cell says so.
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
    """The values of all runs, as one value if they are equal; `none` for runs without a value."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return f"{span(known)} or none" if known else "none"
    low, high = min(known), max(known)
    return f"{low:,.0f}" if round(low) == round(high) else f"{low:,.0f} to {high:,.0f}"


def relative(value: float, other: float, of: float | None = None) -> str:
    """How far a value is from another one, in percent of that one."""
    whole = other if of is None else of
    if value == other:
        return "0"
    return f"{100 * (value - other) / whole:+.2f} %" if whole else f"{value - other:+,.0f}"


def text(values: Sequence[Any]) -> str:
    """Values that are no numbers, each once."""
    return " / ".join(dict.fromkeys(map(str, values)))


def share(values: Sequence[float]) -> str:
    """The median of shares."""
    return f"{100 * median(values):.1f} %" if values else "-"


def alike_of(some: Sequence[Mapping[Any, Any]], others: Sequence[Mapping[Any, Any]]) -> list[float]:
    """How much of each pair of runs is equal; a run is not compared with itself."""
    return [alike(a, b) for a in some for b in others if a is not b]


def alike(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> float:
    """The share of equal parts; for sequences, of elements in the same order."""
    matches = list(matching(a, b))
    whole = sum(parts for _, parts in matches)
    return sum(equal for equal, _ in matches) / whole if whole else 1.0


def matching(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> Iterator[tuple[int, int]]:
    """(how much is equal, of how much) for each part."""
    for key in a.keys() | b.keys():
        x, y = (parts if isinstance(parts, Sequence) else [parts] for parts in (a.get(key, ()), b.get(key, ())))
        blocks = SequenceMatcher(None, x, y, autojunk=False).get_matching_blocks()
        yield sum(block.size for block in blocks), max(len(x), len(y))
