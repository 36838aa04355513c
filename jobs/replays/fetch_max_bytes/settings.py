"""The settings of fetches, of consumers and followers, as KIP-74's replay takes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jobs.captures.kafka_release import KAFKA_SETTING, PROPOSAL
from jobs.scenarios.scenario import Lane, number_of, values_in
from jobs.scenarios.settings import Value
from schemas.tables.values import CONSUMER, FOLLOWER
from udfs.replay.fetch_max_bytes.client_order import ORDERS, PROFILES
from udfs.replay.fetch_max_bytes.client_pace import ClientLanes
from udfs.replay.fetch_max_bytes.fetch_lanes import FetchLanes
from udfs.replay.fetch_max_bytes.fetch_read import Lanes
from udfs.replay.shared.lanes import AS_CAPTURED

BROKER_MAX_BYTES = "broker.fetch.max.bytes"
MAX_POLL_RECORDS = "consumer.max.poll.records"
PROCESSING = "processing.us.per.record"
NO_QUOTA = (1 << 31) - 1
BYTE_RATE = "consumer_byte_rate"
QUOTA_SECONDS = 10
"""(quota.window.num - 1) x quota.window.size.seconds, by default: what a response may have of a quota, in seconds."""
SETTINGS = {
    CONSUMER: ("consumer.fetch.max.bytes", "consumer.max.partition.fetch.bytes"),
    FOLLOWER: ("replica.fetch.response.max.bytes", "replica.fetch.max.bytes"),
}
WAITS = {
    CONSUMER: ("consumer.fetch.min.bytes", "consumer.fetch.max.wait.ms"),
    FOLLOWER: ("replica.fetch.min.bytes", "replica.fetch.wait.max.ms"),
}


def fetch_lanes(lanes: Sequence[Lane], captured: dict[str, Value]) -> FetchLanes:
    """The scenario's lanes as the replay takes them; what a lane does not change is as captured."""

    def column(key: str, default: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([int(lane.settings.get(key, default)) for lane in lanes], np.int64)

    rates = [number_of(rate, NO_QUOTA) for rate in values_in(lanes, BYTE_RATE, captured)]
    quota = np.array(rates, np.int64) * QUOTA_SECONDS

    def of(reader: str) -> Lanes:
        max_bytes, partition_max_bytes = SETTINGS[reader]
        most = column(BROKER_MAX_BYTES, int(captured[BROKER_MAX_BYTES]))
        followed = values_in(lanes, KAFKA_SETTING, captured)
        return Lanes(
            max_bytes=column(max_bytes, AS_CAPTURED),
            partition_max_bytes=column(partition_max_bytes, AS_CAPTURED),
            broker_max_bytes=np.minimum(most, quota) if reader == CONSUMER else most,
            only_first=np.array([release == PROPOSAL for release in followed]).astype(np.int64),
        )

    def client(reader: str) -> ClientLanes:
        min_bytes, max_wait = WAITS[reader]
        named = {"profile": PROFILES, "order": ORDERS} if reader == CONSUMER else {"order": ORDERS}
        codes = {
            key: np.array([known.get(str(lane.settings.get(key)), AS_CAPTURED) for lane in lanes], np.int64)
            for key, known in named.items()
        }
        return ClientLanes(
            min_bytes=column(min_bytes, AS_CAPTURED),
            max_wait_ms=column(max_wait, AS_CAPTURED),
            max_poll_records=column(MAX_POLL_RECORDS, int(captured[MAX_POLL_RECORDS])),
            us_per_record=column(PROCESSING, AS_CAPTURED),
            profile=codes.get("profile", np.full(len(lanes), AS_CAPTURED)),
            order=codes["order"],
        )

    names = tuple(lane.name for lane in lanes)
    return FetchLanes(names, of(CONSUMER), of(FOLLOWER), client(CONSUMER), client(FOLLOWER))
