"""docs/settings.md has what the catalogue of settings declares."""

from __future__ import annotations

from pathlib import Path

from jobs.doc_pages.setting_docs import PAGE, allowed_values, settings_page, settings_table
from jobs.scenarios.settings import settings


def test_the_page_is_current(repository: Path) -> None:
    found = (repository / PAGE).read_text(encoding="utf-8")
    assert found == settings_page(), "make it anew: python -m jobs.doc_pages"


def test_every_setting_is_on_the_page_under_each_of_its_replays() -> None:
    sections = {part.partition("`")[2].partition("`")[0]: part for part in settings_page().split("The replay ")[1:]}
    for key, setting in settings().items():
        (row,) = list(settings_table([setting]))[2:]
        assert row.startswith(f"| `{key}` |")
        assert row in settings_page()
        assert [name for name in setting.algorithms if row not in sections[name]] == []


def test_values_are_choices_or_have_a_unit_and_the_declared_bounds() -> None:
    told = {key: allowed_values(setting) for key, setting in settings().items()}
    assert told["memory.pool"] == "`non_strict`, `strict`"
    assert told["consumer.fetch.max.bytes"] == "bytes, from 0"
    assert told["broker.NumFetchSessionCacheShards"] == "shards, from 1 to 64"
    assert told["max.partitions"] == "replicas, or `none`; may change with time"
