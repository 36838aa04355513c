"""Whom the row of an aim advises: all together, one alone, or each client or topic that the aim is for."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Row

from jobs.find.scopes import FOR_ALL, Scope
from jobs.report_page.advice.aims import scope_of_row
from jobs.report_page.advice.batch_sizes import split_producers, split_topics
from jobs.report_page.advice.client_rows import CLIENT
from jobs.report_page.advice.fetch_limits import consumer_lanes
from jobs.report_page.advice.memory_pools import producer_lanes
from jobs.report_page.question import Findings, Query
from jobs.scenarios.aims import is_meant, whom_in
from jobs.scenarios.settings import setting_of
from schemas.tables import algorithms
from schemas.tables.gold_aims import AIM_SETTINGS
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.values import CONSUMER, OF_CLIENT, OF_TOPIC, PRODUCER

NAMES: Mapping[tuple[str, str, str | None], tuple[Query, str]] = {
    (algorithms.FETCH_MAX_BYTES, OF_CLIENT, CONSUMER): (consumer_lanes, CLIENT),
    (algorithms.CONSUMER_MEMORY, OF_CLIENT, CONSUMER): (consumer_lanes, CLIENT),
    (algorithms.CONSUMER_MEMORY, OF_CLIENT, PRODUCER): (producer_lanes, CLIENT),
    (algorithms.BATCH_SPLIT, OF_CLIENT, PRODUCER): (split_producers, CLIENT),
    (algorithms.BATCH_SPLIT, OF_TOPIC, PRODUCER): (split_topics, str(BATCH_SPLIT.topic)),
    (algorithms.BATCH_SPLIT, OF_TOPIC, "topic"): (split_topics, str(BATCH_SPLIT.topic)),
}
"""Where the names of clients or topics are: the query and its column, by replay, kind of scope, and what a setting is
set on."""


def scopes_meant(findings: Findings, row: Row) -> list[Scope]:
    """The scopes that a row of AIM_SETTINGS advises. If the aim is for some clients or topics, its row for all advises
    each of them; if the aim names both clients and topics, each of the clients.
    """
    t, scope = AIM_SETTINGS, scope_of_row(row)
    whom = whom_in(row[t.aim])
    if scope != FOR_ALL or not whom:
        return [scope]
    kind = OF_CLIENT if OF_CLIENT in whom else OF_TOPIC
    source = NAMES.get((row[t.algorithm], kind, setting_of(row[t.setting]).set_on))
    if source is None:
        return [scope]
    query, column = source
    names = sorted({of[column] for of in findings.of(query) if is_meant(of[column], whom[kind])})
    return [Scope(kind, name) for name in names] or [scope]
