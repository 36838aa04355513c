"""Which release a replay follows where none is stated: the one that the captured brokers show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from jobs.lake import rows_of
from jobs.scenarios.settings import settings
from schemas.tables.silver import CONNECTIONS, EXCHANGES
from schemas.tables.silver_topics import CLUSTER_METADATA
from udfs.facts.releases import ENTRY

KAFKA = "kafka"
PROPOSAL = "kip"
FOLLOWER = r"^broker-\d+-fetcher-\d+$"
BY_APIS, BY_FOLLOWERS = "the versions of APIs that brokers offer", "what followers say of themselves"


@dataclass(frozen=True)
class SeenRelease:
    """The brokers' release, the oldest where they have several, and what tells it."""

    release: str
    newest: str
    by: str

    @property
    def profile(self) -> str:
        """The value of the setting `kafka` that replays it: the oldest release that is not older."""
        return next((of for of in reversed(releases()) if number(of) >= number(self.release)), releases()[0])

    @property
    def told(self) -> str:
        """For people: `4.3, from the versions of APIs that brokers offer`."""
        others = "" if self.newest == self.release else f" (some are of {self.newest})"
        return f"{self.profile}, from {self.by}{others}"


def releases() -> list[str]:
    """The releases that can be followed, newest first; each stands for those since the one before."""
    return [choice for choice in settings()[KAFKA].choices if choice != PROPOSAL]


def number(release: str) -> tuple[int, ...]:
    """A release as numbers, to be compared."""
    return tuple(map(int, release.split(".")))


def seen_release(spark: SparkSession, lake: str, capture_id: str) -> SeenRelease | None:
    """What a capture set shows of its brokers' release; None where it shows nothing.

    A response to ApiVersions tells what its broker is; a follower tells what the broker is that it fetches for.
    """
    metadata, connections, exchanges = (
        rows_of(spark, lake, table, capture_id) for table in (CLUSTER_METADATA, CONNECTIONS, EXCHANGES)
    )
    for by, found in ((BY_APIS, by_broker(metadata, connections)), (BY_FOLLOWERS, by_follower(exchanges))):
        seen = oldest_and_newest(found.collect())
        if seen:
            return SeenRelease(*seen, by)
    return None


def by_broker(metadata: DataFrame, connections: DataFrame) -> DataFrame:
    """(broker, release), each once."""
    m, c = CLUSTER_METADATA, CONNECTIONS
    told = metadata.where(F.col(m.entry) == ENTRY).select(m.connection_id, m.release)
    return (
        told.join(connections.select(c.connection_id, c.broker), c.connection_id).select(c.broker, m.release).distinct()
    )


def by_follower(exchanges: DataFrame) -> DataFrame:
    """(client.id, release), each once."""
    x, m = EXCHANGES, CLUSTER_METADATA
    release = F.regexp_extract(x.client_software_version, r"^(\d{1,4}\.\d{1,4})", 1).alias(m.release)
    followers = exchanges.where(F.col(x.client_id).rlike(FOLLOWER)).select(x.client_id, release)
    return followers.where(F.col(m.release) != "").distinct()


def oldest_and_newest(rows: Sequence[Row]) -> tuple[str, str] | None:
    """Of (who, release): each has the newest that it ever showed; of these the oldest and the newest."""
    newest: dict[str, str] = {}
    for who, release in rows:
        newest[who] = max(newest.get(who, release), release, key=number)
    return (min(newest.values(), key=number), max(newest.values(), key=number)) if newest else None
