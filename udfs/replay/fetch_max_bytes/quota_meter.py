"""A client's bandwidth quota at a broker (KIP-13): how much it fetched or sent lately, and how long it has to wait.

The rules are those of org.apache.kafka.server.quota.ClientQuotaManager and QuotaUtils, and of Sensor, Rate and
SampledStat in org.apache.kafka.common.metrics (Kafka 4.3). A broker has a meter for each client.id: bytes in windows of
time, of which the last few count. It records the response to a fetch before it sends the response. If the meter is then
above the quota, the broker takes the response out of the meter again and sends an empty one, and the client waits
(KIP-219; since Kafka 2.0). A produce request is recorded when it is answered, and counts whether its client has to wait
or not.
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
"""The bytes of a response besides records, as FetchResponse.sizeOf counts them for Fetch 13 and later: once for the
response, for each topic, and for each partition with 16 KiB to 2 MiB of records.
"""

METER = int_fields(
    "samples",  # how many there are
    "current",  # the one that records
)
"""A meter: how much a client fetched from a broker or sent to it."""
QUOTA_SAMPLE = int_fields(
    "started_at",  # ms
    "recorded_at",  # ms: the last time
    "bytes",
)
"""A window of a meter."""


class Meters(NamedTuple):
    """METER[meters], and QUOTA_SAMPLE[meters, windows]: one more window than those that count, as in SampledStat."""

    meters: Records
    samples: Records


def new_meters(meters: int, windows: int) -> Meters:
    """Meters that have recorded nothing. windows: the most windows that count."""
    return Meters(np.zeros(meters, METER), np.zeros((meters, windows + 1), QUOTA_SAMPLE))


@kernel
def begin_sample(sample: Record, time: int) -> None:
    """Begin a window anew: SampledStat.Sample.reset. sample: a row of QUOTA_SAMPLE. time: ms."""
    sample.started_at, sample.recorded_at, sample.bytes = time, time, 0


@kernel
def record_in_meter(meters: Meters, number: int, rules: Record, size: int, time: int) -> None:
    """Add bytes to a meter: SampledStat.record. rules: a row of RULES. time: ms."""
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
    """(bytes that a meter counts, over how many ms): Rate.measure. Windows that are over begin anew."""
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
    """How long a meter needs to fall back to its quota (ms), 0 if it is within its quota: Sensor.checkQuotas and
    QuotaUtils.throttleTime.
    """
    total, elapsed = measured(meters, number, rules, time)
    rate, bound = total / (elapsed / 1000.0), float(rules.byte_rate)
    return min(floor((rate - bound) / bound * elapsed + 0.5), MOST_MS) if rate > bound else 0


@kernel
def throttle_ms(meters: Meters, number: int, rules: Record, size: int, time: int) -> int:
    """throttle_time_ms of a response of `size` bytes, 0 if it is sent as it is: KafkaApis.handleFetchRequest."""
    record_in_meter(meters, number, rules, size, time)
    waits = excess_ms(meters, number, rules, time)
    if waits > 0:
        record_in_meter(meters, number, rules, -size, time)
    return waits


@kernel
def produce_throttle_ms(meters: Meters, number: int, rules: Record, size: int, time: int) -> int:
    """throttle_time_ms of the response to a produce request of `size` bytes: KafkaApis.handleProduceRequest."""
    record_in_meter(meters, number, rules, size, time)
    return excess_ms(meters, number, rules, time)
