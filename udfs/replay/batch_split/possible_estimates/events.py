"""What a capture shows of a producer's closes, splits and batches, by topic and codec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Ints, Records, Singles
from udfs.columns.records import new_records
from udfs.columns.searches import place_of_last_before
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER, US_PER_MS
from udfs.replay.batch_split.estimate import INITIAL_RATIO
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.possible_estimates.state import (
    CLOSE,
    CREATED,
    EARLY,
    LINGERED,
    NO_ESTIMATE,
    NOT_CUT,
    SPLIT,
    WAITED,
    EstimateGroup,
)
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD


class Known(NamedTuple):
    """What sendings show together about the times at which they were closed.

    place: int64[records], the index of each in the order of appending. The others are int64[sendings]. by_request: the
    sendings in the order of their requests. earliest: the earliest time at which each can have been closed, us.
    last_place: the place of its last record, or NONE. first_part: when the first part that its split made was sent, us,
    or NEVER.
    """

    place: Ints
    by_request: Ints
    earliest: Ints
    last_place: Ints
    first_part: Ints


def groups_of_sendings(sent: Sent, linger_us: int, known: Mapping[tuple[int, int], float]) -> Iterator[EstimateGroup]:
    """A stretch of sendings, by topic and codec. known: the estimates before it, by topic and codec, where there are
    any.
    """
    sendings, first = sent.sendings, sent.capture.batches["sending"]
    times, topics, codecs = known_times(sent), sendings["topic"][first], sendings["codec"][first]
    for topic, codec in sorted({*zip(topics.tolist(), codecs.tolist(), strict=True)}):
        is_of = (sendings["topic"] == topic) & (sendings["codec"] == codec)
        batches = np.flatnonzero(is_of[first])
        begun = sendings[first[batches[0]]]
        # What is not compressed is estimated to be as large as it is.
        is_unknown = codec != 0 and (begun["began_before"] or begun["sequence"] > 0)
        closed = times.by_request[(is_of & (sendings["uncompressed"] > 0))[times.by_request]]
        refused = np.flatnonzero(is_of & (sendings["error"] == MESSAGE_TOO_LARGE) & (sendings["records"] > 1))
        refused = refused[np.argsort(sendings["response_time"][refused], kind="stable")]
        yield EstimateGroup(
            topic=topic,
            codec=codec,
            is_of=is_of,
            batches=created_batches(sent, batches, times.place, linger_us, closed),
            closes=closes_of(sendings, times, closed, refused),
            splits=new_records(
                SPLIT,
                len(refused),
                earliest=sendings["response_time"][refused],
                latest=times.first_part[refused],
                after=closes_before_parts(sent, times, closed, refused),
                ratio=compression_ratios(sendings[refused]),
            ),
            closed=closed,
            refused=refused,
            initial=known.get((topic, codec), NO_ESTIMATE if is_unknown else INITIAL_RATIO),
        )


def known_times(sent: Sent) -> Known:
    """What is known about all sendings, whatever their topics."""
    place = np.empty(len(sent.capture.records), np.int64)
    place[sent.capture.append_order] = np.arange(len(place))
    by_request, last = np.argsort(sent.sendings["request_time"], kind="stable"), last_records(sent)
    last_place = np.full(len(last), NONE)
    last_place[last != NONE] = place[last[last != NONE]]
    return Known(place, by_request, earliest_closes(sent, last), last_place, first_parts(sent))


def last_records(sent: Sent) -> Ints:
    """The last record of each sending, NONE if it is not known which records it has: int64[sendings]."""
    last, known = np.full(len(sent.sendings), NONE), np.flatnonzero(sent.sendings["batch"] != NONE)
    sendings = sent.sendings[known]
    batches = sent.capture.batches[sendings["batch"]]
    last[known] = np.minimum(batches["first"] + sendings["offset"] + sendings["records"], batches["end"]) - 1
    return last


def earliest_closes(sent: Sent, last: Ints) -> Ints:
    """The earliest time at which each sending can have been closed: int64[sendings], us.

    It was closed after everything that surely came before its request, and after its last record was appended. If it
    sends records again, it was closed after the response to the sending that sent them first and, with a sequence
    number, after the response to the sending of the records before them.

    last: int64[sendings], the last record of each, or NONE.
    """
    sendings, earliest = sent.sendings, sent.sendings["not_before"].copy()
    known = np.flatnonzero((last != NONE) & (sendings["records"] > 0))
    first = sent.capture.batches["sending"][sendings["batch"][known]]
    again = first != known
    in_turn = known[again & (sendings["sequence"][known] >= 0)]
    bounds = (
        (known, sent.capture.records["time"][last[known]]),
        (known[again], sendings["response_time"][first[again]]),
        (in_turn, answers_before(sendings, last, in_turn)),
    )
    for rows, time in bounds:
        # A time that is not before the request is no bound: it is not the client's clock, or there is no response.
        earliest[rows] = np.maximum(earliest[rows], np.where(time < sendings["request_time"][rows], time, 0))
    return earliest


def answers_before(sendings: Records, last: Ints, rows: Ints) -> Ints:
    """For each of some sendings, when the last sending of the record before its records was answered, NEVER if there is
    none: int64[rows], us. A client sends again only what is first in flight
    (RecordAccumulator.shouldStopDrainBatchesForPartition).

    last: int64[sendings], the last record of each, or NONE. rows: int64[rows], the sendings.
    """
    known = np.flatnonzero(last != NONE)
    before = last[rows] - sendings["records"][rows]
    answers = last_events_before(last[known], sendings["request_time"][known], before, sendings["request_time"][rows])
    sending = np.append(known, NONE)[answers]
    is_same = (sending != NONE) & (sendings["partition"][sending] == sendings["partition"][rows])
    return np.where(is_same, sendings["response_time"][sending], NEVER)


def first_parts(sent: Sent) -> Ints:
    """When the first batch made by the split of each refused one was sent, NEVER if none was captured:
    int64[sendings], us.
    """
    made_by, sent_at = sent.sendings["made_by"], np.full(len(sent.sendings), NEVER)
    parts = np.flatnonzero(made_by != NONE)
    np.minimum.at(sent_at, made_by[parts], sent.sendings["request_time"][parts])
    return sent_at


def closes_of(sendings: Records, times: Known, closed: Ints, refused: Ints) -> Records:
    """The closes of some sendings: CLOSE[closed].

    sendings: SENDING[sendings]. closed: int64[n], the sendings that are closed, in the order of their requests.
    refused: int64[m], the sendings that were split.
    """
    number = np.zeros(len(sendings), np.int64)
    number[refused] = np.arange(len(refused)) + 1
    made_by, earliest = sendings["made_by"][closed], times.earliest[closed]
    return new_records(
        CLOSE,
        len(closed),
        latest=sendings["request_time"][closed],
        earliest=earliest,
        none_before=np.minimum.accumulate(earliest[::-1])[::-1],
        after=times.last_place[closed],
        splits=np.where(made_by != NONE, number[made_by], 0),
        ratio=compression_ratios(sendings[closed]),
    )


def closes_before_parts(sent: Sent, times: Known, closed: Ints, refused: Ints) -> Ints:
    """Before the split of each refused sending, the last close of a batch that was sent for the first time:
    int64[refused], indices in `closed`, or NONE.

    The parts are put before all batches of the partition that were not sent yet. So a batch whose request came before
    that of the first part was closed before the split (RecordAccumulator.splitAndReenqueue).
    """
    sendings = sent.sendings
    is_first = np.zeros(len(sendings), np.bool_)
    is_first[sent.capture.batches["sending"]] = True
    numbers = np.flatnonzero(is_first[closed])
    part = times.first_part[refused]
    until = np.where(part == NEVER, sendings["response_time"][refused], part)
    first = sendings[closed[numbers]]
    last = last_events_before(first["partition"], first["request_time"], sendings["partition"][refused], until)
    return np.append(numbers, NONE)[last]


def last_events_before(keys: Ints, times: Ints, key: Ints, time: Ints) -> Ints:
    """The number of the last event with each key before a time, NONE where there is none: int64[n].

    keys, times: int64[events], in any order. key, time: int64[n], what is looked for.
    """
    order = np.lexsort((times, keys))
    return np.append(order, NONE)[place_of_last_before(keys[order], times[order], key, time)]


def compression_ratios(sendings: Records) -> Singles:
    """The compression ratios of sendings, as clients see them: float32[sendings]."""
    inside: Singles = (sendings["size"] - RECORD_BATCH_OVERHEAD).astype(np.float32)
    return np.divide(inside, np.maximum(sendings["uncompressed"], 1).astype(np.float32), dtype=np.float32)


def created_batches(sent: Sent, batches: Ints, place: Ints, linger_us: int, closed: Ints) -> Records:
    """The batches in the order of their creation, with what may have ended each: CREATED[batches].

    batches: int64[batches], their numbers. place: int64[records], as in `Known`. closed: the sendings that were closed.
    """
    records, partitions = sent.capture.records, sent.capture.partitions
    captured = sent.capture.batches[batches]
    captured = captured[np.argsort(place[captured["first"]], kind="stable")]
    before, close = batches_before(records, captured), np.full(len(sent.sendings), NONE)
    close[closed] = np.arange(len(closed))
    not_before = sent.sendings["not_before"][captured["sending"]]
    first = records[captured["first"]]
    after = records[np.minimum(captured["end"], len(records) - 1)]
    other = records[captured["next_record"]]
    has_next = (captured["end"] < len(records)) & (after["partition"] == first["partition"])
    is_other = (captured["next_record"] != NONE) & (other["partition"] != first["partition"])
    is_other &= partitions["is_sticky"][first["partition"]] == 1
    comes = np.where(has_next, after["time"], NEVER)
    comes = np.where(is_other, np.minimum(other["time"], comes), comes)
    has_lingered = comes >= np.maximum(not_before, first["time"] + linger_us)
    in_turn = records["time"][sent.capture.append_order]
    may_wait = has_next & (latest_appends(in_turn, place[np.minimum(captured["end"], len(records) - 1)]) >= not_before)
    places = place[captured["first"]]
    return new_records(
        CREATED,
        len(captured),
        time=first["time"],
        until=latest_appends(in_turn, places),
        place=places,
        later=np.searchsorted(in_turn, first["time"], side="right"),
        first=captured["first"],
        end=captured["end"],
        next_content=np.where(has_next, after["content"], other["content"]),
        next_timestamp=np.where(has_next, after["timestamp"], other["timestamp"]),
        other_content=np.where(is_other, other["content"], NONE),
        other_timestamp=other["timestamp"],
        cut=np.select([has_lingered, comes >= not_before, may_wait], [LINGERED, EARLY, WAITED], NOT_CUT),
        before=before,
        close_before=np.where(before == NONE, NONE, close[captured["sending"][before]]),
    )


def latest_appends(in_turn: Ints, places: Ints) -> Ints:
    """By when records surely were appended, which is when the ms of the record that was sent next has ended:
    int64[places], us.

    in_turn: int64[records], when each was sent, in the order of appending. places: of the records there.
    """
    return np.maximum(in_turn[places], in_turn[np.minimum(places + 1, len(in_turn) - 1)]) + US_PER_MS


def batches_before(records: Records, captured: Records) -> Ints:
    """The batch whose last record stands right before the first of each, NONE where that is none of them:
    int64[batches].

    records: RECORD[records]. captured: BATCH[batches].
    """
    by_end = np.argsort(captured["end"])
    first = captured["first"]
    before = by_end[np.searchsorted(captured["end"][by_end], first)]
    is_before = (captured["end"][before] == first) & (
        records["partition"][np.maximum(first - 1, 0)] == records["partition"][first]
    )
    return np.where(is_before, before, NONE)
