"""The vendors of brokers that are not Apache Kafka's, inferred from their ApiVersions responses."""

from __future__ import annotations

import numpy as np

from schemas.wire.apis import API_KEYS
from schemas.wire.vendors import ALWAYS_OFFERED, NEWEST_VERSIONS, OTHER, OWN_KEYS, REDPANDA, REDPANDA_OLDEST
from udfs.columns.arrays import Bools, Ints
from udfs.wire.messages import DecodedFrames

NOT_OFFERED = -1
APACHE = -1
VENDORS = (*(own.vendor for own in OWN_KEYS), OTHER)
NEWER = 1 + np.iinfo(np.int16).max
"""A version above all others. It stands for what a release that is newer than all known ones may offer."""
_ALWAYS = np.array([API_KEYS[api] for api in ALWAYS_OFFERED])
_NEWEST = np.array(list(NEWEST_VERSIONS.values()))


def vendors_of(decoded: DecodedFrames, responses: int) -> Ints:
    """The place in VENDORS of each ApiVersions response's broker, APACHE if it can be Apache Kafka's: int64[responses].

    An API key that only one vendor has decides. Without one, a response is Apache Kafka's if a release, a build between
    two releases, or a release newer than all known ones can offer its versions. Otherwise its oldest versions decide.
    """
    newest = offered_versions(decoded, "max_version", _ALWAYS, responses)
    vendor = np.where(is_of_apache(newest), APACHE, VENDORS.index(OTHER))
    vendor[(vendor != APACHE) & begins_as_redpanda(decoded, responses)] = VENDORS.index(REDPANDA)
    offered = decoded.levels["api_keys"]
    key = offered.column("api_key")
    for own in OWN_KEYS:
        vendor[offered.parent[(key >= own.first) & (key <= own.last)]] = VENDORS.index(own.vendor)
    return vendor


def offered_versions(decoded: DecodedFrames, column: str, keys: Ints, responses: int) -> Ints:
    """A column of the responses' rows for these APIs, NOT_OFFERED if an API is not offered: int64[responses, keys].

    column: min_version or max_version. keys: int64[keys].
    """
    offered = decoded.levels["api_keys"]
    versions = np.full((responses, len(keys)), NOT_OFFERED)
    for place, key in enumerate(keys.tolist()):
        rows = np.flatnonzero(offered.column("api_key") == key)
        versions[offered.parent[rows], place] = offered.column(column)[rows]
    return versions


def is_of_apache(newest: Ints) -> Bools:
    """Whether some release of Apache Kafka, known or future, can offer these versions: bool[responses].

    Only offered APIs count, because a proxy may hide some. newest: int64[responses, ALWAYS_OFFERED].
    """
    least, most = _NEWEST, np.vstack((_NEWEST[1:], np.full(len(ALWAYS_OFFERED), NEWER)))
    fits = np.zeros(len(newest), np.bool_)
    for low, high in zip(least, most, strict=True):
        fits |= np.all((newest == NOT_OFFERED) | ((newest >= low) & (newest <= high)), axis=1)
    return fits


def begins_as_redpanda(decoded: DecodedFrames, responses: int) -> Bools:
    """Whether the oldest offered versions are Redpanda's: bool[responses]."""
    oldest = offered_versions(decoded, "min_version", np.array(list(REDPANDA_OLDEST)), responses)
    return np.all(oldest == list(REDPANDA_OLDEST.values()), axis=1)
