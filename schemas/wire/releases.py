"""What tells a broker's release: the versions of APIs that its ApiVersions response offers.

The APIs are those that a broker answers itself: of those that it forwards, it offers what the controller knows. The
versions are no unstable ones (`latestVersionUnstable`), which a broker offers only where it is told to.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A broker that offers an API in this version or a later one is of this release or a later one.

    until: the last release that has no mark of its own and bears this one; empty where the next one has.
    """

    release: str
    api_key: int
    version: int
    until: str = ""

    @property
    def last(self) -> str:
        """The last release of which this is the newest mark."""
        return self.until or self.release


BROKERS_ONLY = 3
"""METADATA, which every broker offers and no controller: a controller's versions do not tell a broker's release."""

MARKS = (
    Mark("0.10.0", 18, 0),
    Mark("0.10.1", 1, 3),
    Mark("0.10.2", 9, 2),
    Mark("0.11", 0, 3),
    Mark("1.0", 1, 6),
    Mark("1.1", 1, 7),
    Mark("2.0", 1, 8),
    Mark("2.1", 1, 10),
    Mark("2.2", 2, 5),
    Mark("2.3", 1, 11),
    Mark("2.4", 0, 8),
    Mark("2.5", 11, 7),
    Mark("2.6", 16, 4),
    Mark("2.7", 1, 12),
    Mark("2.8", 0, 9),
    Mark("3.0", 2, 7),
    Mark("3.1", 1, 13),
    Mark("3.2", 11, 9),
    Mark("3.3", 35, 4, until="3.4"),
    Mark("3.5", 1, 15, until="3.6"),
    Mark("3.7", 1, 16),
    Mark("3.8", 0, 11),
    Mark("3.9", 1, 17),
    Mark("4.0", 3, 13),
    Mark("4.1", 1, 18),
    Mark("4.2", 2, 11),
    Mark("4.3", 35, 5),
    Mark("4.4", 42, 3),
)
"""In ascending order: all releases since brokers tell their versions (KIP-35) that differ in one of them."""

FETCHES = (
    Mark("0.10.0", 1, 2),
    Mark("0.10.1", 1, 3),
    Mark("0.11", 1, 4),
    *(mark for mark in MARKS[4:] if mark.api_key == 1),
)
"""What the versions of Fetch that a broker answers tell of it, in ascending order."""
