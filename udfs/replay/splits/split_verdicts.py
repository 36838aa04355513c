"""What of a client's sendings agrees with KIP-126 at the captured settings, counted by metric.

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

from schemas.tables.steps import SENT
from udfs.replay.fetch.log_reads import numbers_of
from udfs.replay.splits.compression_estimate import HEADER_BYTES, Producers
from udfs.replay.splits.resent import NONE, Rows
from udfs.replay.splits.sent_batches import TOO_LARGE, Sent
from udfs.replay.splits.split_fidelity import AGREED, CODES, UNTOLD, Closes, Made, Reason, Splits, judge
from udfs.replay.splits.split_outcomes import NEVER
from udfs.wire.arrays import Bools, Ints, Singles

BATCHES, SPLITS, SPLITS_REPLAYED = "batches", "splits", "splits_replayed"


def judge_sent(
    sent: Sent, rows: pa.RecordBatch, lanes: Producers, is_java: bool, judged: dict[tuple[int, int], float],
    verdicts: Counter[tuple[str, int]],
) -> None:  # fmt: skip
    """Count the verdicts on a stretch of sendings. judged: estimates before it by topic and codec, brought forward."""
    unread = sent.rows.records == 0
    verdicts[BATCHES, CODES[Reason.RECORDS_UNKNOWN]] += int(unread.sum())
    if not is_java:
        verdicts[BATCHES, CODES[Reason.NOT_JAVA]] += len(sent.first)
        return
    note_splits(sent, lanes, verdicts)
    codec = sent.rows.codec
    began = numbers_of(rows, SENT.began_before, 0) != 0
    for topic, number in np.unique(np.stack([sent.topic, codec], axis=1)[sent.first], axis=0).tolist():
        mine = (sent.topic == topic) & (codec == number)
        if (topic, number) not in judged:
            first = sent.first[mine[sent.first]][0]
            judged[topic, number] = UNTOLD if began[first] or sent.rows.sequence[first] > 0 else 1.0
        found, judged[topic, number] = judge_topic(sent, mine, number, lanes, judged[topic, number])
        for code, count in zip(*np.unique(found, return_counts=True), strict=True):
            verdicts[BATCHES, int(code)] += int(count)


def note_splits(sent: Sent, lanes: Producers, verdicts: Counter[tuple[str, int]]) -> None:
    """Compare the batches refused as too large with those that are larger than max.message.bytes."""
    rows = sent.rows
    answered = (rows.error != NONE) & (rows.records > 1)
    refused = answered & (rows.error == TOO_LARGE)
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
    is_refused = rows.error == TOO_LARGE
    is_taken = (rows.error != NONE) & ~is_refused
    return NearLimit(int((is_near & is_taken).sum()), int((is_near & is_refused).sum()))


def replayed_verdicts(captured: int, replayed: int, at_once: int, near: NearLimit) -> Counter[int]:
    """Verdicts on the number of splits of the captured lane.

    at_once: splits of that lane with every batch closed as soon as it may have been. What the captured lane has less or
    more is unknown as far as that brings it nearer, and as far as so many batches were as near the limit.
    """
    agreed, away = min(captured, replayed), abs(captured - replayed)
    nearer = at_once - replayed if captured > replayed else replayed - at_once
    by_order = min(max(nearer, 0), away)
    by_limit = min(near.refused if captured > replayed else near.taken, away - by_order)
    which = Reason.SPLIT_NOT_REPLAYED if replayed < captured else Reason.SPLIT_NOT_CAPTURED
    verdicts = {Reason.CLOSE_ORDER: by_order, Reason.NEAR_LIMIT: by_limit, which: away - by_order - by_limit}
    return Counter({AGREED: agreed, **{CODES[reason]: count for reason, count in verdicts.items()}})


def ratios(size: Ints, uncompressed: Ints) -> Singles:
    """Compression ratios as clients see them: float32."""
    inside: Singles = (size - HEADER_BYTES).astype(np.float32)
    return np.divide(inside, np.maximum(uncompressed, 1).astype(np.float32), dtype=np.float32)


def judge_topic(sent: Sent, mine: Bools, codec: int, lanes: Producers, initial: float) -> tuple[Ints, float]:
    """(the verdict on each batch of one topic and codec, the estimate at the end)."""
    rows, log = sent.rows, sent.log
    by_request = np.argsort(rows.request_time, kind="stable")
    closed = by_request[mine[by_request] & (rows.uncompressed[by_request] > 0)]
    earliest = closed_after(sent)[closed]
    none_before = np.minimum.accumulate(earliest[::-1])[::-1]
    ratio = ratios(rows.size[closed], rows.uncompressed[closed])
    closes = Closes(rows.request_time[closed], earliest, none_before, ratio)
    refused = np.flatnonzero(mine & (rows.error == TOO_LARGE) & (rows.records > 1))
    refused = refused[np.argsort(rows.response_time[refused], kind="stable")]
    splits = Splits(
        rows.response_time[refused], first_part(sent, refused), ratios(rows.size[refused], rows.uncompressed[refused])
    )  # fmt: skip
    batches = np.flatnonzero(mine[sent.first])
    batches = batches[np.argsort(log.time[sent.begin[batches]], kind="stable")]
    made = made_of(sent, batches)
    found, after = judge(made, closes, splits, log.content, log.timestamp, codec, lanes, initial)
    unread = rows.request_time[(rows.records == 0) & mine]
    if len(unread):  # from there on the estimate is not known
        found = np.where(made.created >= unread.min(), CODES[Reason.RECORDS_UNKNOWN], found)
    return found, after


def closed_after(sent: Sent) -> Ints:
    """When each sending was closed at the earliest: not before what was before its request, nor before its last record
    was appended, nor, where it sends records again, before the answer to what sent them first."""
    rows, log = sent.rows, sent.log
    batch = np.maximum(sent.batch_of, 0)
    last = np.minimum(sent.begin[batch] + sent.offset + rows.records, sent.begin[batch + 1]) - 1
    is_again = sent.first[batch] != np.arange(len(batch))
    told = (sent.batch_of != NONE) & (rows.records > 0)
    found = sent.before
    for time, is_told in ((log.time[last], told), (rows.response_time[sent.first[batch]], told & is_again)):
        # What is not before the request is no bound: a time that is not the client's clock, or no answer.
        found = np.maximum(found, np.where(is_told & (time < rows.request_time), time, 0))
    return found


def first_part(sent: Sent, refused: Ints) -> Ints:
    """When the first batch was sent that the split of each refused one made; NEVER where none was captured."""
    parts = np.flatnonzero(~sent.is_whole & (sent.batch_of != NONE))
    found = np.full(len(sent.first) + 1, NEVER)
    np.minimum.at(found, sent.batch_of[parts], sent.rows.request_time[parts])
    # A part that is refused again is split by its own parts, which are not told from the others.
    found = np.where(sent.is_whole[refused], found[sent.batch_of[refused]], NEVER)
    return found


def made_of(sent: Sent, batches: Ints) -> Made:
    """The batches in the order of their creation, with what may have ended each."""
    log, begin = sent.log, sent.begin
    first, end = begin[batches], begin[batches + 1]
    has_next = (end < len(log.time)) & (log.partition[np.minimum(end, len(log.time) - 1)] == log.partition[first])
    after = np.minimum(end, len(log.time) - 1)
    other = sent.next_in_topic[end - 1]
    is_other = (other != NONE) & (log.partition[np.maximum(other, 0)] != log.partition[first])
    is_other &= sent.places.is_sticky[sent.places.topic[log.partition[first]]] == 1
    comes = np.where(is_other, np.minimum(log.time[np.maximum(other, 0)], log.time[after]), log.time[after])
    surely_cut = ~has_next & ~is_other
    return Made(
        log.time[first], first, end,
        np.where(has_next, log.content[after], log.content[np.maximum(other, 0)]),
        np.where(has_next, log.timestamp[after], log.timestamp[np.maximum(other, 0)]),
        np.where(is_other, log.content[np.maximum(other, 0)], NONE), log.timestamp[np.maximum(other, 0)],
        (surely_cut | (comes >= sent.before[sent.first[batches]])).astype(np.int64),
    )  # fmt: skip
