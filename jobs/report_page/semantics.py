"""Whose semantics each replay follows: a release of Kafka, a kind of client, a form of a proposal."""

from __future__ import annotations

from jobs.report_page.question import Findings
from jobs.scenarios.settings import Setting, settings
from jobs.terminal.wording import changed
from udfs.replay.shared.lanes import KAFKA_RELEASE

OF_SEMANTICS = ("profile", "variant", "rule")
"""Units of the settings that say whose semantics are replayed."""
AS_SEEN = {"profile": "of the captured client software"}
"""By setting, what a replay follows where neither a value is stated nor a default is there."""


def semantics(found: Findings, algorithm: str) -> str:
    """What a replay follows: `kafka=4.3; split.profile=today`."""
    told = [followed(found, algorithm, of) for of in settings().values() if decides(of, algorithm)]
    return "; ".join(told)


def decides(setting: Setting, algorithm: str) -> bool:
    """Whether the setting says whose semantics this replay follows."""
    return setting.unit in OF_SEMANTICS and algorithm in setting.algorithms


def followed(found: Findings, algorithm: str, setting: Setting) -> str:
    """The value of such a setting in the captured lane, and those that other lanes try."""
    if setting.key == KAFKA_RELEASE:
        told = f"{KAFKA_RELEASE}={found.kafka.partition(', ')[0]}"
    else:
        value = found.captured.get(setting.key, setting.default_value)
        told = f"{setting.name} {AS_SEEN[setting.name]}" if value is None else f"{setting.name}={value}"
    tried = dict.fromkeys(changed(lane).get(setting.name) for lane in found.lanes.get(algorithm, ()))
    others = [value for value in tried if value is not None]
    return f"{told}, beside {', '.join(others)}" if others else told
