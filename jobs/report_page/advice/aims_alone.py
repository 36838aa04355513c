"""What an aim finds for one client or topic alone, compared with what it finds for all together."""

from __future__ import annotations

from math import inf, isinf

from pyspark.sql import Row

from jobs.find.scopes import FOR_ALL, Scope
from jobs.report_page.advice.aims import (
    aim_settings,
    aim_text,
    limit_text,
    outcome_names,
    outcome_text,
    scope_of_row,
    settings_phrase,
)
from jobs.report_page.advice.batch_sizes import split_topics
from jobs.report_page.question import Findings
from jobs.scenarios.settings import setting_of
from jobs.terminal.screen import printable_text, with_rest_count
from jobs.terminal.wording import client_name, exact_size
from schemas.tables.gold_aims import AIM_SETTINGS
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.outcomes import outcomes_of
from schemas.tables.values import OF_CLIENT, OF_CLUSTER, OF_LIMIT

MOST_TOPICS = 3
"""At most this many topics of a limit are named."""


def own_lane_rows(findings: Findings, algorithm: str) -> list[Row]:
    """A row for each client or topic that has its own lane in a replay's aim; the one that gains most comes first."""
    t, first = AIM_SETTINGS, dict[object, Row]()
    for row in findings.of(aim_settings):
        if row[t.algorithm] == algorithm and row[t.scope_kind] != OF_CLUSTER:
            first.setdefault(scope_of_row(row), row)
    return sorted(first.values(), key=lambda row: -gain_from_own_lane(findings, row))


def own_lane_text(findings: Findings, row: Row) -> str:
    """The lane of one client or topic, and its outcome in that lane."""
    t, scope = AIM_SETTINGS, scope_of_row(row)
    beside, lane = beside_lane_for_all(findings, row), settings_phrase(row[t.scenario])
    return f"{scope_text(findings, scope)} alone: {beside if beside.startswith(lane) else f'{lane}: {beside}'}"


def scope_text(findings: Findings, scope: Scope) -> str:
    """Text for a scope: a client's name, a topic with its limit, or a limit with its topics."""
    if scope.kind == OF_CLIENT:
        return client_name(scope.name)
    if scope.kind == OF_LIMIT:
        topics = [printable_text(row[BATCH_SPLIT.topic]) for row in topics_of_limit(findings, scope)]
        named = f" ({', '.join(with_rest_count(topics[:MOST_TOPICS], len(topics)))})" if topics else ""
        return f"{limit_text(scope)}{named}"
    of_topic = topic_row(findings, scope.name)
    limit = f" ({exact_size(of_topic[BATCH_SPLIT.max_message_bytes])} at most)" if of_topic else ""
    return f"topic {scope.name}{limit}"


def gain_from_own_lane(findings: Findings, row: Row) -> float:
    """The share by which a client or topic gains from a lane of its own, in the outcome that the aim minimises or
    maximises. If the aim is about a setting, it is the share by which the setting's value differs. It is inf if the
    outcome for all is an infinite time, or if the lane for all leaves the setting as captured.
    """
    t, target = AIM_SETTINGS, target_of_aim(row)
    if target in outcomes_of(row[t.algorithm]):
        alone, for_everyone = row[t.outcomes][target], row[t.for_all][target]
    else:
        alone, for_everyone = (
            value_in_best_lane(findings, row[t.algorithm], target, scope) for scope in (scope_of_row(row), FOR_ALL)
        )
    return inf if isinf(for_everyone) or not for_everyone else abs(for_everyone - alone) / abs(for_everyone)


def value_in_best_lane(findings: Findings, algorithm: str, key: str, scope: Scope) -> float:
    """A setting's value in the best lane of a scope; inf if that lane leaves it as captured."""
    t = AIM_SETTINGS
    of_setting = (row for row in findings.of(aim_settings) if (row[t.algorithm], row[t.setting]) == (algorithm, key))
    text = next((row[t.value] for row in of_setting if scope_of_row(row) == scope), None)
    return inf if text is None else float(setting_of(key).parse(text))


def row_for_all(findings: Findings, row: Row) -> Row:
    """The row for all together of the same aim."""
    t = AIM_SETTINGS
    same = (other for other in findings.of(aim_settings) if other[t.algorithm] == row[t.algorithm])
    return next(other for other in same if other[t.scope_kind] == OF_CLUSTER)


def reason_for_own_lane(findings: Findings, row: Row) -> str:
    """Why a client or topic has a setting of its own, as a sentence."""
    if not row_for_all(findings, row)[AIM_SETTINGS.is_met]:
        return f"It meets the aim alone, and no setting meets it for all: {beside_lane_for_all(findings, row)}."
    return f"Alone it is better than with what is best for all: {beside_lane_for_all(findings, row)}."


def beside_lane_for_all(findings: Findings, row: Row) -> str:
    """The outcome of a client or topic in its own lane, and in the lane for all. If the aim is about a setting, the two
    lanes themselves.
    """
    t, every, target = AIM_SETTINGS, row_for_all(findings, row), target_of_aim(row)
    if not every[t.is_met]:
        return "; ".join(
            f"{name} {outcome_text(row[t.algorithm], name, row[t.outcomes])}" for name in outcome_names(row)
        )
    if target not in outcomes_of(row[t.algorithm]):
        return f"{settings_phrase(row[t.scenario])} instead of {settings_phrase(every[t.scenario])}"
    alone, other = (outcome_text(row[t.algorithm], target, row[column]) for column in (t.outcomes, t.for_all))
    return f"{target} {alone} instead of {other}"


def target_of_aim(row: Row) -> str:
    """The outcome, or the key of the setting, that the aim minimises or maximises."""
    return aim_text(row).split()[1]


def topics_of_limit(findings: Findings, scope: Scope) -> list[Row]:
    """The queried rows of topics that have a limit. scope: of kind OF_LIMIT."""
    return [row for row in findings.of(split_topics) if str(row[BATCH_SPLIT.max_message_bytes]) == scope.name]


def topic_row(findings: Findings, name: str) -> Row | None:
    """The row of a topic: its producers' batch sizes, and its limit. None if it was not queried."""
    return next((row for row in findings.of(split_topics) if row[BATCH_SPLIT.topic] == name), None)
