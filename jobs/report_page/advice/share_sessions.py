"""Advice on how many share sessions a broker keeps (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pyspark.sql import Row

from jobs.find.scopes import Scope
from jobs.replays.session_cache.share_answers import are_sessions_possible, share_lanes, share_needs
from jobs.report_page.advice.in_force import summed_confidence, value_in_force
from jobs.report_page.advice.recommendation import Confidence, Effect, InForce, Recommendation
from jobs.report_page.question import Findings
from jobs.report_page.trust import fidelity_by_metric
from jobs.terminal.wording import percent, quantity
from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_shares import SHARE_LIMITS, SHARE_SESSIONS
from schemas.tables.session_reasons import SHARES
from schemas.tables.values import CAPTURED, CHANGE, INFERRED, KEEP, WITHHELD
from udfs.replay.session_cache.settings import SHARE_LIMIT


def advise_share_sessions(findings: Findings) -> Iterable[Recommendation]:
    """Advises the fewest share sessions with which no member is refused one, or to keep the limit in force if it is
    enough. There is no advice if no share group fetches.
    """
    rows, needs = findings.by_lane(share_lanes, algorithms.SESSION_CACHE), findings.of(share_needs)
    if not rows or not needs:
        return
    captured, need, s = rows[0], needs[0], SHARE_LIMITS
    now, enough = share_limit_in_force(findings, need), need[s.needed_sessions]
    advice = partial(
        Recommendation,
        algorithms.SESSION_CACHE,
        Scope(),
        SHARE_LIMIT,
        now=now,
        sure=confidence_in_shares(findings),
        enough=str(enough),
    )
    reason = f"From {enough:,} share sessions on, no member of a share group is refused one."
    if now.value is None and not is_too_low(need):
        yield advice(WITHHELD, recommended=None, reason=possible_limits_text(need))
    elif now.value is None or int(now.value) < enough:
        yield advice(
            CHANGE,
            recommended=str(enough),
            gain=ended_share_refusals(captured),
            cost=kept_sessions(captured, need),
            reason=reason,
        )
    else:
        kept = f"{reason} A broker does not start with fewer than group.share.max.size."
        yield advice(KEEP, recommended=now.value, reason=kept)


def share_limit_in_force(findings: Findings, need: Row) -> InForce:
    """The limit in force. If the capture contradicts the limit that the run took, it is the one that it allows instead;
    unknown if there are several.
    """
    if are_sessions_possible(need):
        return value_in_force(findings, SHARE_LIMIT)
    least, most = need[SHARE_LIMITS.sessions_at_least], need[SHARE_LIMITS.sessions_at_most]
    return InForce(str(most), CAPTURED) if least == most else InForce(None, INFERRED)


def is_too_low(need: Row) -> bool:
    """Whether a broker's limit is certainly too low, even if it is not known."""
    most = need[SHARE_LIMITS.sessions_at_most]
    return most is not None and most < need[SHARE_LIMITS.needed_sessions]


def possible_limits_text(need: Row) -> str:
    """What the capture shows about the limit in force."""
    s = SHARE_LIMITS
    upto = "or more" if need[s.sessions_at_most] is None else f"to {need[s.sessions_at_most]:,}"
    possible = f"{need[s.sessions_at_least]:,} {upto}"
    return f"The capture shows {possible} share sessions, and not {need[s.max_share_sessions]:,}: state the limit."


def ended_share_refusals(captured: Row) -> Effect:
    """The refusals in the capture, which the change ends. captured: the row of the captured lane."""
    c = SHARE_SESSIONS
    refused, wanted = captured[c.captured_refused], captured[c.captured_refused] + captured[c.captured_created]
    text = f"{percent(refused / wanted if wanted else 0.0)} of ShareFetches that want a session refused -> none"
    return Effect(text, str(c.captured_refused), refused, 0.0)


def kept_sessions(captured: Row, need: Row) -> Effect:
    """How many share sessions a broker keeps after the change, and kept before."""
    s, most = SHARE_LIMITS, need[SHARE_LIMITS.sessions_at_most]
    before = captured["live"] if most is None else min(captured["live"], most)
    text = f"a broker keeps {quantity(need[s.needed_sessions], 'share session')} instead of {before:,}"
    return Effect(text, str(s.most_sessions), before, need[s.needed_sessions])


def confidence_in_shares(findings: Findings) -> Confidence:
    """How far the replay of share sessions agrees with the capture."""
    return summed_confidence(row for row in fidelity_by_metric(findings) if row[FIDELITY.metric] in SHARES.metrics)
