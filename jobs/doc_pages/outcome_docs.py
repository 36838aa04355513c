"""The page docs/outcomes.md, made from the declarations in schemas/tables/outcomes.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jobs.doc_pages.markdown import table_row
from jobs.replays.algorithms import ALGORITHMS
from jobs.scenarios.settings import settings
from schemas.tables.outcomes import Outcome, outcomes_of

PAGE = Path("docs/outcomes.md")
INTRODUCTION = """\
# Outcomes

An aim ([find.md](find.md)) names an outcome or a setting of a replay. This page has the outcomes of each replay, with
the columns that they come from. The line below them has the settings that the search varies if the aim names none, with
their bounds. This page is made from `schemas/tables/outcomes.py` and `conf/settings.yaml` by
`python -m jobs.doc_pages`.
"""
HEAD = ("| outcome | unit | better | what it is | column |", "|---|---|---|---|---|")


def outcomes_page() -> str:
    """The page as Markdown."""
    lines = [INTRODUCTION]
    for name in ALGORITHMS:
        rows = map(outcome_row, outcomes_of(name).values())
        lines += [f"## {name}", "", *HEAD, *rows, "", *settings_with_usual_bounds(name), ""]
    return "\n".join(lines).rstrip() + "\n"


def outcome_row(outcome: Outcome) -> str:
    """An outcome's row."""
    columns = " + ".join(f"`{outcome.table.name}.{column}`" for column in outcome.columns)
    columns += f" / `{outcome.per}`" if outcome.per is not None else ""
    columns += "".join(f", {column} {value}" for column, value in outcome.where)
    better = "less" if outcome.is_smaller_better else "more"
    return table_row((f"`{outcome.name}`", outcome.unit, better, outcome.doc, columns))


def settings_with_usual_bounds(algorithm: str) -> Iterator[str]:
    """The settings with usual bounds."""
    own = [of for of in settings().values() if of.searched is not None and of.algorithms[0] == algorithm]
    yield "Usual bounds: " + ", ".join(f"`{of.key}` {of.searched}" for of in own) + "."
