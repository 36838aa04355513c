"""What each lane sets for consumers and for followers: limits of a fetch, and the client that closed loop simulates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from schemas.tables.values import CONSUMER, FOLLOWER
from udfs.columns.arrays import Bools, Floats, Ints, Records
from udfs.columns.records import int_fields, new_records
from udfs.columns.time_units import MS_PER_S
from udfs.replay.fetch_max_bytes.quotas import (
    OwnQuota,
    QuotaOf,
    has_quota,
    own_quota,
    quotas_of_settings,
)
from udfs.replay.shared.lanes import (
    AS_CAPTURED,
    KAFKA_RELEASE,
    PROPOSAL,
    TRAFFIC_CONSUMERS,
    LaneSettings,
)
from udfs.replay.shared.process_addresses import without_port
from udfs.replay.shared.window import WHOLE, Window

BROKER_MAX_BYTES = "broker.fetch.max.bytes"
MAX_POLL_RECORDS = "consumer.max.poll.records"
US_PER_RECORD = "processing.us.per.record"
QUOTA_WINDOWS = "broker.quota.window.num"
QUOTA_WINDOW_SECONDS = "broker.quota.window.size.seconds"
FETCHERS = "num.replica.fetchers"
REQUEST_LIMITS: Mapping[str, tuple[str, str]] = {
    CONSUMER: ("consumer.fetch.max.bytes", "consumer.max.partition.fetch.bytes"),
    FOLLOWER: ("replica.fetch.response.max.bytes", "replica.fetch.max.bytes"),
}
"""The settings that set max_bytes and partition_max_bytes of a reader's requests, by kind of reader."""
REQUEST_WAITS: Mapping[str, tuple[str, str]] = {
    CONSUMER: ("consumer.fetch.min.bytes", "consumer.fetch.max.wait.ms"),
    FOLLOWER: ("replica.fetch.min.bytes", "replica.fetch.wait.max.ms"),
}
"""The settings that set min_bytes and max_wait_ms of a reader's requests, by kind of reader."""
MOST_BYTES = (1 << 31) - 1
"""max_bytes is an int32."""
DEFAULT_MAX_POLL_RECORDS = 500

JAVA_4, JAVA_3, LIBRDKAFKA, REPLICA_FETCHER = range(4)
PROFILES = {"java-4.0": JAVA_4, "java-3.9": JAVA_3, "librdkafka": LIBRDKAFKA}
"""The sets of rules that clients follow, as `profile` spells them. REPLICA_FETCHER is a broker's
ReplicaFetcherThread."""
CLIENT_ORDER, FIXED_ORDER, FIRST_EMPTY_ORDER, SHUFFLED_ORDER = range(4)
ORDERS = {
    "client": CLIENT_ORDER, "fixed": FIXED_ORDER, "first_empty": FIRST_EMPTY_ORDER, "shuffle": SHUFFLED_ORDER
}  # fmt: skip
"""Orders of partitions, as `order` spells them: the client's own, or another one instead."""


class Reader(NamedTuple):
    """A consumer or follower."""

    client_id: str
    client_address: str
    kind: str


FETCH_LIMITS = int_fields(
    "max_bytes",  # of a request, or AS_CAPTURED
    "partition_max_bytes",  # of a request, or AS_CAPTURED
    "broker_max_bytes",  # the broker's fetch.max.bytes, or what a consumer's quota allows
    "only_first",  # 1: KIP-74's text, by which only the partition named first may exceed the limits
    "byte_rate",  # bytes/s that a broker gives the reader and all who share its quota (KIP-13), or 0 for no quota
    "quota_windows",  # how many windows of time a quota counts (quota.window.num), 0 for readers that can have none
    "quota_window_ms",  # how long each window is, 0 for readers that can have none
    "quota_is_known",  # 1: the quota is known, even if it is none; delays by the captured quota are then left out
)
"""The limits of a fetch that a lane sets."""
CLIENT_SETTINGS = int_fields(
    "min_bytes",  # or AS_CAPTURED
    "max_wait_ms",  # or AS_CAPTURED
    "max_poll_records",
    "us_per_record",  # how long the application works on each record, or AS_CAPTURED
    "profile",  # or AS_CAPTURED
    "order",  # or AS_CAPTURED
    "readers",  # how many consumers share what a captured one reads, or fetchers what a follower reads; or AS_CAPTURED
)
"""The settings of the closed loop's client that a lane sets."""


@dataclass(frozen=True)
class FetchLanes:
    """The lanes of a replay, the captured one first.

    consumer, follower: FETCH_LIMITS[lanes] of each kind of reader, without quotas. consumer_client, follower_client:
    CLIENT_SETTINGS[lanes] of each. traffic_speed: float64[lanes], the factor by which records are produced faster than
    captured. window: only fetches sent in this time are replayed. quotas: the quotas of consumers in each lane,
    bytes/s; empty if no lane has any. users: the user that each consumer is to brokers, by client.id and address, as
    far as that is known. lossy: the ids of connections of which the capture lacks bytes. closed_at: when connections
    ended (us), by their ids, if the capture shows that. captured_until: the last time at which the capture shows each
    broker (us), by its name. own_max_bytes: the fetch.max.bytes in each lane, int64[lanes], of each broker for which
    another value is stated than for all, by its name.
    """

    names: tuple[str, ...]
    consumer: Records
    follower: Records
    consumer_client: Records
    follower_client: Records
    traffic_speed: Floats
    window: Window = WHOLE
    quotas: tuple[Mapping[QuotaOf, int], ...] = ()
    users: Mapping[tuple[str, str], str] = field(default_factory=dict)
    lossy: frozenset[int] = frozenset()
    closed_at: Mapping[int, int] = field(default_factory=dict)
    captured_until: Mapping[str, int] = field(default_factory=dict)
    own_max_bytes: Mapping[str, Ints] = field(default_factory=dict)

    def limits(self, reader: Reader, broker: str | None = None) -> Records:
        """The fetch limits of this reader, with its quotas: FETCH_LIMITS[lanes].

        broker: the one that answers; by default any for which no other fetch.max.bytes is stated than for all.
        """
        limits = self.follower if reader.kind == FOLLOWER else self.consumer
        if broker is not None and broker in self.own_max_bytes:
            limits = limits.copy()
            limits["broker_max_bytes"] = self.own_max_bytes[broker]
        return with_quotas(limits, self.quotas_of(reader)) if self.quotas and reader.kind != FOLLOWER else limits

    def limits_by_row(self, reader: Reader) -> Records:
        """The fetch limits of this reader: FETCH_LIMITS[rows, lanes]. The first row is for most brokers; each further
        one is for a broker in `own_max_bytes`.
        """
        return np.stack([self.limits(reader, broker) for broker in (None, *self.own_max_bytes)])

    def row_of_broker(self, broker: str | None) -> int:
        """The row of `limits_by_row` that is for this broker."""
        return [None, *self.own_max_bytes].index(broker) if broker in self.own_max_bytes else 0

    def quotas_of(self, reader: Reader) -> list[OwnQuota | None]:
        """The quota of a reader in each lane; None if it has none."""
        if reader.kind == FOLLOWER or not self.quotas:
            return [None] * len(self.names)
        user, alone = self.user_of(reader), f"{reader.client_id} at {without_port(reader.client_address)}"
        return [own_quota(of_lane, user, reader.client_id, alone) for of_lane in self.quotas]

    def replayed_until(self) -> dict[str, int]:
        """The last time at which fetches to each broker are replayed (us): the end of the capture or of the window."""
        return {broker: min(until, self.window.end) for broker, until in self.captured_until.items()}

    def user_of(self, reader: Reader) -> str | None:
        """The user that the reader is to brokers, None if that is not known."""
        return self.users.get((reader.client_id, reader.client_address))

    @property
    def deals_fetchers(self) -> bool:
        """Whether a lane has another number of fetchers."""
        return bool((self.follower_client["readers"] != AS_CAPTURED).any())

    def client(self, reader: str) -> Records:
        """The settings of clients of this kind of reader: CLIENT_SETTINGS[lanes]."""
        return self.follower_client if reader == FOLLOWER else self.consumer_client

    def equals(self, others: FetchLanes, reader: Reader) -> bool:
        """Whether each lane treats this reader like the lane with the same index in `others`.

        Names are compared only if a lane shuffles, because the seed of a shuffle is made from a name.
        """
        shuffles = bool((self.client(reader.kind)["order"] == SHUFFLED_ORDER).any())
        return (
            np.array_equal(self.limits_by_row(reader), others.limits_by_row(reader))
            and [*self.own_max_bytes] == [*others.own_max_bytes]
            and np.array_equal(self.client(reader.kind), others.client(reader.kind))
            and np.array_equal(self.traffic_speed, others.traffic_speed)
            and (not shuffles or self.names == others.names)
        )


def fetch_lanes(lanes: LaneSettings) -> FetchLanes:
    """The lanes in the form that the replay takes. What a lane does not change is as captured."""
    quotas = tuple(quotas_of_settings({**lanes.in_force, **lane}) for lane in lanes.changed)
    consumer = fetch_limits_of_lanes(lanes, CONSUMER)
    return FetchLanes(
        names=lanes.names,
        consumer=consumer if any(quotas) else with_quotas(consumer, [None] * len(quotas)),
        follower=fetch_limits_of_lanes(lanes, FOLLOWER),
        consumer_client=client_settings(lanes, CONSUMER),
        follower_client=client_settings(lanes, FOLLOWER),
        traffic_speed=lanes.traffic_speed,
        quotas=quotas if any(quotas) else (),
        own_max_bytes={
            broker: lanes.of_broker(broker).ints(BROKER_MAX_BYTES) for broker in lanes.brokers_with(BROKER_MAX_BYTES)
        },
    )


def fetch_limits_of_lanes(lanes: LaneSettings, reader: str) -> Records:
    """FETCH_LIMITS[lanes] of a kind of reader, without quotas, but with the windows that quotas would have."""
    max_bytes, partition_max_bytes = REQUEST_LIMITS[reader]
    is_consumer = reader == CONSUMER
    return new_records(
        FETCH_LIMITS,
        len(lanes.names),
        max_bytes=lanes.changed_ints(max_bytes),
        partition_max_bytes=lanes.changed_ints(partition_max_bytes),
        broker_max_bytes=lanes.ints(BROKER_MAX_BYTES),
        only_first=[int(release == PROPOSAL) for release in lanes.values(KAFKA_RELEASE)],
        quota_windows=lanes.ints(QUOTA_WINDOWS) * is_consumer,
        quota_window_ms=lanes.ints(QUOTA_WINDOW_SECONDS) * MS_PER_S * is_consumer,
        quota_is_known=quota_is_known(lanes) & is_consumer,
    )


def with_quotas(limits: Records, quotas: Sequence[OwnQuota | None]) -> Records:
    """FETCH_LIMITS[lanes] of a consumer that has these quotas. limits: those without quotas."""
    under = limits.copy()
    rate = np.array([0 if quota is None else quota.rate for quota in quotas], np.int64)
    under["byte_rate"] = rate
    most = quota_bytes(rate, under["quota_windows"], under["quota_window_ms"] // MS_PER_S)
    limited = rate > 0
    under["broker_max_bytes"][limited] = np.minimum(under["broker_max_bytes"], most)[limited]
    for name in ("quota_windows", "quota_window_ms"):
        under[name][~limited] = 0
    return under


def quota_is_known(lanes: LaneSettings) -> Bools:
    """Whether each lane says which quotas consumers have, or the quotas in force are stated: bool[lanes]."""
    is_stated = bool(quotas_of_settings(lanes.in_force))
    return np.array([is_stated or has_quota(lane) for lane in lanes.changed])


def quota_bytes(rate: Ints, windows: Ints, seconds: Ints) -> Ints:
    """The most bytes of a response under a quota, int64[lanes]: ClientQuotaManager.maxValueInQuotaWindow (Kafka 4.3).

    rate: int64[lanes], bytes/s. windows: int64[lanes], how many windows a quota has. seconds: int64[lanes], how long
    each window is.
    """
    return np.minimum(rate.astype(np.float64) * (windows - 1) * seconds, MOST_BYTES).astype(np.int64)


def client_settings(lanes: LaneSettings, reader: str) -> Records:
    """CLIENT_SETTINGS[lanes] of a kind of reader. Only consumers can have another `profile`."""
    min_bytes, max_wait_ms = REQUEST_WAITS[reader]
    profiles = PROFILES if reader == CONSUMER else {}
    return new_records(
        CLIENT_SETTINGS,
        len(lanes.names),
        min_bytes=lanes.changed_ints(min_bytes),
        max_wait_ms=lanes.changed_ints(max_wait_ms),
        max_poll_records=lanes.ints(MAX_POLL_RECORDS),
        us_per_record=lanes.changed_ints(US_PER_RECORD),
        profile=changed_choices(lanes, "profile", profiles),
        order=changed_choices(lanes, "order", ORDERS),
        readers=lanes.changed_ints(TRAFFIC_CONSUMERS if reader == CONSUMER else FETCHERS),
    )


def changed_choices(lanes: LaneSettings, key: str, codes: Mapping[str, int]) -> Ints:
    """The code of the value that each lane sets, int64[lanes]; AS_CAPTURED if it sets none."""
    return np.array([codes.get(str(lane.get(key)), AS_CAPTURED) for lane in lanes.changed], np.int64)


def as_captured_clients(lanes: int) -> Records:
    """The settings of clients for which lanes change nothing: CLIENT_SETTINGS[lanes]."""
    return new_records(
        CLIENT_SETTINGS,
        lanes,
        **dict.fromkeys(CLIENT_SETTINGS.names or (), AS_CAPTURED) | {"max_poll_records": DEFAULT_MAX_POLL_RECORDS},
    )
