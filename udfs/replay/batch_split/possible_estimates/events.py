"""What a capture shows of a producer's closes, splits and batches, by topic and codec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Ints, Records, Singles
from udfs.columns.records import records_of
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.estimate import INITIAL_RATIO
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.possible_estimates.state import (
    CLOSE,
    CREATED,
    EARLY,
    LINGERED,
    NOT_CUT,
    SPLIT,
    UNKNOWN,
    Group,
)
from udfs.replay.shared.resent_batches import NONE
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD


class Known(NamedTuple):
    """What sendings show together about the times at which they were closed.

    place: int64[records], where each stands in the order of appending. Int64[sendings] are: by_request, the sendings in
    the order of their requests; earliest: us, when each can have been closed; last_place: of its last record, or NONE;
    first_part: us, the request of the first part that its split made, or NEVER.
    """

    place: Ints
    by_request: Ints
    earliest: Ints
    last_place: Ints
    first_part: Ints


def groups_of(sent: Sent, linger_us: int, known: Mapping[tuple[int, int], float]) -> Iterator[Group]:
    """A stretch of sendings by topic and codec. known: estimates before it, as far as there are any."""
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
        yield Group(
            topic=topic,
            codec=codec,
            is_of=is_of,
            batches=created_of(sent, batches, times.place, linger_us),
            closes=closes_of(sendings, times, closed, refused),
            splits=records_of(
                SPLIT,
                len(refused),
                earliest=sendings["response_time"][refused],
                latest=times.first_part[refused],
                ratio=ratios(sendings[refused]),
            ),
            closed=closed,
            refused=refused,
            initial=known.get((topic, codec), UNKNOWN if is_unknown else INITIAL_RATIO),
        )


def known_times(sent: Sent) -> Known:
    """What is known of all sendings, whatever their topics."""
    place = np.empty(len(sent.capture.records), np.int64)
    place[sent.capture.append_order] = np.arange(len(place))
    by_request, last = np.argsort(sent.sendings["request_time"], kind="stable"), last_records(sent)
    last_place = np.full(len(last), NONE)
    last_place[last != NONE] = place[last[last != NONE]]
    return Known(place, by_request, earliest_closes(sent, last), last_place, first_parts(sent))


def last_records(sent: Sent) -> Ints:
    """The last record of each sending, NONE where it is not known which records it has: int64[sendings]."""
    last, known = np.full(len(sent.sendings), NONE), np.flatnonzero(sent.sendings["batch"] != NONE)
    sendings = sent.sendings[known]
    batches = sent.capture.batches[sendings["batch"]]
    last[known] = np.minimum(batches["first"] + sendings["offset"] + sendings["records"], batches["end"]) - 1
    return last


def earliest_closes(sent: Sent, last: Ints) -> Ints:
    """When each sending was closed at the earliest: not before what was before its request, nor before its last record
    was appended, nor, where it sends records again, before the response to what sent them first. int64[sendings], us.

    last: int64[sendings], the last record of each, or NONE.
    """
    sendings, earliest = sent.sendings, sent.sendings["not_before"].copy()
    known = np.flatnonzero((last != NONE) & (sendings["records"] > 0))
    first = sent.capture.batches["sending"][sendings["batch"][known]]
    again = first != known
    bounds = (known, sent.capture.records["time"][last[known]]), (known[again], sendings["response_time"][first[again]])
    for rows, time in bounds:
        # What is not before the request is no bound: a time that is not the client's clock, or no response.
        earliest[rows] = np.maximum(earliest[rows], np.where(time < sendings["request_time"][rows], time, 0))
    return earliest


def first_parts(sent: Sent) -> Ints:
    """When the first batch was sent that the split of each refused one made, NEVER where none was captured:
    int64[sendings], us.
    """
    made_by, sent_at = sent.sendings["made_by"], np.full(len(sent.sendings), NEVER)
    parts = np.flatnonzero(made_by != NONE)
    np.minimum.at(sent_at, made_by[parts], sent.sendings["request_time"][parts])
    return sent_at


def closes_of(sendings: Records, times: Known, closed: Ints, refused: Ints) -> Records:
    """The closes of the sendings `closed`, which are in the order of their requests. refused: those that were split."""
    number = np.zeros(len(sendings), np.int64)
    number[refused] = np.arange(len(refused)) + 1
    made_by, earliest = sendings["made_by"][closed], times.earliest[closed]
    return records_of(
        CLOSE,
        len(closed),
        latest=sendings["request_time"][closed],
        earliest=earliest,
        none_before=np.minimum.accumulate(earliest[::-1])[::-1],
        after=times.last_place[closed],
        splits=np.where(made_by != NONE, number[made_by], 0),
        ratio=ratios(sendings[closed]),
    )


def ratios(sendings: Records) -> Singles:
    """Compression ratios as clients see them: float32."""
    inside: Singles = (sendings["size"] - RECORD_BATCH_OVERHEAD).astype(np.float32)
    return np.divide(inside, np.maximum(sendings["uncompressed"], 1).astype(np.float32), dtype=np.float32)


def created_of(sent: Sent, batches: Ints, place: Ints, linger_us: int) -> Records:
    """The batches in the order of their creation, with what may have ended each: CREATED[batches].

    batches: int64[batches], their numbers. place: int64[records], as in `Known`.
    """
    records, partitions = sent.capture.records, sent.capture.partitions
    captured = sent.capture.batches[batches]
    captured = captured[np.argsort(place[captured["first"]], kind="stable")]
    not_before = sent.sendings["not_before"][captured["sending"]]
    first = records[captured["first"]]
    after = records[np.minimum(captured["end"], len(records) - 1)]
    other = records[captured["next_record"]]
    has_next = (captured["end"] < len(records)) & (after["partition"] == first["partition"])
    is_other = (captured["next_record"] != NONE) & (other["partition"] != first["partition"])
    is_other &= partitions["is_sticky"][first["partition"]] == 1
    comes = np.where(is_other, np.minimum(other["time"], after["time"]), after["time"])
    comes = np.where(has_next | is_other, comes, NEVER)
    has_lingered = comes >= np.maximum(not_before, first["time"] + linger_us)
    return records_of(
        CREATED,
        len(captured),
        time=first["time"],
        place=place[captured["first"]],
        first=captured["first"],
        end=captured["end"],
        next_content=np.where(has_next, after["content"], other["content"]),
        next_timestamp=np.where(has_next, after["timestamp"], other["timestamp"]),
        other_content=np.where(is_other, other["content"], NONE),
        other_timestamp=other["timestamp"],
        cut=np.where(has_lingered, LINGERED, np.where(comes >= not_before, EARLY, NOT_CUT)),
    )
