"""The releases of brokers, which their ApiVersions responses tell, as rows of `cluster_metadata`."""

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
    """A row an ApiVersions response that tells the broker's release."""
    newest = newest_marks(versions.response, len(versions.answered))
    told = np.flatnonzero(newest != UNKNOWN)
    releases = pa.array([MARKS[place].release for place in newest[told].tolist()], pa.string())
    at = versions.answered[told]
    return entry_rows(exchanges, RELEASE, at, np.zeros(len(at), np.int64), {CLUSTER_METADATA.release: releases})


def newest_marks(decoded: Decoded, responses: int) -> Ints:
    """By response the place in MARKS of the newest that it bears, or UNKNOWN; int64[responses]."""
    offered = decoded.levels["api_keys"]
    api_key, version = offered.column("api_key"), offered.column("max_version")
    key = np.where((api_key >= 0) & (api_key < NO_MARK), api_key, NO_MARK)
    newest = np.full(responses, UNKNOWN)
    np.maximum.at(newest, offered.parent, NEWEST[key, np.clip(version, NO_VERSION, NEWEST_VERSION)])
    is_broker = np.bincount(offered.parent[(api_key == BROKERS_ONLY) & (version >= 0)], minlength=responses) > 0
    return np.where(is_broker, newest, UNKNOWN)


def newest_by_offer() -> Ints:
    """By API key and newest version offered the place in MARKS of the newest mark that this bears, or UNKNOWN. The last
    row is of keys, the last column of versions, that bear none.
    """
    newest = np.full((NO_MARK + 1, NEWEST_VERSION + 2), UNKNOWN)
    for place, mark in enumerate(MARKS):
        newest[mark.api_key, mark.version : NO_VERSION] = place
    return newest


NO_MARK = 1 + max(mark.api_key for mark in MARKS)
NEWEST_VERSION, NO_VERSION = max(mark.version for mark in MARKS), -1
NEWEST = newest_by_offer()
