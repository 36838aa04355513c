"""What is not advised because the replay behind it cannot be trusted enough, and the flags that may help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pyspark.sql import Row

from jobs.replays.session_cache.answers import are_slots_possible, slot_needs
from jobs.report_page.advice.floors import low_fidelity, low_fidelity_text
from jobs.report_page.advice.recommendation import Recommendation
from jobs.report_page.capture_contents import quality_row
from jobs.report_page.fetch_max_bytes.throttles import held_back_by_unstated_quota, throttled_clients
from jobs.report_page.other_brokers import other_rule_text
from jobs.report_page.question import Findings
from jobs.report_page.refusals import gate_refusals
from jobs.report_page.traffic import FETCH
from jobs.scenarios.settings import settings
from jobs.terminal.wording import capitalized
from schemas.tables.algorithms import FETCH_MAX_BYTES
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.gold_sessions import SESSION_SLOTS
from schemas.tables.silver import EXCHANGES
from schemas.tables.values import CHANGE, OF_CLIENT, WITHHELD
from udfs.replay.fetch_max_bytes.quotas import CONSUMER_QUOTA
from udfs.replay.session_cache.settings import SLOTS

HELD_BACK = (
    f"A quota held this client's fetches back in the capture. State it with --captured={CONSUMER_QUOTA}=... to compare "
    "limits under it."
)
UNCHECKED = "Nothing of the replay behind it could be checked against the capture."


def withhold_untrusted(findings: Findings, recommendations: Iterable[Recommendation]) -> Iterator[Recommendation]:
    """The recommendations. One is marked as withheld if its replay was refused or not checked, agrees too seldom with
    the capture, or follows other rules than the brokers do.
    """
    for recommendation in recommendations:
        why = reason_to_withhold(findings, recommendation)
        yield replace(recommendation, verdict=WITHHELD, reason=why) if why else recommendation


def reason_to_withhold(findings: Findings, recommendation: Recommendation) -> str:
    """Why a recommendation is withheld, as a sentence; empty if it is not."""
    for row in findings.of(quality_row):
        if rule := other_rule_text(row, recommendation.algorithm):
            return rule
    low = low_fidelity(findings, recommendation.algorithm, recommendation.setting)
    if low:
        return f"{capitalized(low_fidelity_text(low[0]))}."
    for row in findings.of(gate_refusals):
        if row[GATE_RESULTS.table_name] != FIDELITY.name:
            return f"The {row[GATE_RESULTS.gate]} gate refused it: {row[GATE_RESULTS.rule]}."
    if recommendation.verdict != CHANGE:
        return ""
    if is_for_client_under_quota(findings, recommendation):
        return HELD_BACK
    return "" if recommendation.sure.checked else UNCHECKED


def is_for_client_under_quota(findings: Findings, recommendation: Recommendation) -> bool:
    """Whether the advice is on fetch limits of a consumer that a quota held back in the capture, and nobody stated the
    quota. What it waits for may be the quota, whatever its limits.
    """
    scope = recommendation.scope
    is_on_limits = recommendation.algorithm == FETCH_MAX_BYTES and scope.kind == OF_CLIENT
    return is_on_limits and held_back_by_unstated_quota(findings, scope.name)


def unstated_settings(findings: Findings, algorithm: str) -> list[str]:
    """The settings of a replay that captures do not show and nobody stated: they may be the cause of a low fidelity.
    They come in the order of conf/settings.yaml. A quota of consumers is none of them if no fetch was throttled.
    """
    is_throttled = any(row[EXCHANGES.api_name] == FETCH for row in findings.of(throttled_clients))
    shown = {"kafka"} if is_throttled else {"kafka", CONSUMER_QUOTA}
    return [
        key
        for key, setting in settings().items()
        if key in findings.assumed and algorithm in setting.algorithms and setting.name not in shown
    ]


def flags_to_state(findings: Findings, algorithm: str) -> list[str]:
    """The flags that state what was in force: with values if the capture shows them, else with names to fill in."""
    keys = unstated_settings(findings, algorithm)
    need = next((row for row in findings.of(slot_needs) if row[SESSION_SLOTS.slots] is not None), None)
    if SLOTS in keys and need is not None and not are_slots_possible(need):
        return [f"--captured={settings()[SLOTS].name}={possible_slots(need)}"]
    return [f"--captured={key}=..." for key in keys]


def possible_slots(need: Row) -> int:
    """A number of slots that the capture allows."""
    s = SESSION_SLOTS
    return int(need[s.slots_at_most] if need[s.slots_at_most] is not None else need[s.slots_at_least])
