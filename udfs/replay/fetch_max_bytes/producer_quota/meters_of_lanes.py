"""Which meter of a broker counts the requests of each connection, in each lane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfs.columns.arrays import Ints
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, US_PER_MS
from udfs.replay.fetch_max_bytes.producer_quota.events import CapturedProducers
from udfs.replay.fetch_max_bytes.producer_quota.settings import ProducerLanes
from udfs.replay.fetch_max_bytes.producer_quota.state import METER_RULES, QuotaLane
from udfs.replay.fetch_max_bytes.quota_meter import new_meters
from udfs.replay.fetch_max_bytes.quotas import OwnQuota, QuotaOf
from udfs.replay.shared.lanes import CAPTURED


def quota_lane(captured: CapturedProducers, lanes: ProducerLanes, lane: int) -> QuotaLane:
    """A lane with meters that have counted nothing."""
    return with_new_meters(captured, [lanes.quotas_of(client)[lane] for client in captured.clients], lanes, lane)


def measured_lane(captured: CapturedProducers, lanes: ProducerLanes) -> QuotaLane:
    """The captured lane, with a meter of rate 0 also for each client without a quota, as if there were a quota of each
    client.id.
    """
    own = [lanes.quotas_of(client)[CAPTURED] or OwnQuota(0, QuotaOf(None, client[0])) for client in captured.clients]
    return with_new_meters(captured, own, lanes, CAPTURED)


def with_new_meters(
    captured: CapturedProducers, own: Sequence[OwnQuota | None], lanes: ProducerLanes, lane: int
) -> QuotaLane:
    """A lane in which each process has its quota of `own`, None for no quota. Each broker has its own meters."""
    connections, numbers = captured.unit.connections, dict[tuple[QuotaOf, int], int]()
    meter_of, rates = np.full(len(connections), NONE), list[int]()
    places = zip(connections["process"].tolist(), connections["broker"].tolist(), strict=True)
    for connection, (process, broker) in enumerate(places):
        quota = own[process]
        if quota is not None:
            number = meter_of[connection] = numbers.setdefault((quota.meter, broker), len(numbers))
            if number == len(rates):
                rates.append(quota.rate)
    windows = int(lanes.windows[lane])
    rules = new_records(
        METER_RULES, len(rates), byte_rate=rates, quota_windows=windows, quota_window_ms=lanes.window_ms[lane]
    )
    return QuotaLane(meter_of, rules, new_meters(len(rates), windows), lane == CAPTURED)


def warm_times(captured: CapturedProducers, lane: QuotaLane) -> Ints:
    """Until when each meter may count bytes that producers sent before the capture: int64[meters], us; ALWAYS if none
    of its connections began before.

    lane: one in which every connection has a meter.
    """
    unit, warm = captured.unit, np.full(len(lane.rules), ALWAYS)
    for meter, rules in enumerate(lane.rules):
        of_meter = lane.meter_of == meter
        if captured.began_before[of_meter].any():
            first = unit.requests["recorded_us"][unit.first[:-1][of_meter]].min()
            warm[meter] = first + rules["quota_windows"] * rules["quota_window_ms"] * US_PER_MS
    return warm
