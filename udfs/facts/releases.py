"""The releases of brokers, inferred from their ApiVersions responses, as rows of `cluster_metadata`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.values import KRAFT, RELEASE, ZOOKEEPER
from schemas.wire.releases import BOTH_CONTROLLERS, BROKERS_ONLY, MARKS, ZOOKEEPER_ONLY
from udfs.columns.arrays import Bools, Ints
from udfs.columns.sentinels import NONE
from udfs.facts.exchange_messages import Messages
from udfs.facts.exchanges import Exchanges
from udfs.facts.metadata import entry_rows
from udfs.facts.vendors import VENDORS, vendors_of
from udfs.wire.messages import DecodedFrames

CONTROLLERS = (None, KRAFT, ZOOKEEPER)
VENDOR_BY_PLACE = dict(enumerate(VENDORS))
MARK_PLACES = {mark.release: place for place, mark in enumerate(MARKS)}


def release_rows(exchanges: Exchanges, versions: Messages) -> pa.RecordBatch:
    """One row for each ApiVersions response that shows the broker's release."""
    newest = newest_marks(versions.response, len(versions.response_exchanges))
    known = np.flatnonzero(newest != NONE)
    releases = pa.array([MARKS[place].release for place in newest[known].tolist()], pa.string())
    controllers = pa.array([CONTROLLERS[code] for code in controllers_of(versions.response, newest)[known].tolist()])
    vendors = vendors_of(versions.response, len(newest))[known].tolist()
    exchange = versions.response_exchanges[known]
    position = np.zeros(len(exchange), np.int64)
    columns = {
        CLUSTER_METADATA.release: releases,
        CLUSTER_METADATA.controller: controllers.cast(pa.string()),
        CLUSTER_METADATA.vendor: pa.array([VENDOR_BY_PLACE.get(place) for place in vendors], pa.string()),
    }
    return entry_rows(exchanges, RELEASE, exchange, position, columns)


def newest_marks(decoded: DecodedFrames, responses: int) -> Ints:
    """The place in MARKS of the newest mark in each response, or NONE: int64[responses]."""
    offered = decoded.levels["api_keys"]
    api_key, version = offered.column("api_key"), offered.column("max_version")
    key = np.where((api_key >= 0) & (api_key < NO_MARK), api_key, NO_MARK)
    newest = np.full(responses, NONE)
    np.maximum.at(newest, offered.parent, NEWEST[key, np.clip(version, NO_VERSION, NEWEST_VERSION)])
    return np.where(offers_api(decoded, BROKERS_ONLY, responses), newest, NONE)


def offers_api(decoded: DecodedFrames, api: int, responses: int) -> Bools:
    """Whether each response offers an API: bool[responses]."""
    offered = decoded.levels["api_keys"]
    is_offer = (offered.column("api_key") == api) & (offered.column("max_version") >= 0)
    return np.bincount(offered.parent[is_offer], minlength=responses) > 0


def controllers_of(decoded: DecodedFrames, newest: Ints) -> Ints:
    """What each response shows about the broker's controller, as a place in CONTROLLERS: int64[responses].

    newest: int64[responses], from `newest_marks`.
    """
    first, last = (MARK_PLACES[release] for release in BOTH_CONTROLLERS)
    has_both = (newest >= first) & (newest <= last)
    return np.where(has_both, 1 + offers_api(decoded, ZOOKEEPER_ONLY, len(newest)), 0)


def newest_by_offer() -> Ints:
    """The place in MARKS of the newest mark of an API, or NONE: int64[keys, versions].

    The row is the API's key, the column its newest offered version. The last row is for all keys beyond those with
    marks, the last column for versions below 0.
    """
    newest = np.full((NO_MARK + 1, NEWEST_VERSION + 2), NONE)
    for place, mark in enumerate(MARKS):
        newest[mark.api_key, mark.version : NO_VERSION] = place
    return newest


NO_MARK = 1 + max(mark.api_key for mark in MARKS)
NEWEST_VERSION, NO_VERSION = max(mark.version for mark in MARKS), -1
NEWEST = newest_by_offer()
