"""The release that a replay follows if none is stated: the one that the captured brokers show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from jobs.captures.clusters import rows_of_cluster
from jobs.scenarios.settings import followed_for, settings
from schemas.tables.silver import EXCHANGES
from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.values import KRAFT, RELEASE, ZOOKEEPER
from schemas.wire.fetch import FETCH_REQUEST
from schemas.wire.releases import FETCHES, MARKS
from udfs.replay.partition_limits.settings import CONTROLLER
from udfs.replay.shared.lanes import KAFKA_RELEASE, PROPOSAL, numbers_of_release

FOLLOWER = r"^broker-\d+-fetcher-\d+$"
BY_APIS, BY_FOLLOWERS = "the API versions that brokers offer", "what followers say of themselves"
BY_FETCHES = "the Fetch versions that followers use"


@dataclass(frozen=True)
class BrokerRelease:
    """The brokers' release, the oldest if they have several, and how it is known.

    controller: KRAFT or ZOOKEEPER, where the release can have either and brokers show which.
    """

    release: str
    newest: str
    by: str
    controller: str | None = None

    @property
    def settings(self) -> Mapping[str, str]:
        """The values that follow from the release for settings that nobody states, by key."""
        return {KAFKA_RELEASE: self.profile} | ({CONTROLLER: self.controller} if self.controller else {})

    @property
    def profile(self) -> str:
        """The value of the setting `kafka` with which this release is replayed: the oldest choice that is not older."""
        return followed_for(self.release, releases()) or releases()[0]

    @property
    def text(self) -> str:
        """As text: `4.3, from the versions of APIs that brokers offer`; `3.7 for brokers of 2.8, from ...`."""
        brokers = self.release_range(self.release)
        of = "" if brokers == self.profile else f" for brokers of {brokers}"
        others = "" if self.newest == self.release else f" (some are of {self.release_range(self.newest)})"
        controller = " with ZooKeeper" if self.controller == ZOOKEEPER else ""
        return f"{self.profile}{controller}{of}, from {self.by}{others}"

    def release_range(self, release: str) -> str:
        """The releases between which the evidence cannot distinguish, this one among them, as text."""
        if self.by == BY_FETCHES:
            return f"{release} or later"
        last = next((mark.last for mark in MARKS if mark.release == release), release)
        return release if self.by == BY_FOLLOWERS or last == release else f"{release} or {last}"


def releases() -> list[str]:
    """The releases that can be followed, newest first."""
    return [choice for choice in settings()[KAFKA_RELEASE].choices if choice != PROPOSAL]


def find_broker_release(
    spark: SparkSession, lake: str, capture_id: str, cluster_id: str | None
) -> BrokerRelease | None:
    """The release that a capture set shows of a cluster's brokers, or of all brokers if no cluster is named; None where
    it shows none.

    A response to ApiVersions shows the release of its broker, and a follower names the release of the broker for which
    it fetches. The capture has neither before 2.4, or if connections are older than the capture. Then the version of
    Fetch that followers use counts. It follows inter.broker.protocol.version, so brokers have the release of that
    version or a later one.
    """
    metadata, exchanges = (
        rows_of_cluster(spark, lake, table, capture_id, cluster_id) for table in (CLUSTER_METADATA, EXCHANGES)
    )
    ways = {
        BY_APIS: release_by_broker(metadata),
        BY_FOLLOWERS: release_by_follower(exchanges),
        BY_FETCHES: release_by_fetches(exchanges),
    }
    for by, releases in ways.items():
        rows = releases.collect()
        range_of_releases = oldest_and_newest(rows)
        if range_of_releases:
            return BrokerRelease(*range_of_releases, by, controller_in_rows(rows))
    return None


def release_by_broker(metadata: DataFrame) -> DataFrame:
    """(broker, release, controller), each once."""
    m = CLUSTER_METADATA
    return metadata.where(F.col(m.entry) == RELEASE).select(m.broker, m.release, m.controller).distinct()


def release_by_follower(exchanges: DataFrame) -> DataFrame:
    """(client.id, release), each once."""
    x, m = EXCHANGES, CLUSTER_METADATA
    release = F.regexp_extract(x.client_software_version, r"^(\d{1,4}\.\d{1,4})", 1).alias(m.release)
    followers = exchanges.where(F.col(x.client_id).rlike(FOLLOWER)).select(x.client_id, release)
    return followers.where(F.col(m.release) != "").distinct()


def release_by_fetches(exchanges: DataFrame) -> DataFrame:
    """(node id of a follower, release), each once: the release that introduced the version of an answered fetch."""
    x, m = EXCHANGES, CLUSTER_METADATA
    is_answered = (F.col(x.api_key) == FETCH_REQUEST.api_key) & F.col(x.response_time).isNotNull()
    release = F.lit(None).cast("string")
    for mark in FETCHES:
        release = F.when(F.col(x.api_version) >= mark.version, mark.release).otherwise(release)
    fetches = exchanges.where(is_answered & (F.col(x.fetch_replica_id) >= 0))
    return fetches.select(x.fetch_replica_id, release.alias(m.release)).where(F.col(m.release).isNotNull()).distinct()


def controller_in_rows(rows: Sequence[Row]) -> str | None:
    """The kind of controller: ZOOKEEPER if at least one broker works with it, else KRAFT; None if no row says.

    rows: (who, release, controller).
    """
    controllers = {controller for _, _, *controllers in rows for controller in controllers if controller is not None}
    return ZOOKEEPER if ZOOKEEPER in controllers else KRAFT if controllers else None


def oldest_and_newest(rows: Sequence[Row]) -> tuple[str, str] | None:
    """(the oldest, the newest) release. Each broker or client counts with the newest release that it ever showed.

    None if there are no rows. rows: (who, release, ...).
    """
    newest: dict[str, str] = {}
    for who, release, *_ in rows:
        newest[who] = max(newest.get(who, release), release, key=numbers_of_release)
    by_age = sorted(newest.values(), key=numbers_of_release)
    return (by_age[0], by_age[-1]) if by_age else None
