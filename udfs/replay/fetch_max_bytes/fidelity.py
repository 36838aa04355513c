"""Does the replay of the captured settings give what the capture shows? One verdict a fetch, with its reason."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints
from udfs.replay.fetch_max_bytes.fetch_read import Lanes, Reads, read_fetches


class Reason(StrEnum):
    """Why a fetch could not be checked, or how it disagreed, by precedence: schemas.tables.fidelity_reasons."""

    NO_RESPONSE = "no_response"
    RESPONSE_ERROR = "response_error"
    THROTTLED = "throttled"
    SESSION_UNKNOWN = "session_unknown"
    PARTITION_REFUSED = "partition_refused"
    CONVERTED = "converted_format"
    COMPACTED = "compacted"
    TRUNCATED = "truncated"
    BOUND_UNKNOWN = "high_watermark_unknown"
    LOG_UNKNOWN = "log_content_unknown"
    SEGMENT_END = "segment_end"
    APPEND_TIME_UNKNOWN = "append_time_unknown"
    APPEND_ORDER = "append_read_order"
    FEWER_BYTES = "fewer_bytes"
    MORE_BYTES = "more_bytes"


UNKNOWN = (
    Reason.NO_RESPONSE, Reason.RESPONSE_ERROR, Reason.THROTTLED, Reason.SESSION_UNKNOWN, Reason.PARTITION_REFUSED,
    Reason.CONVERTED, Reason.COMPACTED, Reason.TRUNCATED, Reason.BOUND_UNKNOWN, Reason.LOG_UNKNOWN,
    Reason.SEGMENT_END, Reason.APPEND_TIME_UNKNOWN, Reason.APPEND_ORDER,
)  # fmt: skip
CODES = {reason: code for code, reason in enumerate(Reason, 1)}
AGREED = 0


class Known(NamedTuple):
    """What the capture says of each read: bool[reads] flags, int64[reads] numbers (us, bytes)."""

    refused: Bools
    throttled: Bools
    session_known: Bools
    redirected: Bools
    bound_known: Bools
    log_known: Bools
    converted: Bools
    compacted: Bools
    truncated: Bools
    ends_perhaps: Bools
    available_low: Ints
    available_high: Ints
    first_append: Ints
    available_first: Ints
    returned: Ints  # NO_RECORDS_KNOWN without a response


NO_RECORDS_KNOWN = -1


def captured_bytes(reads: Reads, fetch_from: Ints, captured: Lanes, available: Ints) -> tuple[Ints, Ints]:
    """(bytes, depends on unknown batches) of each read in the captured lane when so much was available."""
    answers = read_fetches(reads._replace(available=available), fetch_from, captured)
    return answers.returned[:, 0], answers.unknown[:, 0]


def lowest_available(known: Known, fetch: Ints, fetches: int, low_bytes: Ints, never: int) -> Ints:
    """The least that was there, given that a fetch waits until something is there.

    A fetch that finds nothing is parked (DelayedFetch) and read again on the first append that gives it enough. So when
    it returned records though none were surely there, an append to one of its partitions woke it. Where only one of
    them may have had an append, it was that one. Between several the capture does not tell: first_append is when an
    append could come at the earliest, not when it came.
    """
    nothing = np.bincount(fetch, low_bytes, fetches)[fetch] == 0
    answered = np.bincount(fetch, known.returned, fetches)[fetch] > 0
    uncertain = known.first_append < never
    alone = np.bincount(fetch, uncertain, fetches)[fetch] == 1
    return np.where(nothing & answered & uncertain & alone, known.available_first, known.available_low)


def as_captured(known: Known, lowest: Ints) -> Ints:
    """The bytes available if appends came as the capture suggests: what was returned, as far as that is possible."""
    return np.clip(known.returned, lowest, known.available_high)


def judge(reads: Reads, known: Known, fetch: Ints, fetch_from: Ints, captured: Lanes, never: int) -> Ints:
    """The verdict on each fetch: AGREED or a code of CODES.

    reads, known: reads of whole fetches in read order. fetch: int64[reads], the fetch of each. captured: one lane.
    never: the value of first_append where nothing is uncertain.
    """
    fetches = len(fetch_from) - 1
    low_bytes, _ = captured_bytes(reads, fetch_from, captured, known.available_low)
    lowest = lowest_available(known, fetch, fetches, low_bytes, never)
    low_bytes, low_unknown = captured_bytes(reads, fetch_from, captured, lowest)
    high_bytes, high_unknown = captured_bytes(reads, fetch_from, captured, known.available_high)
    middle, _ = captured_bytes(reads, fetch_from, captured, as_captured(known, lowest))

    def any_of(flags: Bools) -> Bools:
        return np.bincount(fetch, flags, fetches) > 0

    differs = any_of(low_bytes != high_bytes)
    undecided = any_of(~known.log_known & (low_unknown | high_unknown) > 0)
    timeless = any_of((known.first_append < 0) & (known.available_low != known.available_high))
    equal = ~any_of(known.returned != high_bytes)
    fewer = any_of(known.returned < high_bytes)
    possible = differs & ~any_of(known.returned != middle)
    explained = equal | (possible & ~undecided)
    return np.select(
        [
            any_of(known.returned == NO_RECORDS_KNOWN), any_of(known.refused), any_of(known.throttled),
            any_of(~known.session_known), any_of(known.redirected) & ~equal,
            any_of(known.converted) & ~equal, any_of(known.compacted) & ~explained,
            any_of(known.truncated) & ~explained, any_of(~known.bound_known), undecided,
            possible & any_of(known.ends_perhaps), possible & timeless, possible, equal, fewer,
        ],
        [
            CODES[Reason.NO_RESPONSE], CODES[Reason.RESPONSE_ERROR], CODES[Reason.THROTTLED],
            CODES[Reason.SESSION_UNKNOWN], CODES[Reason.PARTITION_REFUSED], CODES[Reason.CONVERTED],
            CODES[Reason.COMPACTED], CODES[Reason.TRUNCATED], CODES[Reason.BOUND_UNKNOWN], CODES[Reason.LOG_UNKNOWN],
            CODES[Reason.SEGMENT_END], CODES[Reason.APPEND_TIME_UNKNOWN], CODES[Reason.APPEND_ORDER], AGREED,
            CODES[Reason.FEWER_BYTES],
        ],
        default=CODES[Reason.MORE_BYTES],
    )  # fmt: skip
