"""Advice on the slots of brokers' fetch-session caches (KIP-227)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pyspark.sql import Row

from jobs.find.scopes import Scope
from jobs.replays.session_cache.answers import are_slots_possible, lanes, slot_needs
from jobs.report_page.advice.in_force import confidence_in_replay, summed_confidence, value_in_force
from jobs.report_page.advice.recommendation import Effect, InForce, Recommendation
from jobs.report_page.question import Findings
from jobs.report_page.session_cache.sessions import captured_refused_share
from jobs.report_page.trust import fidelity_by_metric
from jobs.terminal.wording import percent, quantity
from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_SLOTS
from schemas.tables.values import CHANGE, DEFAULT, INFERRED, KEEP, STATED, WITHHELD
from udfs.replay.session_cache.settings import SLOTS

GRANTS = "session_grants"
"""The metric of fidelity that compares whether full fetches get a session."""


def advise_cache_slots(findings: Findings) -> Iterable[Recommendation]:
    """Advises the fewest slots with which nobody who still fetches is harmed, or to keep those in force if they are
    enough.
    """
    s, rows, needs = SESSION_SLOTS, findings.by_lane(lanes, algorithms.SESSION_CACHE), findings.of(slot_needs)
    if not rows or not needs or not rows[0][SESSION_CACHE.fetches]:
        return
    # Only the row with the captured number of shards counts, because nobody can set another number.
    need = next((row for row in needs if row[s.slots] is not None), needs[0])
    now, enough = slots_in_force(findings, need), need[s.enough_slots]
    advice = partial(
        Recommendation,
        algorithms.SESSION_CACHE,
        Scope(),
        SLOTS,
        now=now,
        sure=confidence_in_replay(findings, algorithms.SESSION_CACHE),
    )
    reason = f"From {enough:,} slots on, nobody who still fetches is refused or evicted.{uneven_shards_text(need, now)}"
    if now.value is None and not is_too_few(need):
        yield advice(WITHHELD, recommended=None, enough=str(enough), reason=possible_slots_text(need))
    elif now.value is None or need[s.slots] < enough:
        gain, cost = ended_refusals(rows[0]), cached_by_broker(rows)
        yield advice(CHANGE, recommended=str(enough), enough=str(enough), gain=gain, cost=cost, reason=reason)
    elif now.source == DEFAULT and are_refusals_unchecked(findings, rows[0]):
        text = unchecked_refusals_text(rows[0], need)
        yield advice(WITHHELD, now=InForce(None, INFERRED), recommended=None, enough=str(enough), reason=text)
    else:
        yield advice(KEEP, recommended=now.value, enough=str(enough), reason=reason)


def slots_in_force(findings: Findings, need: Row) -> InForce:
    """The number of slots in force; unknown if the capture contradicts the number that the run assumed."""
    return value_in_force(findings, SLOTS) if are_slots_possible(need) else InForce(None, INFERRED)


def are_refusals_unchecked(findings: Findings, captured: Row) -> bool:
    """Whether the capture has fetches that were refused a session, and the replay can check no grant and no refusal."""
    grants = [row for row in fidelity_by_metric(findings) if row[FIDELITY.metric] == GRANTS]
    return captured_refused_share(captured) > 0 and not summed_confidence(grants).checked


def unchecked_refusals_text(captured: Row, need: Row) -> str:
    """Says that fetches were refused a session although the slots assumed are enough."""
    share = percent(captured_refused_share(captured))
    assumed = f"{need[SESSION_SLOTS.slots]:,} slots, which nobody stated, would be enough"
    return f"{share} of fetches that want a session were refused, although {assumed}: state how many there are."


def is_too_few(need: Row) -> bool:
    """Whether a broker certainly has too few slots, even if their exact number is not known."""
    most = need[SESSION_SLOTS.slots_at_most]
    return most is not None and most < need[SESSION_SLOTS.enough_slots]


def possible_slots_text(need: Row) -> str:
    """What the capture shows about the number of slots in force."""
    s = SESSION_SLOTS
    upto = "or more" if need[s.slots_at_most] is None else f"to {need[s.slots_at_most]:,}"
    slots = f"{need[s.slots_at_least]:,} {upto}"
    return f"The capture shows {slots} slots, and not {need[s.slots]:,}: state how many there are."


def uneven_shards_text(need: Row, now: InForce) -> str:
    """Says that there are fewer slots than stated, if the number of shards does not divide the stated number; else
    empty.
    """
    s = SESSION_SLOTS
    stated = int(now.value) if now.source == STATED and now.value else need[s.slots]
    if stated == need[s.slots]:
        return ""
    evenly = f"{need[s.shards]:,} shards have the same number each, rounded down"
    return f" The {stated:,} stated are {need[s.slots]:,}: {evenly}."


def ended_refusals(captured: Row) -> Effect:
    """What the change ends: captured refusals if there are any, else replayed evictions."""
    c, share = SESSION_CACHE, captured_refused_share(captured)
    if share:
        return Effect(f"{percent(share)} of fetches that want a session refused -> none", c.refused_share, share, 0.0)
    return Effect(f"{quantity(captured[c.evicted], 'session')} evicted -> none", c.evicted, captured[c.evicted], 0.0)


def cached_by_broker(rows: list[Row]) -> Effect:
    """What a broker keeps in its cache with the recommended slots."""
    before, most = rows[0], max(rows, key=lambda row: row["live"])
    text = f"a broker keeps {quantity(most['live'], 'session')} with {quantity(most['cached'], 'partition')}"
    text += f" instead of {before['cached']:,}" if before["cached"] != most["cached"] else ""
    return Effect(text, str(SESSION_CACHE.cached_partitions), before["cached"], most["cached"])
