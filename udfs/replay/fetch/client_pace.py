"""How fast a reader and its broker are, measured from the capture, and the settings of simulated clients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.replay.fetch.fetch_read import AS_CAPTURED
from udfs.wire.arrays import Ints

DEFAULT_MAX_POLL_RECORDS = 500


class ClientLanes(NamedTuple):
    """Settings by lane, int64[lanes]; AS_CAPTURED leaves what the capture shows."""

    min_bytes: Ints
    max_wait_ms: Ints
    max_poll_records: Ints
    us_per_record: Ints
    profile: Ints
    order: Ints


def as_captured_clients(lanes: int) -> ClientLanes:
    """Lanes that change nothing of the client."""
    unchanged = np.full(lanes, AS_CAPTURED)
    polls = np.full(lanes, DEFAULT_MAX_POLL_RECORDS)
    return ClientLanes(unchanged, unchanged, polls, unchanged, unchanged, unchanged)


class Pace(NamedTuple):
    """Times in us.

    gap: from a response to the fetch that follows, without records. record: more for each record. answer: from a fetch
    that finds enough to its response, without records. byte: more for each record byte. late: from the end of the
    longest wait to an empty response.
    """

    gap: float
    record: float
    answer: float
    byte: float
    late: float


def measured_pace(request: Ints, response: Ints, records: Ints, record_bytes: Ints, ready: Ints, wait_us: int) -> Pace:
    """The pace of one connection's answered fetches in time order, int64[fetches] each.

    records, record_bytes: in each response. ready: when what it returned was there to be read, at the latest; 0 or
    less where it was there before. wait_us: the longest wait that the fetches allow. Totals are kept: with the captured
    answers, the times add up to those captured.
    """
    gaps = request[1:] - response[:-1]
    followed = gaps >= 0
    gap, record = line(records[:-1][followed], gaps[followed])
    took, waited = np.maximum(response - request, 0), np.maximum(ready - request, 0)
    has_records = record_bytes > 0
    at_once = has_records & (waited == 0)
    answer, byte = line(record_bytes[at_once], took[at_once])
    over = np.maximum(took - wait_us, 0)[~has_records & (took >= wait_us)]
    return Pace(gap, record, answer, byte, float(np.median(over)) if len(over) else 0.0)


def line(amounts: Ints, times: Ints) -> tuple[float, float]:
    """(time of amount 0, time per unit) whose sum over the amounts is that of the times; (0, 0) for none.

    The time of amount 0 is the median where amounts of 0 were seen, else the shortest.
    """
    if len(times) == 0:
        return 0.0, 0.0
    idle = times[amounts == 0]
    base = float(np.median(idle) if len(idle) else times.min())
    busy, total = times[amounts > 0], int(amounts.sum())
    if total == 0:
        return float(times.mean()), 0.0
    rest = float(busy.sum()) - base * len(busy)
    return (base, rest / total) if rest >= 0 else (float(busy.mean()), 0.0)
