"""The first part of the page: the recommendations as cards, and the clients that have most to gain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from jobs.report_page.advice.alike import (
    change_text,
    changes_together,
    confidence_text,
    enough_value_text,
    how_to_set_block,
    kept_together,
    owners_text,
    setting_names_text,
    value_now_text,
    withheld_together,
)
from jobs.report_page.advice.recommendation import Recommendation, exact_value_text
from jobs.report_page.batch_split.splits import SAFE
from jobs.report_page.consumer_memory.growth import memory_by_traffic, memory_sureness
from jobs.report_page.consumer_memory.memory_pool import BOUNDED
from jobs.report_page.consumer_memory.needed_memory import NEEDED
from jobs.report_page.fetch_max_bytes.catch_up import CATCH_UP
from jobs.report_page.fetch_max_bytes.fairness import STARVING
from jobs.report_page.fetch_max_bytes.fetchers import fetchers_by_lane, fetchers_sureness
from jobs.report_page.fetch_max_bytes.fetches import FOLLOWERS
from jobs.report_page.fetch_max_bytes.growth import growth_by_lane, growth_sureness
from jobs.report_page.fetch_max_bytes.producer_quota import producers_by_lane, producers_sureness
from jobs.report_page.fetch_max_bytes.quota import quota_sureness, throttling_by_lane
from jobs.report_page.fetch_max_bytes.rack_reads import rack_lines, rack_reads
from jobs.report_page.fetch_max_bytes.throttles import captured_throttles
from jobs.report_page.partition_limits import REFUSED_TEAMS
from jobs.report_page.question import Findings
from jobs.report_page.session_cache.growth import slots_by_traffic, slots_sureness
from jobs.report_page.session_cache.sessions import ENOUGH
from jobs.terminal.screen import Grid
from jobs.terminal.wording import client_name
from schemas.tables import algorithms
from schemas.tables.values import CHANGE, OF_CLIENT

QUESTION = {
    algorithms.FETCH_MAX_BYTES: STARVING.number,
    algorithms.CONSUMER_MEMORY: BOUNDED.number,
    algorithms.SESSION_CACHE: ENOUGH.number,
    algorithms.BATCH_SPLIT: SAFE.number,
    algorithms.PARTITION_LIMITS: REFUSED_TEAMS.number,
}
"""The question that a replay's advice answers, by replay."""
RANKED = ("client", "setting", "now", "better", "gain", "cost", "equal to the capture")


@dataclass(frozen=True)
class Card:
    """A recommendation on the page: what it is about, lines on what to do, and terms (why, cost, sure) with texts."""

    verdict: str
    title: str
    lines: list[str]
    terms: list[tuple[str, str]]
    question: int
    is_proposal: bool = False


def advice_cards(made: Sequence[Recommendation]) -> Iterator[Card]:
    """Cards on what to change, what is withheld and what to keep, each group in the order of the recommendations."""
    for block in changes_together(made):
        first = block[0][0]
        cost = [("Cost", first.cost.text)] if first.cost.text else []
        how = [("Set", text)] if (text := how_to_set_block(block)) else []
        terms = [("Why", f"{first.gain.text}. {first.reason}"), *cost, ("Sure", confidence_text(first)), *how]
        lines = [f"{alike[0].name}: {change_text(alike[0])}" for alike in block]
        yield Card("change", owners_text(block[0]), lines, terms, QUESTION[first.algorithm], first.is_proposal)
    for alike in withheld_together(made):
        terms = [("Why", alike[0].reason)]
        yield Card("withheld", setting_names_text(alike), [owners_text(alike)], terms, QUESTION[alike[0].algorithm])
    for alike in kept_together(made):
        first = alike[0]
        line = f"{value_now_text(first)}{enough_value_text(alike)}"
        reasons = [("Why", first.reason)] if len(alike) == 1 else []
        title = f"{first.name}, {owners_text(alike)}"
        yield Card("keep", title, [line], reasons, QUESTION[first.algorithm], first.is_proposal)


def growth_cards(findings: Findings) -> Iterator[Card]:
    """How consumers fare with more traffic, how much memory they need, and how many slots, if that was replayed."""
    yield from lane_cards("growth", [*growth_by_lane(findings)], partial(growth_sureness, findings))
    for card in lane_cards("growth", memory_by_traffic(findings), partial(memory_sureness, findings)):
        yield replace(card, question=NEEDED.number)
    for card in lane_cards("growth", slots_by_traffic(findings), partial(slots_sureness, findings)):
        yield replace(card, title="brokers", question=ENOUGH.number)


def quota_cards(findings: Findings) -> Iterator[Card]:
    """Whom quotas throttled in the capture, and how clients fare with other quotas, if that was replayed."""
    for when, text in captured_throttles(findings):
        yield Card("quota", "clients", [f"{when}: {text}"], [], CATCH_UP.number)
    yield from lane_cards("quota", [*throttling_by_lane(findings)], partial(quota_sureness, findings))
    for card in lane_cards("quota", [*producers_by_lane(findings)], partial(producers_sureness, findings)):
        yield replace(card, title="producers")


def fetchers_cards(findings: Findings) -> Iterator[Card]:
    """How followers fare with another number of fetchers, if that was replayed."""
    for card in lane_cards("fetchers", [*fetchers_by_lane(findings)], partial(fetchers_sureness, findings)):
        yield replace(card, title="followers", question=FOLLOWERS.number)


def reads_cards(findings: Findings) -> Iterator[Card]:
    """What consumers read across racks, and what each broker serves, with and without fetch-from-follower."""
    if lines := [*rack_reads(findings)]:
        yield Card("reads", "racks", [*lines, *rack_lines(findings)], [], CATCH_UP.number)


def lane_cards(kind: str, lanes: Sequence[tuple[str, str]], sure_of: Callable[[], str]) -> Iterator[Card]:
    """A card of lanes that advise nothing, each with its outcome; no card if there are no lanes."""
    if lanes:
        lines = [f"{lane}: {outcome}" for lane, outcome in lanes]
        yield Card(kind, "consumers", lines, [("Sure", sure_of())], CATCH_UP.number)


def clients_ranked(made: Sequence[Recommendation]) -> Grid:
    """The clients with something to change; the one that gains most comes first."""
    cells = [
        [
            client_name(one.scope.name), one.name, value_now_text(one), exact_value_text(one.setting, one.recommended),
            one.gain.text,
            one.cost.text, confidence_text(one),
        ]
        for one in made
        if one.verdict == CHANGE and one.scope.kind == OF_CLIENT
    ]  # fmt: skip
    return Grid(RANKED, cells, RANKED)
