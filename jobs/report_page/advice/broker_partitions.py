"""Advice on partition limits (KIP-578). KIP-578 is a proposal: no release has such a limit."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.find.scopes import Scope
from jobs.replays.partition_limits.answers import exceedable, lanes, smallest_safe_limits
from jobs.report_page.advice.in_force import confidence_in_replay
from jobs.report_page.advice.recommendation import InForce, Recommendation
from jobs.report_page.question import Findings
from schemas.tables import algorithms
from schemas.tables.gold_limits import PARTITION_LIMIT_CURVE
from schemas.tables.values import DEFAULT, KEEP
from udfs.replay.shared.lanes import NO_LIMIT


def advise_partition_limits(findings: Findings) -> Iterable[Recommendation]:
    """The smallest limits that refuse no captured change."""
    c = PARTITION_LIMIT_CURVE
    if not findings.of(lanes):
        return
    for row in exceedable(findings.of(smallest_safe_limits)):
        yield Recommendation(
            algorithm=algorithms.PARTITION_LIMITS,
            scope=Scope(),
            setting=row[c.refused_by],
            verdict=KEEP,
            now=InForce(NO_LIMIT, DEFAULT),
            recommended=NO_LIMIT,
            sure=confidence_in_replay(findings, algorithms.PARTITION_LIMITS),
            enough=str(row[c.limit_from]),
            is_proposal=True,
            reason=f"From {row[c.limit_from]:,} on, nothing captured is refused; add the growth that you plan for.",
        )
