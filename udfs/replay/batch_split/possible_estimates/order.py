"""When batches were closed and split, as far as what later batches hold tells the order of that: a time for each.

Records have their times in ms, requests in us; between them, an order that gives the captured batches decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Bools, Ints
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.possible_estimates.estimates import MS
from udfs.replay.batch_split.possible_estimates.events import Captured, first_part
from udfs.replay.shared.resent_batches import NONE

APART = 1 << 40
"""Ranks of different topics and codecs are so far apart."""


class Order(NamedTuple):
    """What came before which record: int64[2 * sendings] a column, of the close of each sending, then of its split."""

    place: Ints  # of the record, among all in the order in which they were appended; NEVER where none is told
    rank: Ints  # which of two with the same place came first; NEVER where none is told

    def with_topic(self, group: int, told: Captured, found: Ints) -> Order:
        """... and what `in_one_order` found of a topic and codec, the group of that number."""
        sending = np.concatenate([told.closed, told.refused + len(self.place) // 2])
        place, rank = self.place.copy(), self.rank.copy()
        batch, of_batch = found
        place[sending] = np.where(batch == NONE, NEVER, told.made.place[batch])
        rank[sending] = np.where(batch == NONE, NEVER, of_batch + group * APART)
        return Order(place, rank)


class Times(NamedTuple):
    """int64 us: of records, and of sendings when they were closed and, where they were refused, split."""

    append: Ints
    close: Ints
    split: Ints


def no_order(sendings: int) -> Order:
    """Of so many sendings, before anything is told."""
    return Order(np.full(2 * sendings, NEVER), np.full(2 * sendings, NEVER))


def times_in(order: Order, sent: Sent) -> Times:
    """Times that put everything into the order, each the latest that it can be: of records within their ms, of closes
    up to the request, of splits up to the request with the first part, or to the answer where no part is captured."""
    records, n, sendings = sent.log.order, len(sent.log.order), len(sent.topic)
    begun = sent.log.time[records] // MS * MS
    until_split, is_known = split_until(sent)
    latest = np.concatenate([sent.rows.request_time, until_split])
    told = (order.rank != NEVER) & np.concatenate([np.full(sendings, True), is_known])
    # Of two whose order is told, the first is no later than the second, and neither is later than its time allows.
    place = np.minimum(np.searchsorted(begun, latest, side="right"), order.place)
    ranked = np.flatnonzero(told)[np.argsort(order.rank[told], kind="stable")]
    apart = order.rank[ranked] // APART * (n + 1)  # one running minimum for all topics
    place[ranked] = np.minimum.accumulate((place[ranked] + apart)[::-1])[::-1] - apart
    until = np.concatenate([begun + MS - 1, latest])
    places, ranks = np.concatenate([np.arange(n), place]), np.concatenate([np.full(n, NEVER), order.rank])
    is_record = np.arange(n + 2 * sendings) < n
    sequence = np.lexsort((until, ranks, is_record, places))
    found, at = np.zeros(len(until), np.int64), np.arange(len(until))
    found[sequence] = np.minimum.accumulate((until[sequence] - at)[::-1])[::-1] + at
    append = np.zeros(n, np.int64)
    append[records] = found[:n]
    return Times(append, found[n : n + sendings], found[n + sendings :])


def split_until(sent: Sent) -> tuple[Ints, Bools]:
    """(int64[rows], us: when each refused batch was split at the latest, its answer where no part was captured, NEVER
    for others; bool[rows], whether a part was captured)."""
    refused = np.flatnonzero(sent.rows.error == MESSAGE_TOO_LARGE)
    found, part = np.full(len(sent.topic), NEVER), first_part(sent, refused)
    found[refused] = np.where(part == NEVER, sent.rows.response_time[refused], part)
    is_known = np.full(len(found), False)
    is_known[refused] = part != NEVER
    return found, is_known
