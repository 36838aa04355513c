"""Whether the captured quota gives the captured throttle times, and which quota the throttle times show."""

from __future__ import annotations

import numpy as np

from schemas.tables.quota_reasons import THROTTLES
from udfs.columns.arrays import Ints, Record, Records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import MS_PER_S, US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.producer_quota.state import QuotaLane
from udfs.replay.fetch_max_bytes.quota_meter import excess_ms, measured, record_in_meter
from udfs.replay.shared.fidelity_rows import AGREED

NEAR_MS = 5
"""Throttle times agree if they differ by no more than this: brokers and captures time an event at two places."""
_CODES = THROTTLES.codes
NO_RESPONSE, SENT_BEFORE = _CODES[THROTTLES.no_response], _CODES[THROTTLES.sent_before]
QUOTA_NOT_STATED, ANOTHER_QUOTA = _CODES[THROTTLES.quota_not_stated], _CODES[THROTTLES.another_quota]
THROTTLED_LONGER, THROTTLED_LESS = _CODES[THROTTLES.throttled_longer], _CODES[THROTTLES.throttled_less]


@kernel
def judge_throttles(
    requests: Records, lane: QuotaLane, warm_us: Ints, replayed: Ints, shown: Ints, verdicts: Ints
) -> None:
    """Record captured requests in the meters of the captured lane, at the times at which brokers did.

    requests: PRODUCE_REQUEST[n], in the order in which brokers recorded them. Every connection has a meter; a rate of 0
    stands for no quota. warm_us: int64[meters], until when requests from before the capture may still count.

    Written: replayed: int64[n], throttle times (ms). shown: int64[n], the quota (bytes/s) that gives the captured
    throttle time for the bytes in the meter, NONE if the throttle time shows none. verdicts: int64[n].
    """
    for number in range(len(requests)):
        request = requests[number]
        meter, time = lane.meter_of[request.connection], request.recorded_us // US_PER_MS
        rules = lane.rules[meter]
        record_in_meter(lane.meters, meter, rules, request.size, time)
        total, elapsed = measured(lane.meters, meter, rules, time)
        replayed[number] = excess_ms(lane.meters, meter, rules, time) if rules.byte_rate > 0 else 0
        is_warm = request.recorded_us >= warm_us[meter]
        shows = is_warm and request.throttle_ms > MS_PER_S
        shown[number] = round(total * MS_PER_S / (elapsed + request.throttle_ms)) if shows else NONE
        verdicts[number] = throttle_verdict(request, rules, replayed[number], is_warm)


@kernel
def throttle_verdict(request: Record, rules: Record, replayed: int, is_warm: bool) -> int:
    """The verdict on a throttle time. replayed: the throttle time of the captured lane, ms."""
    captured = request.throttle_ms
    if captured == NONE:
        return NO_RESPONSE
    if rules.byte_rate == 0 and captured > 0:
        return QUOTA_NOT_STATED
    if abs(captured - replayed) <= NEAR_MS:
        return AGREED
    if not is_warm:
        return SENT_BEFORE
    if replayed == 0 and captured <= MS_PER_S:
        return ANOTHER_QUOTA
    return THROTTLED_LONGER if captured > replayed else THROTTLED_LESS


def counted(verdicts: Ints, which: Ints) -> dict[int, int]:
    """How often each verdict was given on some of the requests. verdicts: int64[n]. which: int64[m], indices."""
    codes, counts = np.unique(verdicts[which], return_counts=True)
    return dict(zip(codes.tolist(), counts.tolist(), strict=True))
