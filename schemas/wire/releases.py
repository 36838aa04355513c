"""What tells a broker's release: the versions of APIs that its ApiVersions response offers.

The APIs are those that a broker answers itself: of those that it forwards, it offers what the controller knows. The
versions are no unstable ones (`latestVersionUnstable`), which a broker offers only where it is told to.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A broker that offers an API in this version or a later one is of this release or a later one."""

    release: str
    api_key: int
    version: int


BROKERS_ONLY = 3
"""METADATA, which every broker offers and no controller: a controller's versions do not tell a broker's release."""

MARKS = (
    Mark("1.1", 1, 7),
    Mark("2.5", 11, 7),
    Mark("3.7", 1, 16),
    Mark("3.8", 0, 11),
    Mark("3.9", 1, 17),
    Mark("4.0", 3, 13),
    Mark("4.1", 1, 18),
    Mark("4.2", 2, 11),
    Mark("4.3", 35, 5),
    Mark("4.4", 42, 3),
)
"""In ascending order: the releases that a profile of a replay begins with, and those with fetch sessions."""
