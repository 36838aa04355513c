"""A broker's bandwidth quota of a client (KIP-13): what it has had or sent of late, and how long it waits for more.

The rules are those of org.apache.kafka.server.quota.ClientQuotaManager and QuotaUtils, and of Sensor, Rate and
SampledStat in org.apache.kafka.common.metrics (Kafka 4.3). A broker has a meter of each client id: bytes in windows of
time, of which the last few count. It records a fetch's response before it sends it. If that is more than the quota
allows, it takes the response out of the meter again and sends an empty one, and the client waits (KIP-219; since Kafka
2.0). A produce request is recorded when it is answered, and counts whether its client has to wait or not.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Record, Records
from udfs.columns.records import int_fields
from udfs.kernels.kernel import kernel

MOST_MS = (1 << 31) - 1
"""throttle_time_ms is an int32."""
RESPONSE_BYTES, TOPIC_BYTES, PARTITION_BYTES = 16, 18, 39
"""What a response has beside records, as FetchResponse.sizeOf counts Fetch 13 and later: in all, for a topic, and for a
partition whose records are 16 KiB to 2 MiB.
"""

METER = int_fields(
    "samples",  # that there are
    "current",  # the one that is recorded in
)
"""What a client has had or sent at a broker."""
QUOTA_SAMPLE = int_fields(
    "started_at",  # ms
    "recorded_at",  # ms: the last time
    "bytes",
)
"""A window of a meter."""


class Meters(NamedTuple):
    """METER[meters], and QUOTA_SAMPLE[meters, windows]: one window more than those that count, as in SampledStat."""

    meters: Records
    samples: Records


def new_meters(meters: int, windows: int) -> Meters:
    """Meters that have recorded nothing. windows: the most that count."""
    return Meters(np.zeros(meters, METER), np.zeros((meters, windows + 1), QUOTA_SAMPLE))


@kernel
def begin_sample(sample: Record, time: int) -> None:
    """Begin a window anew: SampledStat.Sample.reset. sample: of QUOTA_SAMPLE. time: ms."""
    sample.started_at, sample.recorded_at, sample.bytes = time, time, 0


@kernel
def record_in_meter(meters: Meters, number: int, rules: Record, size: int, time: int) -> None:
    """Add bytes to a meter: SampledStat.record. rules: of RULES. time: ms."""
    meter, samples = meters.meters[number], meters.samples[number]
    if meter.samples == 0:
        meter.samples, meter.current = 1, 0
        begin_sample(samples[0], time)
    elif time - samples[meter.current].started_at >= rules.quota_window_ms:
        meter.current = (meter.current + 1) % (rules.quota_windows + 1)
        meter.samples = max(meter.samples, meter.current + 1)
        begin_sample(samples[meter.current], time)
    sample = samples[meter.current]
    sample.recorded_at = time
    sample.bytes += size


@kernel
def measured(meters: Meters, number: int, rules: Record, time: int) -> tuple[int, int]:
    """(bytes that a meter counts, over how many ms): Rate.measure. Windows that have gone by begin anew."""
    samples, window = meters.samples[number], rules.quota_window_ms
    total, oldest = 0, time
    for i in range(meters.meters[number].samples):
        if time - samples[i].recorded_at >= rules.quota_windows * window:
            begin_sample(samples[i], time)
        total += samples[i].bytes
        oldest = min(oldest, samples[i].started_at)
    elapsed = time - oldest
    return total, max(elapsed + max(rules.quota_windows - 1 - elapsed // window, 0) * window, 1)


@kernel
def excess_ms(meters: Meters, number: int, rules: Record, time: int) -> int:
    """How long a meter needs to come back to its quota, 0 where it is within: Sensor.checkQuotas and
    QuotaUtils.throttleTime.
    """
    total, elapsed = measured(meters, number, rules, time)
    rate, bound = total / (elapsed / 1000.0), float(rules.byte_rate)
    return min(floor((rate - bound) / bound * elapsed + 0.5), MOST_MS) if rate > bound else 0


@kernel
def throttle_ms(meters: Meters, number: int, rules: Record, size: int, time: int) -> int:
    """throttle_time_ms of a response of so many bytes, 0 where it is sent: KafkaApis.handleFetchRequest."""
    record_in_meter(meters, number, rules, size, time)
    waits = excess_ms(meters, number, rules, time)
    if waits > 0:
        record_in_meter(meters, number, rules, -size, time)
    return waits


@kernel
def produce_throttle_ms(meters: Meters, number: int, rules: Record, size: int, time: int) -> int:
    """throttle_time_ms of the response to a produce request of so many bytes: KafkaApis.handleProduceRequest."""
    record_in_meter(meters, number, rules, size, time)
    return excess_ms(meters, number, rules, time)
