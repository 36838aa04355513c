"""What shows a broker's release: the API versions that its ApiVersions response offers.

Only APIs that a broker answers itself are used: for APIs that it forwards, it offers the controller's versions.
Unstable versions (`latestVersionUnstable`) are left out, because a broker offers them only if it is configured to.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.wire.apis import API_KEYS


@dataclass(frozen=True, slots=True)
class Mark:
    """A broker that offers an API in this version or a later one has this release or a later one.

    api: the API's name. until: the last of the following releases that have no mark of their own and therefore also
    show this mark; empty if the next release has its own mark.
    """

    release: str
    api: str
    version: int
    until: str = ""

    @property
    def api_key(self) -> int:
        """The API's key."""
        return API_KEYS[self.api]

    @property
    def last(self) -> str:
        """The last release whose newest mark is this one."""
        return self.until or self.release


BROKERS_ONLY = API_KEYS["METADATA"]
"""An API that every broker offers and no controller: a controller's versions do not show a broker's release."""

ZOOKEEPER_ONLY = API_KEYS["LEADER_AND_ISR"]
"""An API that only a broker with ZooKeeper offers: the controller sends it, whereas KRaft's brokers read a log."""
BOTH_CONTROLLERS = ("3.3", "3.9")
"""The first and the last release that is fit for production with either controller (KIP-833)."""

MARKS = (
    Mark("0.10.0", "API_VERSIONS", 0),
    Mark("0.10.1", "FETCH", 3),
    Mark("0.10.2", "OFFSET_FETCH", 2),
    Mark("0.11", "PRODUCE", 3),
    Mark("1.0", "FETCH", 6),
    Mark("1.1", "FETCH", 7),
    Mark("2.0", "FETCH", 8),
    Mark("2.1", "FETCH", 10),
    Mark("2.2", "LIST_OFFSETS", 5),
    Mark("2.3", "FETCH", 11),
    Mark("2.4", "PRODUCE", 8),
    Mark("2.5", "JOIN_GROUP", 7),
    Mark("2.6", "LIST_GROUPS", 4),
    Mark("2.7", "FETCH", 12),
    Mark("2.8", "PRODUCE", 9),
    Mark("3.0", "LIST_OFFSETS", 7),
    Mark("3.1", "FETCH", 13),
    Mark("3.2", "JOIN_GROUP", 9),
    Mark("3.3", "DESCRIBE_LOG_DIRS", 4, until="3.4"),
    Mark("3.5", "FETCH", 15, until="3.6"),
    Mark("3.7", "FETCH", 16),
    Mark("3.8", "PRODUCE", 11),
    Mark("3.9", "FETCH", 17),
    Mark("4.0", "METADATA", 13),
    Mark("4.1", "FETCH", 18),
    Mark("4.2", "LIST_OFFSETS", 11),
    Mark("4.3", "DESCRIBE_LOG_DIRS", 5),
    Mark("4.4", "DELETE_GROUPS", 3),
)
"""In ascending order: all releases since brokers report their versions (KIP-35) that differ in one of these."""

FETCHES = (
    Mark("0.10.0", "FETCH", 2),
    Mark("0.10.1", "FETCH", 3),
    Mark("0.11", "FETCH", 4),
    *(mark for mark in MARKS[4:] if mark.api == "FETCH"),
)
"""What the versions of Fetch that a broker answers show about its release, in ascending order."""
