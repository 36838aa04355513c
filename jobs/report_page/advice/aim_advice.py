"""Advice that an aim asks for (`--find`): the setting that meets it, or why none does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Row

from jobs.find.scopes import FOR_ALL, Scope
from jobs.report_page.advice.aim_scopes import scopes_meant
from jobs.report_page.advice.aims import aim_settings, aim_text, outcome_names, outcome_text, scope_of_row
from jobs.report_page.advice.aims_alone import reason_for_own_lane, topic_row, topics_of_limit
from jobs.report_page.advice.batch_sizes import split_producers
from jobs.report_page.advice.client_rows import CLIENT
from jobs.report_page.advice.fetch_limits import SHOWN, consumer_lanes
from jobs.report_page.advice.in_force import confidence_in_replay, confidence_of_client, value_in_force
from jobs.report_page.advice.recommendation import NOTHING, Confidence, Effect, InForce, Recommendation
from jobs.report_page.question import Findings, Query
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import setting_of
from jobs.terminal.lane_rows import SCENARIO
from jobs.units import none_if_infinite
from schemas.tables import algorithms
from schemas.tables.gold_aims import AIM_SETTINGS
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.outcomes import outcomes_of
from schemas.tables.values import (
    CAPTURED,
    CHANGE,
    INFERRED,
    KEEP,
    OF_CLIENT,
    OF_CLUSTER,
    OF_LIMIT,
    OF_TOPIC,
    STATED,
    WITHHELD,
)
from udfs.replay.batch_split.settings import BATCH_SIZE

MOST_VALUES = 5
ALSO_PAID: Mapping[str, str] = {algorithms.FETCH_MAX_BYTES: "requests", algorithms.BATCH_SPLIT: "batches"}
"""The outcome of each replay that counts as a cost if it grows, even if the aim does not name it."""
OF_CLIENTS: Mapping[str, Query] = {
    algorithms.FETCH_MAX_BYTES: consumer_lanes,
    algorithms.BATCH_SPLIT: split_producers,
}
"""The query of each replay that has a row for each client and lane, with how far it agrees with the capture."""


def replace_by_aims(findings: Findings, made: Iterable[Recommendation]) -> Iterator[Recommendation]:
    """The recommendations with those of the aims. An aim's recommendation on a setting replaces the usual one for the
    same scope.

    Settings that nobody can set are left out.
    """
    t = AIM_SETTINGS
    rows = [row for row in findings.of(aim_settings) if setting_of(row[t.setting]).can_be_set]
    advised = dict[tuple[str, str, Scope], Row]()
    # Rows for one client or topic come last, so that they override rows for all.
    for row in sorted(rows, key=lambda row: scope_of_row(row) != FOR_ALL):
        advised |= {(row[t.algorithm], row[t.setting], scope): row for scope in scopes_meant(findings, row)}
    for one in made:
        if not advised.keys() & {(one.algorithm, one.setting, scope) for scope in (one.scope, FOR_ALL)}:
            yield one
    yield from (aim_recommendation(findings, row, key[-1]) for key, row in advised.items() if key[0] in findings.lanes)


def aim_recommendation(findings: Findings, row: Row, scope: Scope) -> Recommendation:
    """The recommendation of an aim on one setting. scope: whom it is for: all together, or a client or topic."""
    t = AIM_SETTINGS
    key, setting, now = row[t.setting], setting_of(row[t.setting]), value_before_aim(findings, row[t.setting], scope)
    value = None if row[t.value] is None else str(setting.parse(row[t.value]))
    changed = row[t.is_met] and value is not None and value != now.value
    verdict = CHANGE if changed else KEEP if row[t.is_met] else WITHHELD
    least = None if row[t.value_from] is None else str(setting.parse(row[t.value_from]))
    return Recommendation(
        algorithm=row[t.algorithm],
        scope=scope,
        setting=key,
        verdict=verdict,
        now=now,
        recommended=None if verdict == WITHHELD else value if changed else now.value,
        sure=aim_confidence(findings, row[t.algorithm], scope),
        reason=aim_reason(row) if scope_of_row(row) == FOR_ALL else reason_for_own_lane(findings, row),
        gain=aim_gain(row) if changed else NOTHING,
        cost=aim_cost(row) if changed else NOTHING,
        enough=least if row[t.is_met] and str(least).isdecimal() else None,
        is_proposal=setting.exists_as == "proposal",
    )


def value_before_aim(findings: Findings, key: str, scope: Scope) -> InForce:
    """The value in force. For fetch limits it is what consumers' requests have, for batch.size the producer's value."""
    rows = [row for row in findings.of(consumer_lanes) if scope.kind == OF_CLUSTER or row[CLIENT] == scope.name]
    if key in SHOWN:
        values = sorted({value for row in rows for value in row[SHOWN[key]] or ()})
        return InForce(", ".join(map(str, values[:MOST_VALUES])), CAPTURED) if values else value_in_force(findings, key)
    if key == BATCH_SIZE and (topics := topics_in_scope(findings, scope)):
        sizes = sorted({size for topic in topics for size in topic["sizes"]})
        is_inferred = any(topic["is_told"] for topic in topics)
        return InForce(", ".join(map(str, sizes[:MOST_VALUES])), INFERRED if is_inferred else STATED)
    if key != BATCH_SIZE:
        return value_in_force(findings, key)
    captured = [row for row in findings.of(split_producers) if row[SCENARIO] == CAPTURED_LANE]
    producers = [row for row in captured if scope in (FOR_ALL, Scope(OF_CLIENT, row[CLIENT]))]
    if not producers:
        return value_in_force(findings, key)
    sizes = sorted({int(row[BATCH_SPLIT.batch_size]) for row in producers})
    is_inferred = any(row[BATCH_SPLIT.is_batch_size_told] for row in producers)
    return InForce(", ".join(map(str, sizes[:MOST_VALUES])), INFERRED if is_inferred else STATED)


def topics_in_scope(findings: Findings, scope: Scope) -> list[Row]:
    """The rows on producers to a topic, or to the topics with a limit; empty for other scopes, or if not queried."""
    if scope.kind == OF_LIMIT:
        return topics_of_limit(findings, scope)
    topic = topic_row(findings, scope.name) if scope.kind == OF_TOPIC else None
    return [] if topic is None else [topic]


def captured_client_row(findings: Findings, algorithm: str, scope: Scope) -> Row | None:
    """The row of a client in the captured lane; None if it was not queried."""
    own = (row for row in findings.of(OF_CLIENTS[algorithm]) if row[SCENARIO] == CAPTURED_LANE)
    return next((row for row in own if scope.kind == OF_CLIENT and row[CLIENT] == scope.name), None)


def aim_confidence(findings: Findings, algorithm: str, scope: Scope) -> Confidence:
    """How far the replay agrees with the capture; for the scope's client alone if that is known."""
    client = captured_client_row(findings, algorithm, scope) if algorithm in OF_CLIENTS else None
    return confidence_in_replay(findings, algorithm) if client is None else confidence_of_client(client)


def aim_reason(row: Row) -> str:
    """Why an aim recommends what it does, as a sentence."""
    t = AIM_SETTINGS
    if not row[t.is_met]:
        return f"No lane of {row[t.lanes_replayed]:,} meets the aim; one would with {' or '.join(row[t.relax])}."
    if row[t.scenario] == CAPTURED_LANE:
        return f"No lane of {row[t.lanes_replayed]:,} meets the aim better than the captured settings."
    return f"It meets the aim best of {row[t.lanes_replayed]:,} lanes: {aim_text(row)}."


def aim_gain(row: Row) -> Effect:
    """How the aimed-at outcome changes, or the first constraint's outcome if the aim is the least or most of a setting;
    then how other outcomes get better.
    """
    first, *others = outcome_names(row) or [""]
    effect = _effect_on_outcomes(
        row, [name for name in (first, *others) if name and (name == first or is_outcome_better(row, name))]
    )
    if effect == NOTHING or effect.before != effect.after:
        return effect
    best = aim_text(row).partition(" where ")[0]  # such as `least buffer.memory`: the setting itself gets better
    return replace(effect, text=f"{best} of those that meet the aim; {effect.text}")


def aim_cost(row: Row) -> Effect:
    """How the outcomes of constraints change that do not get better, and that of ALSO_PAID if it grows. An outcome that
    is 0 before and after costs nothing.
    """
    t = AIM_SETTINGS
    paid = [name for name in outcome_names(row)[1:] if row[t.captured][name] or row[t.outcomes][name]]
    names = [name for name in paid if not is_outcome_better(row, name)]
    beside = ALSO_PAID.get(row[t.algorithm])
    if beside and beside not in outcome_names(row) and row[t.outcomes].get(beside, 0) > row[t.captured].get(beside, 0):
        names.append(beside)
    return _effect_on_outcomes(row, names)


def is_outcome_better(row: Row, name: str) -> bool:
    """Whether an outcome is better with the setting that was found than as captured."""
    t = AIM_SETTINGS
    less = row[t.captured][name] - row[t.outcomes][name]
    return less > 0 if outcomes_of(row[t.algorithm])[name].is_smaller_better else less < 0


def _effect_on_outcomes(row: Row, names: Sequence[str]) -> Effect:
    t = AIM_SETTINGS
    if not names:
        return NOTHING
    before, after = row[t.captured], row[t.outcomes]
    of = row[t.algorithm]
    texts = {name: [outcome_text(of, name, figures) for figures in (before, after)] for name in names}
    changes = [
        f"{name} {was}, unchanged" if was == now else f"{name} {was} -> {now}" for name, (was, now) in texts.items()
    ]
    return Effect("; ".join(changes), names[0], none_if_infinite(before[names[0]]), none_if_infinite(after[names[0]]))
