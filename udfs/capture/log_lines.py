"""Splits brokers' request logs (kafka.request.logger) into lines, each with its time and the JSON of its request.

A line is `[TIME] LEVEL Completed request:{JSON} (LOGGER)`, written when the response has been sent
(kafka.network.RequestChannel.Request.updateRequestMetrics, Kafka 4.3). The JSON is that of Kafka 2.8 and later
(KIP-673; org.apache.kafka.network.RequestConvertToJson in Kafka 4.3); it has sizes instead of records.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from udfs.capture.request_log_head import MARKER, UTC
from udfs.capture.timestamps import LAST_SECOND
from udfs.columns.arrays import Bools, Bytes, Ints
from udfs.columns.arrow_columns import arrow_array, bool_values, text_column
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.time_units import NS_PER_S

# A layout may put thread and logger before the message. A message that begins after more bytes is not found.
PREFIX_BYTES = 256
PREFIX = (
    r"^.*?(?P<day>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?: ?(?P<zone>Z|[+-]\d\d:?\d\d)\b)?"
    r'.*?Completed request:\{(?P<forwarded>"isForwarded":true)?'
)
NEWLINE, CARRIAGE_RETURN, BRACE, SPACE = b"\n\r}\x20"
# What is wrong with a line; `udfs.facts.quarantine_reasons` names the codes for users.
FINE, NO_REQUEST, NO_TIME, NO_JSON = range(4)


class LogLines(NamedTuple):
    """The lines of a block, without blank ones.

    number: int64[n], place in the block from 0; blank lines count. size: int64[n], bytes as stored, without the line
    end. fault: int8[n]. completed: int64[n], ns since 1970, 0 if the line has no time. forwarded: bool[n].
    json: string[n], each with a newline at its end; blank if the line has no JSON.
    """

    number: Ints
    size: Ints
    fault: Ints
    completed: Ints
    forwarded: Bools
    json: pa.Array[Any]

    def take(self, rows: Ints) -> LogLines:
        """The lines with these row numbers; rows: int64[lines]."""
        return LogLines(
            self.number[rows], self.size[rows], self.fault[rows], self.completed[rows], self.forwarded[rows],
            self.json.take(arrow_array(rows)),
        )  # fmt: skip


def lines_of_block(block: bytes, zone: str = UTC) -> LogLines:
    """The lines of a block of text. zone: the zone of times that name none. Bytes that are not UTF-8 become U+FFFD."""
    block = block if block.endswith(b"\n") else block + b"\n"
    _, stored_starts, stored_ends = _split_lines(block)
    raw, starts, ends = _split_lines(_utf8(block))
    whole = text_column(raw, np.append(starts, len(raw)))
    prefix = pc.binary_slice(whole.view(pa.binary()), 0, PREFIX_BYTES)
    marker = pc.find_substring(prefix, MARKER).to_numpy(zero_copy_only=False).astype(np.int64)
    completed, timed, forwarded = _parsed_prefix(prefix, zone)
    begin, end = starts + marker + len(MARKER) - 1, _last_brace(raw, ends) + 1
    has_json = (marker >= 0) & (end > begin)
    json = _blank_all_but(raw, begin[has_json], end[has_json], ends)
    lines = LogLines(
        number=np.arange(len(ends)),
        size=stored_ends - stored_starts,
        fault=np.select([~has_json, ~timed], [NO_REQUEST, NO_TIME], default=FINE),
        completed=completed,
        forwarded=forwarded,
        json=text_column(json, np.append(starts, len(raw))),
    )
    return lines.take(np.flatnonzero(ends - starts > (raw[starts] == CARRIAGE_RETURN)))


def _utf8(block: bytes) -> bytes:
    """The block, with bytes replaced that are not UTF-8. The lines stay the same."""
    try:
        block.decode()
    except UnicodeDecodeError:
        return block.decode("utf-8", "replace").encode()
    return block


def _split_lines(block: bytes) -> tuple[Bytes, Ints, Ints]:
    """(the block's bytes, where each line begins, where its newline is)."""
    raw = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(raw == NEWLINE)
    return raw, np.append(0, ends[:-1] + 1), ends


def _parsed_prefix(prefix: pa.Array[Any], zone: str) -> tuple[Ints, Bools, Bools]:
    """(time in ns, whether there is one, whether the request was forwarded) of each line, from the text before the
    JSON.
    """
    parts = pc.extract_regex(prefix, PREFIX)
    day, time, fraction, offset, forwarded = (
        pc.fill_null(pc.struct_field(parts, i), b"").cast(pa.string()) for i in range(5)
    )
    local = pc.strptime(
        pc.binary_join_element_wise(day, time, " "), format="%Y-%m-%d %H:%M:%S", unit="s", error_is_null=True
    )
    # A local time that occurs twice, when clocks are set back, counts as the first one.
    instant = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    is_local = bool_values(pc.equal(offset, ""))
    stated = pc.fill_null(local.cast(pa.int64()), -1).to_numpy() - _offset_seconds(offset)
    second = np.where(is_local, pc.fill_null(instant.cast(pa.int64()), -1).to_numpy(), stated)
    nanos = pc.utf8_rpad(fraction, 9, "0").cast(pa.int64()).to_numpy()
    is_there = (second >= 0) & (second < LAST_SECOND)
    return np.where(is_there, second * NS_PER_S + nanos, 0), is_there, bool_values(pc.not_equal(forwarded, ""))


def _offset_seconds(offsets: pa.Array[Any]) -> Ints:
    """Seconds east of UTC of offsets such as +02:00 or -0500; 0 for Z and for an empty text."""
    padded = pc.utf8_rpad(pc.replace_substring(pc.replace_substring(offsets, "Z", ""), ":", ""), 5, "0")
    sign = np.where(bool_values(pc.starts_with(padded, "-")), -1, 1)
    hours, minutes = (
        pc.utf8_slice_codeunits(padded, at, at + 2).cast(pa.int64()).to_numpy().astype(np.int64) for at in (1, 3)
    )
    return sign * (hours * 3600 + minutes * 60)


def _last_brace(raw: Bytes, ends: Ints) -> Ints:
    """Place of the last closing brace before the end of each line, -1 if there is none."""
    braces = np.append(np.flatnonzero(raw == BRACE), -1)
    return braces[np.searchsorted(braces[:-1], ends) - 1]


def _blank_all_but(raw: Bytes, begins: Ints, ends: Ints, newlines: Ints) -> Bytes:
    """The bytes, with everything except the given spans and the newlines replaced by blanks."""
    edges = np.zeros(len(raw) + 1, np.int8)
    edges[begins] += 1
    edges[ends] -= 1
    blanked = np.where(np.cumsum(edges[:-1], dtype=np.int8) > 0, raw, np.uint8(SPACE))
    blanked[newlines] = NEWLINE
    return blanked
