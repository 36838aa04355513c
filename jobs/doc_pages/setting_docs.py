"""The page docs/settings.md, made from the catalogue of settings, conf/settings.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from jobs.doc_pages.markdown import table_row
from jobs.replays.algorithms import ALGORITHMS
from jobs.scenarios.settings import Setting, settings
from udfs.replay.shared.lanes import NO_LIMIT

PAGE = Path("docs/settings.md")
INTRODUCTION = """\
# Settings

This page has the settings from which `--set` makes lanes, by replay, and those that `--captured` states. Kafka's own
spelling, without the prefix, is enough: `fetch.max.bytes` is the consumer's in `--set`, and the broker's in
`--captured`.
[scenarios.md](scenarios.md) says how lanes are made. This page is made from
[conf/settings.yaml](../conf/settings.yaml) by `python -m jobs.doc_pages`.

*Stated* marks settings whose value in force a capture may not show: `--captured` states it. Defaults are Kafka's; if
there is none, the capture shows the value, or nothing is assumed. Brokers read their settings when they start, unless
the row says that they can be changed before ([advice.md](advice.md#how-a-value-is-set)).
"""
STATED_ALONE = """\
## Stated, and the same in every lane

`--captured` takes these; `--set` does not.
"""
ENDS_OF_TYPES = (2**31 - 1, 2**63 - 1)
"""Bounds that nobody chose: they are those of Kafka's types INT and LONG."""
HEAD = ("| setting | values | default | stated | what it does |", "|---|---|---|---|---|")


def settings_page() -> str:
    """The page as Markdown."""
    lines = [INTRODUCTION]
    for name, algorithm in ALGORITHMS.items():
        lanes = [setting for setting in settings().values() if name in setting.algorithms]
        lines += [f"## {algorithm.title}", "", f"The replay `{name}`.", "", *settings_table(lanes), ""]
    stated_alone = [setting for setting in settings().values() if not setting.algorithms]
    return "\n".join([*lines, STATED_ALONE, *settings_table(stated_alone)]) + "\n"


def settings_table(listed: Iterable[Setting]) -> Iterator[str]:
    """A table with a row for each setting."""
    yield from HEAD
    for setting in listed:
        about = f"{setting.doc} ({setting.kip})" if setting.kip else setting.doc
        if setting.update_mode == "cluster-wide":
            about += " It can be changed while brokers run."
        default = "" if setting.default is None else f"`{setting.default}`"
        default += "".join(f"; `{value}` before {first}" for first, value in setting.default_before.items())
        cells = (f"`{setting.key}`", allowed_values(setting), default, "yes" if setting.captured else "", about)
        yield table_row(cells)


def allowed_values(setting: Setting) -> str:
    """The allowed values: the choices, or the unit and the bounds that somebody chose."""
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.type == "limit":
        return f"{setting.unit}, or `{NO_LIMIT}`; may change with time"
    least = "" if setting.minimum is None else f", from {setting.minimum:,}"
    most = "" if setting.maximum in (None, *ENDS_OF_TYPES) else f" to {setting.maximum:,}"
    none = f", or `{NO_LIMIT}`" if setting.is_optional else ""
    return f"{setting.unit}{least}{most}{none}"
