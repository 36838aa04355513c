"""The value of a setting that was in force, and how it is known."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Row

from jobs.report_page.advice.recommendation import Confidence, InForce
from jobs.report_page.question import Findings
from jobs.report_page.trust import fidelity_by_metric
from jobs.scenarios.settings import setting_of
from schemas.tables.gold import FIDELITY
from schemas.tables.values import DEFAULT, STATED

CLIENT_COUNTS = ("checked", "agreed", "unknown")
"""Columns of a client's rows that say how far the replay agrees with the capture."""


def value_in_force(findings: Findings, key: str) -> InForce:
    """The value of a setting that captures do not show: the stated one, else Kafka's default. If brokers differ, it is
    the smallest value, because the advice is for all brokers.
    """
    setting = setting_of(key)
    value = findings.captured.get(key, setting.default_value)
    source = STATED if key in findings.captured and key not in findings.assumed else DEFAULT
    own = [findings.captured[of] for of in findings.captured if setting_of(of).is_of_one_broker and of_all(of) == key]
    least = min(own, key=setting.order, default=None)
    if least is not None and (value is None or setting.order(least) < setting.order(value)):
        value, source = least, STATED
    return InForce(None if value is None else str(value), source)


def of_all(key: str) -> str:
    """The key of the same setting for all brokers."""
    return setting_of(key).of_all.key


def confidence_in_replay(findings: Findings, algorithm: str, readers: Iterable[str] = ()) -> Confidence:
    """How far a replay agrees with the capture; only for these readers if any are named."""
    t, of = FIDELITY, tuple(readers)
    rows = [
        row for row in fidelity_by_metric(findings) if row[t.algorithm] == algorithm and (not of or row[t.reader] in of)
    ]
    return summed_confidence(rows)


def summed_confidence(rows: Iterable[Row]) -> Confidence:
    """How far replays agree with the capture, summed over several rows of `fidelity`."""
    t, of = FIDELITY, list(rows)
    return Confidence(*(sum(row[count] for row in of) for count in (t.checked, t.agreed, t.unknown)))


def confidence_of_client(row: Row) -> Confidence:
    """How far a replay agrees with the capture for a client. row: one with CLIENT_COUNTS."""
    return Confidence(*(row[count] or 0 for count in CLIENT_COUNTS))
