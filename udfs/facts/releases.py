"""The releases of brokers, inferred from their ApiVersions responses, as rows of `cluster_metadata`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.values import RELEASE
from schemas.wire.releases import BROKERS_ONLY, MARKS
from udfs.columns.arrays import Ints
from udfs.facts.exchange_messages import Messages
from udfs.facts.exchanges import Exchanges
from udfs.facts.metadata import entry_rows
from udfs.wire.messages import Decoded

UNKNOWN = -1


def release_rows(exchanges: Exchanges, versions: Messages) -> pa.RecordBatch:
    """One row for each ApiVersions response that shows the broker's release."""
    newest = newest_marks(versions.response, len(versions.response_exchanges))
    known = np.flatnonzero(newest != UNKNOWN)
    releases = pa.array([MARKS[place].release for place in newest[known].tolist()], pa.string())
    exchange = versions.response_exchanges[known]
    position = np.zeros(len(exchange), np.int64)
    return entry_rows(exchanges, RELEASE, exchange, position, {CLUSTER_METADATA.release: releases})


def newest_marks(decoded: Decoded, responses: int) -> Ints:
    """The place in MARKS of the newest mark that each response has, or UNKNOWN: int64[responses]."""
    offered = decoded.levels["api_keys"]
    api_key, version = offered.column("api_key"), offered.column("max_version")
    key = np.where((api_key >= 0) & (api_key < NO_MARK), api_key, NO_MARK)
    newest = np.full(responses, UNKNOWN)
    np.maximum.at(newest, offered.parent, NEWEST[key, np.clip(version, NO_VERSION, NEWEST_VERSION)])
    is_broker = np.bincount(offered.parent[(api_key == BROKERS_ONLY) & (version >= 0)], minlength=responses) > 0
    return np.where(is_broker, newest, UNKNOWN)


def newest_by_offer() -> Ints:
    """The place in MARKS of the newest mark that an API has, or UNKNOWN: int64[keys, versions].

    The row is the API's key, the column the newest version that is offered of it. The last row is for all keys without
    a mark, the last column for all versions without one.
    """
    newest = np.full((NO_MARK + 1, NEWEST_VERSION + 2), UNKNOWN)
    for place, mark in enumerate(MARKS):
        newest[mark.api_key, mark.version : NO_VERSION] = place
    return newest


NO_MARK = 1 + max(mark.api_key for mark in MARKS)
NEWEST_VERSION, NO_VERSION = max(mark.version for mark in MARKS), -1
NEWEST = newest_by_offer()
