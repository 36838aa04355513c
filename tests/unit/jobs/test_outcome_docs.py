"""docs/outcomes.md has what is declared, and every outcome is computed from a column that its table has."""

from __future__ import annotations

from pathlib import Path

from jobs.doc_pages.outcome_docs import PAGE, outcomes_page
from jobs.scenarios.settings import algorithms
from schemas.tables.gold import GOLD
from schemas.tables.outcomes import OUTCOMES, outcomes_of


def test_the_page_is_current(repository: Path) -> None:
    assert (repository / PAGE).read_text(encoding="utf-8") == outcomes_page(), "make it anew: python -m jobs.doc_pages"


def test_every_outcome_is_computed_from_a_column_that_its_table_has() -> None:
    for outcome in OUTCOMES:
        columns = (*outcome.columns, *(column for column, _ in outcome.where), *filter(None, [outcome.per]))
        assert outcome.table in GOLD
        assert set(columns) <= set(outcome.table.columns), outcome.name


def test_every_replay_has_outcomes_and_no_two_have_the_same_name() -> None:
    assert all(outcomes_of(name) for name in algorithms())
    assert sum(len(outcomes_of(name)) for name in algorithms()) == len(OUTCOMES)
