"""What the capture tells of a producer's closes, splits and batches of one topic and codec, as they are judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Bools, Ints, Singles
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.estimate import INITIAL_RATIO
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.possible_estimates.estimates import UNTOLD, Closes, Splits
from udfs.replay.batch_split.possible_estimates.fidelity import EARLY, LINGERED, NOT_CUT, Made
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.resent_batches import NONE
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD


class Captured(NamedTuple):
    """What is judged together, and which sendings `closes` and `splits` are of: int64 each."""

    made: Made
    closes: Closes
    splits: Splits
    closed: Ints
    refused: Ints


class Group(NamedTuple):
    """What was sent to one topic by one codec. mine: bool[rows], its sendings; initial: the estimate before them."""

    topic: int
    codec: int
    mine: Bools
    told: Captured
    initial: float


def groups_of(
    sent: Sent, rows: pa.RecordBatch, linger_us: int, known: Mapping[tuple[int, int], float]
) -> Iterator[Group]:
    """A stretch of sendings, rows of SENT, by topic and codec. known: estimates before it, as far as there are any."""
    began = int_column(rows, SENT.began_before, 0) != 0
    of_topic, place = np.stack([sent.topic, sent.rows.codec], axis=1), places(sent)
    for topic, codec in np.unique(of_topic[sent.first], axis=0).tolist():
        mine = (of_topic == (topic, codec)).all(axis=1)
        first = sent.first[mine[sent.first]][0]
        # What is not compressed is estimated to be as large as it is.
        is_untold = codec != 0 and (began[first] or sent.rows.sequence[first] > 0)
        told = captured(sent, mine, place, linger_us)
        yield Group(topic, codec, mine, told, known.get((topic, codec), UNTOLD if is_untold else INITIAL_RATIO))


def captured(sent: Sent, mine: Bools, place: Ints, linger_us: int) -> Captured:
    """Of the sendings `mine`, bool[rows], which are of one topic and codec. place: as `places` has it."""
    rows = sent.rows
    by_request = np.argsort(rows.request_time, kind="stable")
    closed = by_request[mine[by_request] & (rows.uncompressed[by_request] > 0)]
    refused = np.flatnonzero(mine & (rows.error == MESSAGE_TOO_LARGE) & (rows.records > 1))
    refused = refused[np.argsort(rows.response_time[refused], kind="stable")]
    splits = Splits(
        rows.response_time[refused], first_part(sent, refused), ratios(rows.size[refused], rows.uncompressed[refused])
    )  # fmt: skip
    batches = np.flatnonzero(mine[sent.first])
    batches = batches[np.argsort(place[sent.begin[batches]], kind="stable")]
    closes = closes_of(sent, closed, splits_before(sent, refused), place)
    return Captured(made_of(sent, batches, place, linger_us), closes, splits, closed, refused)


def places(sent: Sent) -> Ints:
    """int64[records], where each stands in the order in which they were appended."""
    return np.argsort(sent.log.order, kind="stable")


def closes_of(sent: Sent, closed: Ints, splits: Ints, place: Ints) -> Closes:
    """The sendings `closed`, in the order of their requests."""
    rows = sent.rows
    earliest = closed_after(sent)[closed]
    none_before = np.minimum.accumulate(earliest[::-1])[::-1]
    after = np.where(sent.batch_of != NONE, place[last_records(sent)], NONE)
    ratio = ratios(rows.size[closed], rows.uncompressed[closed])
    return Closes(rows.request_time[closed], earliest, none_before, after[closed], splits[closed], ratio)


def ratios(size: Ints, uncompressed: Ints) -> Singles:
    """Compression ratios as clients see them: float32."""
    inside: Singles = (size - RECORD_BATCH_OVERHEAD).astype(np.float32)
    return np.divide(inside, np.maximum(uncompressed, 1).astype(np.float32), dtype=np.float32)


def last_records(sent: Sent) -> Ints:
    """int64[rows], the last record of each sending; any where it is not known which those are."""
    batch = np.maximum(sent.batch_of, 0)
    return np.minimum(sent.begin[batch] + sent.offset + sent.rows.records, sent.begin[batch + 1]) - 1


def closed_after(sent: Sent) -> Ints:
    """When each sending was closed at the earliest: not before what was before its request, nor before its last record
    was appended, nor, where it sends records again, before the answer to what sent them first."""
    rows, batch = sent.rows, np.maximum(sent.batch_of, 0)
    is_again = sent.first[batch] != np.arange(len(batch))
    told = (sent.batch_of != NONE) & (rows.records > 0)
    found = sent.before
    appended, answered = sent.log.time[last_records(sent)], rows.response_time[sent.first[batch]]
    for time, is_told in ((appended, told), (answered, told & is_again)):
        # What is not before the request is no bound: a time that is not the client's clock, or no answer.
        found = np.maximum(found, np.where(is_told & (time < rows.request_time), time, 0))
    return found


def first_part(sent: Sent, refused: Ints) -> Ints:
    """When the first batch was sent that the split of each refused one made; NEVER where none was captured."""
    made_by = split_of(sent)
    parts = np.flatnonzero(made_by != NONE)
    found = np.full(len(made_by), NEVER)
    np.minimum.at(found, made_by[parts], sent.rows.request_time[parts])
    return found[refused]


def splits_before(sent: Sent, refused: Ints) -> Ints:
    """int64[rows], how many of the splits come before each sending at least: a part is sent when its batch is split."""
    made_by = split_of(sent)
    number = np.zeros(len(made_by), np.int64)
    number[refused] = np.arange(len(refused)) + 1
    return np.where(made_by != NONE, number[made_by], 0)


def is_part(sent: Sent) -> Bools:
    """Which sendings a split made: parts of a batch, or all of one that batch.size has room for."""
    return split_of(sent) != NONE


def split_of(sent: Sent) -> Ints:
    """int64[rows], the refused sending whose split made each one, NONE for others: the last that was refused before it,
    where that has its records, else the last that had all of its batch."""
    refused = (sent.rows.error == MESSAGE_TOO_LARGE) & (sent.rows.records > 1)
    last, whole = last_before(sent, refused), last_before(sent, refused & sent.is_whole)
    begin, end = sent.offset, sent.offset + sent.rows.records
    has = (last != NONE) & (begin[last] <= begin) & (end <= end[last])
    return np.where(has, last, whole)


def last_before(sent: Sent, of: Bools) -> Ints:
    """int64[rows], the last sending before each with records of the same batch, of those in `of`; NONE for none."""
    n = len(of)
    in_turn = np.lexsort((sent.rows.request_time, sent.batch_of))
    last = np.maximum.accumulate(np.where(of[in_turn], np.arange(n), NONE))
    before = np.concatenate([np.full(min(n, 1), NONE), last[:-1]])
    row, batch = in_turn[before], sent.batch_of[in_turn]
    same = (before != NONE) & (sent.batch_of[row] == batch) & (batch != NONE)
    found = np.full(n, NONE)
    found[in_turn] = np.where(same, row, NONE)
    return found


def made_of(sent: Sent, batches: Ints, place: Ints, linger_us: int) -> Made:
    """The batches in the order of their creation, with what may have ended each."""
    log, begin = sent.log, sent.begin
    first, end = begin[batches], begin[batches + 1]
    after = np.minimum(end, len(log.time) - 1)
    has_next = (end < len(log.time)) & (log.partition[after] == log.partition[first])
    other = sent.next_record[end - 1]
    is_other = (other != NONE) & (log.partition[np.maximum(other, 0)] != log.partition[first])
    is_other &= sent.places.is_sticky[sent.places.topic[log.partition[first]]] == 1
    comes = np.where(is_other, np.minimum(log.time[np.maximum(other, 0)], log.time[after]), log.time[after])
    comes = np.where(has_next | is_other, comes, NEVER)
    lingered = comes >= np.maximum(sent.before[sent.first[batches]], log.time[first] + linger_us)
    early = comes >= sent.before[sent.first[batches]]
    return Made(
        log.time[first], place[first], first, end,
        np.where(has_next, log.content[after], log.content[np.maximum(other, 0)]),
        np.where(has_next, log.timestamp[after], log.timestamp[np.maximum(other, 0)]),
        np.where(is_other, log.content[np.maximum(other, 0)], NONE), log.timestamp[np.maximum(other, 0)],
        np.where(lingered, LINGERED, np.where(early, EARLY, NOT_CUT)),
    )  # fmt: skip
