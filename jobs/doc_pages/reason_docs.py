"""The page docs/reasons.md, made from the declarations in schemas/tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jobs.doc_pages.markdown import table_row
from schemas.tables.fault_reasons import FAULT_REASONS
from schemas.tables.fidelity_reasons import FIDELITY_REASONS
from schemas.tables.reason import FaultReasons, FidelityReasons

PAGE = Path("docs/reasons.md")
INTRODUCTION = """\
# Reasons

With these words the tables, the screen and the report say why something could not be compared or read. For each word,
this page says what it means and what to do about it. This page is made from `schemas/tables` by
`python -m jobs.doc_pages`.

## Fidelity: the replay of the captured settings against the capture

The words of `fidelity.reasons`, which counts each. *Unknown* means that it could not be checked; it never counts as
agreement. *Different* means that it was checked, and replay and capture differ.
[tables.md](tables.md#goldfidelity) says what each metric compares.
"""
FAULTS = """\
## Faults: what could not be read

The words of silver tables. What is undamaged is still decoded: [damage.md](damage.md) shows which kind of damage
gives which word.
"""


def reasons_page() -> str:
    """The page as Markdown."""
    lines = [INTRODUCTION]
    for compared in FIDELITY_REASONS:
        lines += [*fidelity_section(compared), ""]
    lines.append(FAULTS)
    for faults in FAULT_REASONS:
        lines += [*fault_section(faults), ""]
    return "\n".join(lines).rstrip() + "\n"


def fidelity_section(group: FidelityReasons) -> Iterator[str]:
    """The reasons of some metrics."""
    names = ", ".join(f"`{metric}`" for metric in group.metrics)
    of = (
        f"The metrics {names} of" if len(group.metrics) > 1 else f"The metric {names} of" if names else "All metrics of"
    )
    yield from (f"### {group.title}", "", f"{of} `{group.algorithm}`.", "")
    yield from ("| reason | counts as | what it means | what to do |", "|---|---|---|---|")
    for word, reason in group.words.items():
        yield table_row((f"`{word}`", reason.counts, reason.means, reason.do))


def fault_section(group: FaultReasons) -> Iterator[str]:
    """The section with the words of a column."""
    yield from (f"### {group.title}: `{group.column}`", "", "| word | what it means | what to do |", "|---|---|---|")
    for word, reason in group.words.items():
        yield table_row((f"`{word}`", reason.means, reason.do))
