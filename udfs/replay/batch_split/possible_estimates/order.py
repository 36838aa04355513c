"""When batches were closed and split, as far as the records of later batches show the order.

Records have times in ms, and requests in us. Between them, an order that gives the captured batches decides.
"""

from __future__ import annotations

import numpy as np

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.records import int_fields
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER, US_PER_MS
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.possible_estimates.events import first_parts
from udfs.replay.batch_split.possible_estimates.state import EstimateGroup
from udfs.replay.batch_split.timing import Times

BEFORE = int_fields("place", "rank", "earliest")
"""When a close or split happened. place: the index, in the order of appends, of the record before which it happened.
rank: its rank among those with the same place. earliest: us, the earliest time. All are NEVER if nothing shows them."""
CLOSE, SPLIT = range(2)
APART = 1 << 40
"""The distance between the ranks of different groups."""


def no_order(sendings: int) -> Records:
    """The order of the closes and splits of all sendings before anything shows it: BEFORE[2, sendings]."""
    return np.full((2, sendings), NEVER, BEFORE)


def write_order(order: Records, group: EstimateGroup, number: int, placed: Records) -> None:
    """Write the order of a group's closes and splits into that of all sendings.

    placed: PLACED[closes, then splits], as `judge_group_in_order` returns it. number: of the group.
    """
    closes = len(group.closed)
    for kind, sendings, events, earliest in (
        (CLOSE, group.closed, placed[:closes], group.closes["earliest"]),
        (SPLIT, group.refused, placed[closes:], group.splits["earliest"]),
    ):
        is_known = events["batch"] != NONE
        rows, known = sendings[is_known], events[is_known]
        order["place"][kind, rows] = group.batches["place"][known["batch"]]
        order["rank"][kind, rows] = known["rank"] + number * APART
        order["earliest"][kind, rows] = earliest[is_known]


def times_in(order: Records, sent: Sent) -> Times:
    """Times that put everything into the order, each the latest that it can be.

    The time of a record is within its ms. The latest time of a close is its request. The latest time of a split is the
    request with the first part, or the response if no part is captured. A record has waited to be appended if an event
    before it cannot have happened in its ms. order: BEFORE[2, sendings], from `write_order`.
    """
    in_turn, sendings = sent.capture.append_order, len(sent.sendings)
    n, begun = len(in_turn), sent.capture.records["time"][sent.capture.append_order] // US_PER_MS * US_PER_MS
    until_split, has_part = splits_until(sent)
    latest = np.concatenate([sent.sendings["request_time"], until_split])
    rank = order["rank"].reshape(-1)
    is_known = (rank != NEVER) & np.concatenate([np.full(sendings, True), has_part])
    # Of two whose order is known, the first is no later than the second, and neither is later than its time allows.
    place = np.minimum(np.searchsorted(begun, latest, side="right"), order["place"].reshape(-1))
    ranked = np.flatnonzero(is_known)[np.argsort(rank[is_known], kind="stable")]
    apart = rank[ranked] // APART * (n + 1)  # one running minimum for all groups
    place[ranked] = np.minimum.accumulate((place[ranked] + apart)[::-1])[::-1] - apart
    until = np.concatenate([begun + US_PER_MS - 1, latest])
    places, ranks = np.concatenate([np.arange(n), place]), np.concatenate([np.full(n, NEVER), rank])
    is_record = np.arange(n + 2 * sendings) < n
    sequence = np.lexsort((until, ranks, is_record, places))
    time, turn = np.zeros(len(until), np.int64), np.arange(len(until))
    earliest = np.zeros(len(until), np.int64)
    earliest[n:][is_known] = order["earliest"].reshape(-1)[is_known]
    earliest[sequence] = np.maximum.accumulate(earliest[sequence] - turn) + turn
    until[:n] = np.maximum(until[:n], earliest[:n])
    time[sequence] = np.minimum.accumulate((until[sequence] - turn)[::-1])[::-1] + turn
    append = np.zeros(n, np.int64)
    append[in_turn] = time[:n]
    return Times(append, time[n : n + sendings], time[n + sendings :])


def splits_until(sent: Sent) -> tuple[Ints, Bools]:
    """(when each refused batch was split at the latest, at its response where no part was captured, NEVER for others:
    int64[sendings], us; whether a part was captured).
    """
    is_refused, part = sent.sendings["error"] == MESSAGE_TOO_LARGE, first_parts(sent)
    latest = np.where(part == NEVER, sent.sendings["response_time"], part)
    return np.where(is_refused, latest, NEVER), is_refused & (part != NEVER)
