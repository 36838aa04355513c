"""Recommendations that say the same for several clients, topics or settings, put together, and their texts."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.report_page.advice.aims import limit_text
from jobs.report_page.advice.how_to_set import how_to_set
from jobs.report_page.advice.recommendation import Recommendation, exact_value_text, value_text
from jobs.scenarios.settings import setting_of
from jobs.terminal.wording import client_name, quantity
from schemas.tables.values import CHANGE, KEEP, OF_CLIENT, OF_CLUSTER, OF_LIMIT, WITHHELD

Alike = list[Recommendation]
"""Recommendations that say the same for several clients; the first one gains most."""


def changes_together(made: Sequence[Recommendation]) -> list[list[Alike]]:
    """The changes in blocks. A block has the changes that one lane makes together. Clients share a block if all these
    changes are the same for them, and so do topics.
    """
    of_scope: dict[object, list[Recommendation]] = {}
    for recommendation in made:
        if recommendation.verdict == CHANGE:
            of_scope.setdefault((recommendation.algorithm, recommendation.scope), []).append(recommendation)
    blocks: dict[object, list[Alike]] = {}
    for together in of_scope.values():
        key = tuple((one.scope.kind, one.setting, one.now, one.recommended) for one in together)
        for alike, recommendation in zip(blocks.setdefault(key, [[] for _ in together]), together, strict=True):
            alike.append(recommendation)
    return list(blocks.values())


def withheld_together(made: Sequence[Recommendation]) -> list[Alike]:
    """What is withheld. Recommendations with the same reason are in one list."""
    by_reason: dict[tuple[str, str], Alike] = {}
    for recommendation in made:
        if recommendation.verdict == WITHHELD:
            by_reason.setdefault((recommendation.algorithm, recommendation.reason), []).append(recommendation)
    return list(by_reason.values())


def kept_together(made: Sequence[Recommendation]) -> list[Alike]:
    """What to keep. Recommendations with the same setting and value are in one list."""
    by_value: dict[tuple[str, str, str | None], Alike] = {}
    for recommendation in made:
        if recommendation.verdict == KEEP:
            key = recommendation.scope.kind, recommendation.setting, recommendation.now.value
            by_value.setdefault(key, []).append(recommendation)
    return list(by_value.values())


def owners_text(alike: Alike) -> str:
    """Who has the setting: `app`, `app and 3 more clients`, `brokers`."""
    first, others = alike[0], len(alike) - 1
    if first.scope.kind == OF_CLUSTER:
        return "the cluster" if (set_on := setting_of(first.setting).set_on) is None else f"{set_on}s"
    if first.scope.kind == OF_LIMIT:
        name = limit_text(first.scope)
    else:
        name = client_name(first.scope.name) if first.scope.kind == OF_CLIENT else first.scope.name
    return f"{name} and {quantity(others, f'more {first.scope.kind}')}" if others else name


def setting_names_text(alike: Alike) -> str:
    """The settings that these recommendations are about."""
    return ", ".join(dict.fromkeys(recommendation.name for recommendation in alike))


def change_text(recommendation: Recommendation) -> str:
    """A change of one value: `195 KiB (captured) -> 1 MiB`."""
    return f"{value_now_text(recommendation)} -> {exact_value_text(recommendation.setting, recommendation.recommended)}"


def value_now_text(recommendation: Recommendation) -> str:
    """The value in force, and in brackets how it is known: `195 KiB (captured)`."""
    value = value_text(recommendation.setting, recommendation.now.value)
    return value if recommendation.now.value is None else f"{value} ({recommendation.now.source})"


def enough_value_text(alike: Alike) -> str:
    """The end of a line on what to keep: the smallest value that would have been enough for all of them in this
    capture, if it is known of each; and that the setting is a proposal, if it is.
    """
    values = [int(recommendation.enough) for recommendation in alike if recommendation.enough is not None]
    is_known = len(values) == len(alike)
    enough = f"; {value_text(alike[0].setting, str(max(values)))} would be enough" if is_known else ""
    return f"{enough}{'; a proposal, in no release' if alike[0].is_proposal else ''}"


def how_to_set_block(block: list[Alike]) -> str:
    """How to make the changes of a block."""
    return how_to_set([alike[0] for alike in block], len(block[0]))


def confidence_text(recommendation: Recommendation) -> str:
    """How far the replay agrees with the capture."""
    confidence = recommendation.sure
    if not confidence.checked:
        return "not checked"
    of_all = (
        f"all {confidence.checked:,}"
        if confidence.agreed == confidence.checked
        else f"{confidence.agreed:,} of {confidence.checked:,}"
    )
    return f"{of_all} results equal the capture{f', {confidence.unknown:,} unknown' if confidence.unknown else ''}"
