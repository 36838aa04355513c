"""How far a client's sendings agree with KIP-126 at the captured settings, counted by metric.

batches: batches sent first end where the replay ends them, given the batches before. splits: sendings are refused as
too large where they are larger than max.message.bytes. splits_replayed: as many as the captured lane has, which goes
on from its own batches: once a close is a little earlier or later, batches end elsewhere, those behind them have other
records, and of batches that are near the limit others are refused. Sizes are compared in `size_errors`.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Ints
from udfs.replay.batch_split.estimate import Producers
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.possible_estimates.events import Group, groups_of
from udfs.replay.batch_split.possible_estimates.fidelity import AGREED, CODES, Reason, in_one_order, judge
from udfs.replay.batch_split.possible_estimates.order import Order, no_order
from udfs.replay.shared.resent_batches import NONE, Rows

BATCHES, IN_ONE_ORDER, SPLITS, SPLITS_REPLAYED = "batches", "batches_in_one_order", "splits", "splits_replayed"


def judge_sent(
    sent: Sent, rows: pa.RecordBatch, lanes: Producers, is_java: bool, judged: dict[tuple[int, int], float],
    verdicts: Counter[tuple[str, int]],
) -> Order:  # fmt: skip
    """Count the verdicts on a stretch of sendings; returns the order of closes that they tell. judged: estimates before
    it by topic and codec, brought forward.
    """
    unread = sent.rows.records == 0
    verdicts[BATCHES, CODES[Reason.RECORDS_UNKNOWN]] += int(unread.sum())
    if not is_java:
        verdicts[BATCHES, CODES[Reason.NOT_JAVA]] += len(sent.first)
        return no_order(len(sent.topic))
    note_splits(sent, lanes, verdicts)
    order = no_order(len(sent.topic))
    for number, group in enumerate(groups_of(sent, rows, int(lanes.linger_us[0]), judged)):
        told = group.told
        given = (
            told.made, told.closes, told.splits, sent.log.content, sent.log.timestamp, group.codec, lanes,
            group.initial,
        )  # fmt: skip
        ordered, found_order = in_one_order(*given)
        found, judged[group.topic, group.codec] = judge(*given)
        order = order.with_topic(number, told, found_order)
        for metric, judgement in ((BATCHES, found), (IN_ONE_ORDER, ordered)):
            count_verdicts(metric, known_until(sent, group, judgement), verdicts)
    return order


def known_until(sent: Sent, group: Group, found: Ints) -> Ints:
    """The verdicts on batches of a topic and codec; from the first sending on that cannot be read, none is told."""
    unread = sent.rows.request_time[(sent.rows.records == 0) & group.mine]
    if len(unread) == 0:
        return found
    return np.where(group.told.made.created >= unread.min(), CODES[Reason.RECORDS_UNKNOWN], found)


def count_verdicts(metric: str, found: Ints, verdicts: Counter[tuple[str, int]]) -> None:
    """Count the verdicts on batches."""
    for code, count in zip(*np.unique(found, return_counts=True), strict=True):
        verdicts[metric, int(code)] += int(count)


def note_splits(sent: Sent, lanes: Producers, verdicts: Counter[tuple[str, int]]) -> None:
    """Compare the batches refused as too large with those that are larger than max.message.bytes."""
    rows = sent.rows
    answered = (rows.error != NONE) & (rows.records > 1)
    refused = answered & (rows.error == MESSAGE_TOO_LARGE)
    larger = answered & (rows.size > lanes.max_message_bytes[0, sent.topic])
    verdicts[SPLITS, AGREED] += int((refused & larger).sum())
    verdicts[SPLITS, CODES[Reason.SPLIT_NOT_CAPTURED]] += int((larger & ~refused).sum())
    verdicts[SPLITS, CODES[Reason.SPLIT_NOT_REPLAYED]] += int((refused & ~larger).sum())


class NearLimit(NamedTuple):
    """Captured batches, sent first, that a record more or less would have brought across max.message.bytes."""

    taken: int = 0
    refused: int = 0


def near_limit(sent: Sent, lanes: Producers) -> NearLimit:
    """How many batches of a stretch are within their mean record of the limit, by what the broker said."""
    rows = Rows(*(column[sent.first] for column in sent.rows))
    is_near = np.abs(rows.size - lanes.max_message_bytes[0, sent.topic[sent.first]]) * rows.records <= rows.size
    is_refused = rows.error == MESSAGE_TOO_LARGE
    is_taken = (rows.error != NONE) & ~is_refused
    return NearLimit(int((is_near & is_taken).sum()), int((is_near & is_refused).sum()))


def replayed_verdicts(captured: int, replayed: int, at_once: int, near: NearLimit) -> Counter[int]:
    """Verdicts on the number of splits of the captured lane.

    at_once: splits of that lane with every batch closed as soon as it may have been. Of the splits by which the
    captured lane is off, as many are unknown as those closes bring it nearer; then as many as batches were near the
    limit.
    """
    agreed, away = min(captured, replayed), abs(captured - replayed)
    nearer = at_once - replayed if captured > replayed else replayed - at_once
    by_order = min(max(nearer, 0), away)
    by_limit = min(near.refused if captured > replayed else near.taken, away - by_order)
    which = Reason.SPLIT_NOT_REPLAYED if replayed < captured else Reason.SPLIT_NOT_CAPTURED
    verdicts = {Reason.CLOSE_ORDER: by_order, Reason.NEAR_LIMIT: by_limit, which: away - by_order - by_limit}
    return Counter({AGREED: agreed, **{CODES[reason]: count for reason, count in verdicts.items()}})
