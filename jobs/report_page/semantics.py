"""Whose semantics each replay follows: those of a release of Kafka, a kind of client, or a variant of a proposal."""

from __future__ import annotations

from jobs.report_page.question import Findings
from jobs.scenarios.settings import Setting, settings
from jobs.terminal.wording import changed_settings
from udfs.replay.shared.lanes import KAFKA_RELEASE

OF_SEMANTICS = ("profile", "variant", "rule")
"""The units of settings that say whose semantics are replayed."""
AS_SEEN = {"profile": "of the captured client software"}
"""What a replay follows if no value of a setting is stated and it has no default, by setting."""


def semantics_text(findings: Findings, algorithm: str) -> str:
    """What a replay follows: `kafka=4.3; split.profile=today`."""
    parts = [
        followed_value_text(findings, algorithm, of) for of in settings().values() if decides_semantics(of, algorithm)
    ]
    return "; ".join(parts)


def decides_semantics(setting: Setting, algorithm: str) -> bool:
    """Whether the setting says whose semantics this replay follows."""
    return setting.unit in OF_SEMANTICS and algorithm in setting.algorithms


def followed_value_text(findings: Findings, algorithm: str, setting: Setting) -> str:
    """The value of a semantics setting in the captured lane, and the values that other lanes try."""
    if setting.key == KAFKA_RELEASE:
        release = f"{KAFKA_RELEASE}={findings.kafka.partition(', ')[0]}"
    else:
        value = findings.captured.get(setting.key, setting.default_value)
        release = f"{setting.name} {AS_SEEN[setting.name]}" if value is None else f"{setting.name}={value}"
    tried = dict.fromkeys(changed_settings(lane).get(setting.name) for lane in findings.lanes.get(algorithm, ()))
    others = [value for value in tried if value is not None]
    return f"{release}, beside {', '.join(others)}" if others else release
